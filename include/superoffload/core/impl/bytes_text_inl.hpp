// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/bytes_text.hpp>
#include <superoffload/core/inline.hpp>

#include <cstddef>
#include <cstdio>
#include <string>

namespace superoffload {

SUPEROFFLOAD_INLINE std::string bytes_text(std::size_t bytes, int decimals) {
  static constexpr char const* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  while (value >= 1024.0 && unit < 4) {
    value /= 1024.0;
    ++unit;
  }
  char text[40];
  std::snprintf(text, sizeof text, "%.*f %s", unit == 0 ? 0 : decimals, value, units[unit]);
  return text;
}

}  // namespace superoffload
