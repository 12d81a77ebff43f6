// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/train/run/run_data.hpp>
#ifdef SUPEROFFLOAD_HAS_CUDA
#include <superoffload/cudnn/choose.hpp>
#endif

#include <cstdint>
#include <string>

namespace superoffload::cli {

/// Sets the device's implementation of attention to that of --attn_implementation. Returns the reason if
/// `auto` could have chosen cuDNN and did not, else an empty text. `own` is the family that the architecture
/// declares.
inline std::string choose_attention(cpu::device&, command_line const& command, model::family const*) {
  expect(command.attention == kernel::attention_implementation::automatic, exit_code::bad_input,
         "--attn_implementation chooses between a GPU's kernels; expected auto on the cpu, or --device cuda");
  return {};
}

#ifdef SUPEROFFLOAD_HAS_CUDA
inline std::string choose_attention(cuda::device& device, command_line const& command,
                                    model::family const* own) {
  auto const config = model::read_config(command.training.model_source(), own);
  auto const rows = train::most_rows(command.training);
  auto const longest = command.training.max_length;
  return cudnn::choose_attention(device, command.attention,
                                 {.starts = nullptr,
                                  .documents = rows / longest,
                                  .rows = rows,
                                  .heads = static_cast<std::int32_t>(config.heads),
                                  .kv_heads = static_cast<std::int32_t>(config.kv_heads),
                                  .head_dim = static_cast<std::int32_t>(config.head_dim),
                                  .longest = static_cast<std::int32_t>(longest),
                                  .window = config.longest_window(),
                                  .scale = 1,
                                  .dropout = kernel::dropout_mask::with(config.attention_dropout, 0)},
                                 config.has_sinks, command.precision != precision_choice::float32);
}
#endif

}  // namespace superoffload::cli
