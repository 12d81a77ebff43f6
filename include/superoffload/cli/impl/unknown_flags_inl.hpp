// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/unknown_flags.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace superoffload::cli {
namespace detail {

/// Levenshtein's distance, by rows of its table.
SUPEROFFLOAD_INLINE std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      auto const replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string nearest_name(std::string_view word, std::vector<std::string> const& names) {
  constexpr std::size_t longest = 64;  // the table's size is the product of two lengths
  std::string nearest;
  auto least = word.size() / 3 + 1;
  for (auto const& name : names) {
    if (word.size() > longest || name.size() > longest) {
      continue;
    }
    if (auto const distance = detail::edits(word, name); distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

SUPEROFFLOAD_INLINE std::string refusal_of(CLI::App const& app, CLI::ParseError const& error) {
  auto const help = "; --help lists the flags";
  if (dynamic_cast<CLI::ExtrasError const*>(&error) == nullptr) {
    return concat(printable(error.what(), 400), help);
  }
  auto const extras = app.remaining();
  auto const flag = std::ranges::find_if(extras, [](auto const& extra) { return extra.starts_with("-"); });
  if (flag == extras.end()) {
    return concat("'", printable(extras.empty() ? "" : extras.front(), 80), "' belongs to no flag", help);
  }
  auto const word = flag->substr(0, flag->find('='));
  std::vector<std::string> names;
  for (auto const* option : app.get_options()) {
    for (auto const& name : option->get_lnames()) { names.push_back("--" + name); }
  }
  auto const meant = nearest_name(word, names);
  return concat("there is no flag ", printable(word, 80), meant.empty() ? "" : " (did you mean ", meant,
                meant.empty() ? "" : "?)", help);
}

}  // namespace superoffload::cli
