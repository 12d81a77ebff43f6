// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "show.hpp"

#include <superoffload/core/error.hpp>

#include <cstdlib>
#include <span>
#include <string_view>
#include <unistd.h>

namespace {

using namespace superoffload;

/// Safe on a terminal: line ends are written out and kept, other control characters are escaped.
std::string safe(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    auto const end = text.find('\n');
    auto const line = text.substr(0, end);
    out += printable(line, line.size());
    if (end == text.npos) {
      break;
    }
    out += "\\n\n";
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace

std::string shown_row(data::row const& read, data::encoded_row const& encoded,
                      text::tokenizer const& tokenizer, bool colours) {
  std::int64_t learnt = 0;
  std::string text;
  std::int64_t at = 0;
  auto const part = [&](std::int64_t end) {
    auto const ids =
        std::span{encoded.ids}.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(end - at));
    at = end;
    return safe(tokenizer.decode(ids));
  };
  for (auto const& one : encoded.learnt) {
    text += part(one.begin);
    learnt += one.size();
    if (one.size() > 0) {
      text += concat(colours ? "\033[32m" : "[[", part(one.end), colours ? "\033[0m" : "]]");
    }
  }
  auto const size = static_cast<std::int64_t>(encoded.ids.size());
  text += part(size);
  auto const cut = encoded.uncut > size ? concat(", cut from ", encoded.uncut) : std::string{};
  return concat("--- ", printable(read.origin, read.origin.size()), ": ", size, " tokens", cut, ", ", learnt,
                " learnt\n", text, "\n");
}

bool output_has_colours() {
  auto const* const refused = std::getenv("NO_COLOR");
  auto const* const terminal = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && (refused == nullptr || *refused == '\0') &&
         (terminal == nullptr || std::string_view{terminal} != "dumb");
}
