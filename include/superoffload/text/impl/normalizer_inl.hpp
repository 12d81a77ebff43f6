// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/character_sets.hpp>
#include <superoffload/text/impl/grapheme_cluster_inl.hpp>
#include <superoffload/text/normalizer.hpp>

#include <algorithm>
#include <optional>

namespace superoffload::text {
namespace detail {

SUPEROFFLOAD_INLINE derived_text apply(normalization_form form, derived_text text) {
  if (form == normalization_form::nfc && is_plainly_nfc(text.text())) {
    return text;
  }
  return to_form(text, form);
}

SUPEROFFLOAD_INLINE derived_text apply(lowercase_step, derived_text const& text) {
  derived_text out{text.traced()};
  auto const all = text.text();
  std::string small;
  for (std::size_t at = 0; at < all.size();) {
    auto const step = first_step(all.substr(at));
    small.clear();
    append_lower_case(small, step.code_point);
    out.append(small, text.origin(at));
    at += step.length;
  }
  return out;
}

SUPEROFFLOAD_INLINE derived_text apply(strip_step which, derived_text const& text) {
  auto const all = text.text();
  std::size_t begin = 0;
  while (which.left && begin < all.size()) {
    auto const step = first_step(all.substr(begin));
    if (!is_white_space(step.code_point)) {
      break;
    }
    begin += step.length;
  }
  auto end = all.size();
  while (which.right && end > begin) {
    auto const step = last_step(all.substr(0, end));
    if (!is_white_space(step.code_point)) {
      break;
    }
    end -= step.length;
  }
  derived_text out{text.traced()};
  out.append(text, begin, end);
  return out;
}

SUPEROFFLOAD_INLINE derived_text apply(prepend_step const& step, derived_text text) {
  auto const size = text.text().size();
  if (size == 0) {
    return text;
  }
  derived_text out{text.traced()};
  out.append(step.prefix, text.origin(0));
  out.append(text, 0, size);
  return out;
}

SUPEROFFLOAD_INLINE derived_text apply(replace_step const& step, derived_text text) {
  auto const found = step.pattern.matches(text.text());
  if (found.empty()) {
    return text;
  }
  derived_text out{text.traced()};
  std::size_t done = 0;
  for (auto const [begin, end] : found) {
    out.append(text, done, begin);
    out.append(step.content, text.origin(end == 0 ? 0 : end - 1));
    done = end;
  }
  out.append(text, done, text.text().size());
  return out;
}

/// Replaces each character for which `replacement` has a text.
template <class Replacement>
derived_text with_characters_replaced(derived_text const& text, Replacement replacement) {
  derived_text out{text.traced()};
  auto const all = text.text();
  for (std::size_t at = 0; at < all.size();) {
    auto const step = first_step(all.substr(at));
    if (std::optional<std::string_view> const found = replacement(step.code_point)) {
      out.append(*found, text.origin(at));
    } else {
      out.append(text, at, at + step.length);
    }
    at += step.length;
  }
  return out;
}

SUPEROFFLOAD_INLINE derived_text apply(strip_accents_step, derived_text const& text) {
  static code_point_table const accents{accent_ranges};
  return with_characters_replaced(
      text, [](char32_t c) { return accents[c] ? std::optional{std::string_view{}} : std::nullopt; });
}

SUPEROFFLOAD_INLINE derived_text apply(nmt_step, derived_text const& text) {
  return with_characters_replaced(text, [](char32_t c) -> std::optional<std::string_view> {
    if ((c >= 0x01 && c <= 0x08) || c == 0x0b || (c >= 0x0e && c <= 0x1f) || c == 0x7f || c == 0x8f ||
        c == 0x9f) {
      return "";
    }
    bool const space = c == 0x09 || c == 0x0a || c == 0x0c || c == 0x0d || c == 0x1680 ||
                       (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xfeff || c == 0xfffd;
    return space ? std::optional<std::string_view>{" "} : std::nullopt;
  });
}

SUPEROFFLOAD_INLINE derived_text apply(letters_step, derived_text const& text) {
  derived_text out{text.traced()};
  out.append_letters(text, 0, text.text().size());
  return out;
}

/// As Hugging Face tokenizers does it: a short cluster becomes the replacement of what it begins with, and
/// the rest of it is lost.
SUPEROFFLOAD_INLINE derived_text apply(precompiled_step const& step, derived_text const& text) {
  derived_text out{text.traced()};
  auto const all = text.text();
  auto const replace = [&](std::size_t begin, std::size_t end) {
    auto const found = step.rules(all.substr(begin, end - begin));
    if (found) {
      out.append(*found, text.origin(begin));
    }
    return found.has_value();
  };
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    end = begin + cluster_length(all.substr(begin));
    if (end - begin < 6 && replace(begin, end)) {
      continue;
    }
    for (auto at = begin; at < end;) {
      auto const next = at + first_step(all.substr(at)).length;
      if (!replace(at, next)) {
        out.append(text, at, next);
      }
      at = next;
    }
  }
  return out;
}

}  // namespace detail

SUPEROFFLOAD_INLINE derived_text normalizer::operator()(std::string_view text, bool traced) const {
  derived_text now{text, traced};
  for (auto const& step : steps_) {
    now = std::visit([&](auto const& one) { return detail::apply(one, std::move(now)); }, step);
  }
  return now;
}

SUPEROFFLOAD_INLINE bool normalizer::prepends() const noexcept {
  return std::ranges::any_of(steps_,
                             [](auto const& one) { return std::holds_alternative<prepend_step>(one); });
}

SUPEROFFLOAD_INLINE regular_expression literal_expression(std::string_view text, std::string_view where) {
  expect(!text.empty(), exit_code::bad_input, where, ": found \"\", expected a text that is not empty");
  std::string pattern;
  for (char const c : text) {
    bool const punctuation =
        c > ' ' && c < 0x7f && !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    pattern += punctuation ? "\\" : "";
    pattern += c;
  }
  return {pattern, where};
}

}  // namespace superoffload::text
