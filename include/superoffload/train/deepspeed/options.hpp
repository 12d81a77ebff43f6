// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/train/deepspeed/config.hpp>
#include <superoffload/train/options.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::train {

/// Did the user give this flag, such as "--lr"?
using given_flags = std::function<bool(std::string_view flag)>;

/// Sets `options`, which hold the flags or their defaults, to the values of the file. A given flag must agree
/// with the file. Without a value in the file, the flag or its default holds, but as in DeepSpeed the rate is
/// constant without a scheduler, and no model is exported. The three batch sizes are solved as DeepSpeed
/// does, for `ranks` ranks. bf16 is no option: the caller handles it.
/// \returns lines for the user on what the file decides without saying it, and on what is otherwise here.
/// \throws error(bad_input) that names file, JSON path and flag, if they contradict each other.
std::vector<std::string> apply(deepspeed_config const& file, given_flags const& given, std::int64_t ranks,
                               training_options& options);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/deepspeed/impl/options_inl.hpp>
#endif
