// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/train/deepspeed/config.hpp>
#include <superoffload/train/options.hpp>

#include <cstdint>
#include <functional>
#include <string_view>

namespace superoffload::train {

/// Was the flag of this name, such as "--lr", given by the user?
using given_flags = std::function<bool(std::string_view flag)>;

/// Sets what the file says in `options`, which hold what the flags said or their defaults. A flag that was
/// given must say the same as the file; where the file says nothing, the flag or its default holds. The
/// three batch sizes are solved as DeepSpeed does, for `ranks` ranks. bf16 is for the caller: no option.
/// \throws error(bad_input) naming file, JSON path and flag where they contradict each other.
void apply(deepspeed_config const& file, given_flags const& given, std::int64_t ranks,
           training_options& options);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/deepspeed/impl/options_inl.hpp>
#endif
