// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// What Python does to texts and numbers, on which published chat templates rely.
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/text/utf8.hpp>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <utf8proc.h>

namespace superoffload::text::detail {

/// Whether str.strip() removes the character: White_Space and the separators U+001C to U+001F.
constexpr bool is_python_space(char32_t c) noexcept { return is_white_space(c) || (c >= 0x1c && c <= 0x1f); }

/// str.strip() of valid UTF-8.
SUPEROFFLOAD_INLINE std::string_view stripped(std::string_view text) {
  while (!text.empty()) {
    auto const step = first_step(text);
    if (!is_python_space(step.code_point)) {
      break;
    }
    text.remove_prefix(step.length);
  }
  while (!text.empty()) {
    auto const step = last_step(text);
    if (!is_python_space(step.code_point)) {
      break;
    }
    text.remove_suffix(step.length);
  }
  return text;
}

/// str.lstrip("\n")
SUPEROFFLOAD_INLINE std::string_view without_first_line_ends(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of('\n'), text.size()));
}
/// str.rstrip("\n")
SUPEROFFLOAD_INLINE std::string_view without_last_line_ends(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

/// repr() of a finite float.
SUPEROFFLOAD_INLINE std::string python_float(double number) {
  std::array<char, 64> digits{};
  auto const written = [&](std::chars_format form) {
    auto const end = std::to_chars(digits.data(), digits.data() + digits.size(), number, form).ptr;
    return std::string_view{digits.data(), static_cast<std::size_t>(end - digits.data())};
  };
  auto const magnitude = std::abs(number);
  if (magnitude != 0.0 && (magnitude < 1e-4 || magnitude >= 1e16)) {
    return std::string{written(std::chars_format::scientific)};
  }
  std::string fixed{written(std::chars_format::fixed)};
  return fixed.find('.') == fixed.npos ? fixed + ".0" : fixed;
}

inline constexpr char hexadecimal[] = "0123456789abcdef";

/// A string of json.dumps(..., ensure_ascii=False), quotes included.
SUPEROFFLOAD_INLINE void append_json_text(std::string& out, std::string_view text) {
  out += '"';
  for (char const c : text) {
    auto const byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (byte < 0x20) {
          out += "\\u00";
          out += hexadecimal[byte >> 4];
          out += hexadecimal[byte & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

/// str.isprintable() of a character above U+007F.
SUPEROFFLOAD_INLINE bool is_python_printable(char32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

SUPEROFFLOAD_INLINE void append_python_escape(std::string& out, char32_t c) {
  auto const [letter, digits] = c < 0x100     ? std::pair{'x', 2}
                                : c < 0x10000 ? std::pair{'u', 4}
                                              : std::pair{'U', 8};
  out += '\\';
  out += letter;
  for (int i = digits - 1; i >= 0; --i) { out += hexadecimal[c >> (4 * i) & 15]; }
}

/// repr() of a str that is valid UTF-8.
SUPEROFFLOAD_INLINE void append_python_repr(std::string& out, std::string_view text) {
  char const quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  out += quote;
  while (!text.empty()) {
    auto const step = first_step(text);
    auto const c = step.code_point;
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (c < 0x20 || c == 0x7f || (c > 0x7f && !is_python_printable(c))) {
      append_python_escape(out, c);
    } else {
      out += text.substr(0, step.length);
    }
    text.remove_prefix(step.length);
  }
  out += quote;
}

}  // namespace superoffload::text::detail
