// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The kernels of faulty_runtime.cpp.
#include "examples/faulty_kernels.hpp"

namespace {

__global__ void trap() { __trap(); }

__global__ void wait_for(long long cycles) {
  auto const begin = clock64();
  while (clock64() - begin < cycles) {}
}

}  // namespace

namespace superoffload::test {

void queue_trap(cudaStream_t stream) { trap<<<1, 1, 0, stream>>>(); }
void queue_wait(cudaStream_t stream, long long cycles) { wait_for<<<1, 1, 0, stream>>>(cycles); }

}  // namespace superoffload::test
