// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/stream.hpp>

#include <cstddef>

namespace superoffload::cuda {

/// The most bytes that a kernel copies between host and device. The copies that a step waits for are that
/// small, a batch or the gradient check, and must not queue behind optimizer state: a copy engine serves one
/// stream for as long as it finds work there.
inline constexpr std::size_t most_small_copy = std::size_t{2} << 20;

/// Queues a copy by a kernel. The device must be able to access both addresses. Defined in kernels.cuh.
void small_copy(stream& on, void* to, void const* from, std::size_t bytes);

}  // namespace superoffload::cuda
