// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What it does needs a GPU; it is told where there is none.
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cudnn/choose.hpp>

#include <cstdio>

namespace so = superoffload;

int main() try {
  so::cuda::device device;
  std::puts(so::cudnn::choose_attention(device, so::kernel::attention_implementation::automatic,
                                        {.starts = nullptr,
                                         .documents = 1,
                                         .rows = 1,
                                         .heads = 8,
                                         .kv_heads = 8,
                                         .head_dim = 64,
                                         .longest = 1,
                                         .scale = 1},
                                        false, true)
                .c_str());
} catch (so::error const& e) {
  std::printf("no GPU: %s\n", e.what());
  return e.code() == so::exit_code::device || e.code() == so::exit_code::driver ? 0 : 1;
}
