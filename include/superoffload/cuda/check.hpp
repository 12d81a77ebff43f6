// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace superoffload::cuda::detail {

/// Throws `error` (device) unless `status`, a cudaError_t, is success: which call, where, and what CUDA says.
void check(int status, std::string_view call, std::string_view where);

}  // namespace superoffload::cuda::detail
