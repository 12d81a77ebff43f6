// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/train/options.hpp>

#include <string>

/// The values of options as the command line has them.
namespace superoffload::train::detail {

SUPEROFFLOAD_INLINE std::string shown(offload::mode value) {
  constexpr char const* names[] = {"auto", "none", "zero", "super"};
  return names[static_cast<int>(value)];
}
SUPEROFFLOAD_INLINE std::string shown(offload::choice value) {
  constexpr char const* names[] = {"auto", "on", "off"};
  return names[static_cast<int>(value)];
}
SUPEROFFLOAD_INLINE std::string shown(state_format value) { return std::string{name_of(value)}; }
SUPEROFFLOAD_INLINE std::string shown(optim::schedule::shape value) { return name_of(value); }
SUPEROFFLOAD_INLINE std::string shown(on_nonfinite value) {
  return value == on_nonfinite::skip ? "skip" : "stop";
}
SUPEROFFLOAD_INLINE std::string shown(text::prompt_template value) {
  return value == text::prompt_template::deepspeed ? "deepspeed" : "alpaca";
}
SUPEROFFLOAD_INLINE std::string shown(text::learnt_turns value) { return std::string{text::name_of(value)}; }
SUPEROFFLOAD_INLINE std::string shown(data::pad_to value) {
  constexpr char const* names[] = {"none", "longest", "max_length"};
  return names[static_cast<int>(value)];
}
SUPEROFFLOAD_INLINE std::string shown(recompute::choice value) {
  constexpr char const* names[] = {"none", "every_block", "auto", "offload"};
  return names[static_cast<int>(value)];
}

}  // namespace superoffload::train::detail
