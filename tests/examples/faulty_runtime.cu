// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Loaded ahead of the CUDA runtime (LD_PRELOAD), makes a GPU fail under a program that does not know:
//   LOSE_DEVICE_AFTER=n   a kernel ends in a trap before the host waits for a stream the (n + 1)-th time
//   HIDE_USED_MEMORY=1    memory that others use counts as free
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace {

__global__ void trap() { __trap(); }

template <class Function>
Function* real(char const* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  static char const* const after = std::getenv("LOSE_DEVICE_AFTER");
  static int waits = 0;
  if (after != nullptr && waits++ == std::atoi(after)) {
    trap<<<1, 1, 0, stream>>>();
  }
  static auto* const wait = real<cudaError_t(cudaStream_t)>("cudaStreamSynchronize");
  return wait(stream);
}

extern "C" cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  static auto* const ask = real<cudaError_t(std::size_t*, std::size_t*)>("cudaMemGetInfo");
  auto const status = ask(available, total);
  if (std::getenv("HIDE_USED_MEMORY") != nullptr) {
    *available = std::size_t{1} << 50;
  }
  return status;
}
