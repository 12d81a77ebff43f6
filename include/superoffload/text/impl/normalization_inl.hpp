// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/normalization.hpp>
#include <superoffload/text/utf8.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utf8proc.h>
#include <vector>

namespace superoffload::text {
namespace detail {

SUPEROFFLOAD_INLINE std::uint64_t combining_class(std::int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

}  // namespace detail

SUPEROFFLOAD_INLINE bool is_plainly_nfc(std::string_view text) noexcept {
  // Below U+0300 (bytes cc 80) no character combines with the one before it, and every character is composed.
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0xcc; });
}

SUPEROFFLOAD_INLINE std::string to_nfc(std::string_view text) {
  std::vector<std::int32_t> points;
  points.reserve(text.size());
  while (!text.empty()) {
    auto const step = first_step(text);
    text.remove_prefix(step.length);
    if (step.code_point < 0xc0) {  // decomposes to itself
      points.push_back(static_cast<std::int32_t>(step.code_point));
      continue;
    }
    std::array<std::int32_t, 32> parts{};
    auto const count =
        utf8proc_decompose_char(static_cast<std::int32_t>(step.code_point), parts.data(),
                                static_cast<utf8proc_ssize_t>(parts.size()), UTF8PROC_DECOMPOSE, nullptr);
    expect(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()), exit_code::internal,
           "normalisation failed with error ", count);
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }

  // Sorts marks into canonical order. utf8proc does it, too, but in quadratic time for long runs of marks.
  std::vector<std::uint64_t> keys;  // class, position (equal classes keep their order), code point
  for (auto run = points.begin(); run != points.end();) {
    auto const is_mark = [](std::int32_t c) { return c >= 0x300 && detail::combining_class(c) != 0; };
    run = std::find_if(run, points.end(), is_mark);
    auto const end = std::find_if_not(run, points.end(), is_mark);
    keys.clear();
    for (auto const mark : std::span{run, end}) {
      keys.push_back(detail::combining_class(mark) << 56 | std::uint64_t{keys.size()} << 21 |
                     static_cast<std::uint64_t>(mark));
    }
    std::sort(keys.begin(), keys.end());
    run = std::transform(keys.begin(), keys.end(), run,
                         [](std::uint64_t key) { return static_cast<std::int32_t>(key & 0x1fffff); });
  }

  auto const count =
      utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  expect(count >= 0, exit_code::internal, "normalisation failed with error ", count);
  std::string out;
  out.reserve(points.size());
  for (auto const point : std::span{points}.first(static_cast<std::size_t>(count))) {
    append_utf8(out, static_cast<char32_t>(point));
  }
  return out;
}

}  // namespace superoffload::text
