// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace superoffload {

/// How AdamW's state is stored, in every memory tier. Arithmetic is float in all of them.
enum class state_format : std::uint8_t {
  float32,  ///< master, m and v in float: exact
  bf16,     ///< m and v in bfloat16, rounded stochastically
  int8,     ///< m and v in 8 bits, in blocks that share an exponent; masters of bfloat16 weights in 24 bits
};

/// All of them, in the order of their bytes.
inline constexpr std::array state_formats{state_format::float32, state_format::bf16, state_format::int8};

/// As --state, plans and checkpoints name it.
constexpr std::string_view name_of(state_format format) {
  switch (format) {
    case state_format::float32:
      return "float32";
    case state_format::bf16:
      return "bf16";
    case state_format::int8:
      return "int8";
  }
  return "";
}
/// Nothing for any other name.
constexpr std::optional<state_format> state_format_of(std::string_view name) {
  for (auto const format : state_formats) {
    if (name_of(format) == name) {
      return format;
    }
  }
  return std::nullopt;
}

/// Calls call.operator()<format>(), whose result has one type for all formats.
template <class Call>
decltype(auto) with_format(state_format format, Call&& call) {
  switch (format) {
    case state_format::bf16:
      return std::forward<Call>(call).template operator()<state_format::bf16>();
    case state_format::int8:
      return std::forward<Call>(call).template operator()<state_format::int8>();
    case state_format::float32:
      break;
  }
  return std::forward<Call>(call).template operator()<state_format::float32>();
}

}  // namespace superoffload
