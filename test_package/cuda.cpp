// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Uses a GPU, or is told why there is none.
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>

#include <cstdio>

namespace so = superoffload;

int main() try {
  so::cuda::device device;
  std::puts("there is a GPU");
} catch (so::error const& e) {
  std::printf("no GPU: %s\n", e.what());
  return e.code() == so::exit_code::device || e.code() == so::exit_code::driver ? 0 : 1;
}
