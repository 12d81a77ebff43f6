// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/stream.hpp>

#include <cstddef>

namespace superoffload::cuda {

/// The most bytes that a kernel copies between host and device. What a step waits for is that small, a batch
/// or its check, and must not queue behind optimizer state: a copy engine that has begun with one stream
/// stays with it for as long as it finds work there.
inline constexpr std::size_t most_small_copy = std::size_t{2} << 20;

/// Queues a copy by a kernel. Both addresses are such that the device can use them. Defined in kernels.cuh.
void small_copy(stream& on, void* to, void const* from, std::size_t bytes);

}  // namespace superoffload::cuda
