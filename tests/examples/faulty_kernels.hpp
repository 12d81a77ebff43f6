// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace superoffload::test {

/// Queues a kernel that ends in a trap, which loses the device.
void queue_trap(cudaStream_t stream);
/// Queues a kernel that takes so many cycles of the GPU.
void queue_wait(cudaStream_t stream, long long cycles);

}  // namespace superoffload::test
