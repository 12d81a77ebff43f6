// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/character_class.hpp>
#include <superoffload/text/character_sets.hpp>
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
  return static_cast<std::uint64_t>(utf8proc_get_property(code_point)->combining_class);
}

/// What a normalisation form may change; everything else is copied.
SUPEROFFLOAD_INLINE code_point_table const& normalized_characters() {
  static code_point_table const table{normalized_ranges};
  return table;
}

/// Sorts marks into canonical order. utf8proc does it, too, but in quadratic time for long runs of marks.
SUPEROFFLOAD_INLINE void sort_marks(std::vector<std::int32_t>& points) {
  std::vector<std::uint64_t> keys;  // class, position (equal classes keep their order), code point
  for (auto run = points.begin(); run != points.end();) {
    auto const is_mark = [](std::int32_t c) { return c >= 0x300 && combining_class(c) != 0; };
    run = std::find_if(run, points.end(), is_mark);
    auto const end = std::find_if_not(run, points.end(), is_mark);
    keys.clear();
    for (auto const mark : std::span{run, end}) {
      keys.push_back(combining_class(mark) << 56 | std::uint64_t{keys.size()} << 21 |
                     static_cast<std::uint64_t>(mark));
    }
    std::sort(keys.begin(), keys.end());
    run = std::transform(keys.begin(), keys.end(), run,
                         [](std::uint64_t key) { return static_cast<std::int32_t>(key & 0x1fffff); });
  }
}

/// Appends the form of decomposed characters, which are empty afterwards.
SUPEROFFLOAD_INLINE void append_form(std::string& out, std::vector<std::int32_t>& points, bool composed) {
  sort_marks(points);
  auto count = static_cast<utf8proc_ssize_t>(points.size());
  if (composed && count > 0) {
    count = utf8proc_normalize_utf32(points.data(), count,
                                     static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    expect(count >= 0, exit_code::internal, "normalisation failed with error ", count);
  }
  for (auto const point : std::span{points}.first(static_cast<std::size_t>(count))) {
    append_utf8(out, static_cast<char32_t>(point));
  }
  points.clear();
}

/// Whether `c` combines with no character before it, in no form: most letters and digits do not.
SUPEROFFLOAD_INLINE bool begins_anew(char32_t c) {
  if (c < 0x300 || !normalized_characters()[c]) {
    return true;
  }
  bool const jamo =
      (c >= 0x1100 && c <= 0x11ff) || (c >= 0x3130 && c <= 0x318f) || (c >= 0xff9e && c <= 0xffdc);
  using enum character_class;
  return !jamo && (set_of(character_table::unicode()[c]) & set_of(upper, lower, letter, digit)) != 0;
}

}  // namespace detail

SUPEROFFLOAD_INLINE bool is_plainly_nfc(std::string_view text) noexcept {
  // Below U+0300 (bytes cc 80) no character combines with the one before it, and every character is composed.
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0xcc; });
}

SUPEROFFLOAD_INLINE std::string to_form(std::string_view text, normalization_form form) {
  bool const composed = form == normalization_form::nfc || form == normalization_form::nfkc;
  bool const compatible = form == normalization_form::nfkc || form == normalization_form::nfkd;
  auto const options =
      static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  auto const& changed = detail::normalized_characters();
  std::string out;
  out.reserve(text.size());
  std::vector<std::int32_t> points;  // of characters in a row that may change
  while (!text.empty()) {
    auto const step = first_step(text);
    if (!changed[step.code_point]) {
      detail::append_form(out, points, composed);
      out += text.substr(0, step.length);
      text.remove_prefix(step.length);
      continue;
    }
    text.remove_prefix(step.length);
    std::array<std::int32_t, 32> parts{};
    auto const count = utf8proc_decompose_char(static_cast<std::int32_t>(step.code_point), parts.data(),
                                               static_cast<utf8proc_ssize_t>(parts.size()), options, nullptr);
    expect(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()), exit_code::internal,
           "normalisation failed with error ", count);
    points.insert(points.end(), parts.begin(), parts.begin() + count);
  }
  detail::append_form(out, points, composed);
  return out;
}

SUPEROFFLOAD_INLINE derived_text to_form(derived_text const& text, normalization_form form) {
  if (!text.traced()) {
    return {to_form(text.text(), form), false};
  }
  derived_text out{true};
  auto const all = text.text();
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    do {
      end += first_step(all.substr(end)).length;
    } while (end < all.size() && !detail::begins_anew(first_step(all.substr(end)).code_point));
    auto const part = all.substr(begin, end - begin);
    auto const formed = to_form(part, form);
    if (formed == part) {
      out.append(text, begin, end);
    } else {
      out.append(formed, text.origin(begin));
    }
  }
  return out;
}

SUPEROFFLOAD_INLINE std::string to_nfc(std::string_view text) {
  return to_form(text, normalization_form::nfc);
}

SUPEROFFLOAD_INLINE void append_lower_case(std::string& out, char32_t c) {
  if (c == 0x130) {
    out += "i\u0307";
    return;
  }
  auto const run = std::ranges::lower_bound(lower_case_runs, std::uint32_t{c}, {}, &lower_case_run::last);
  bool const has = run != lower_case_runs.end() && run->first <= c && (c - run->first) % run->step == 0;
  append_utf8(out, has ? static_cast<char32_t>(static_cast<std::int64_t>(c) + run->distance) : c);
}

}  // namespace superoffload::text
