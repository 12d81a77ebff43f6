// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/source.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/model_directory.hpp>
#include <superoffload/io/unpacked_stream.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <system_error>

namespace superoffload::data {
namespace detail {

SUPEROFFLOAD_INLINE bool is_shard(std::string_view name) {
  if (name.starts_with('.')) {
    return false;
  }
  name = io::unpacked_name(name);
  // The last three are refused when they are read, which says how to convert them: left out, rows would be
  // missing.
  constexpr std::array<std::string_view, 5> ends{".json", ".jsonl", ".parquet", ".csv", ".tsv"};
  return std::ranges::any_of(ends, [&](auto const end) { return name.ends_with(end); });
}

}  // namespace detail

SUPEROFFLOAD_INLINE source parse_source(std::string_view text) {
  auto const colon = text.rfind(':');
  std::error_code status;
  if (colon == text.npos || std::filesystem::exists(std::filesystem::path{text}, status)) {
    return {text, std::nullopt};
  }
  auto const number = text.substr(colon + 1);
  double weight = 0.0;
  auto const [end, failure] = std::from_chars(number.data(), number.data() + number.size(), weight);
  if (number.empty() || failure != std::errc{} || end != number.data() + number.size()) {
    return {text, std::nullopt};
  }
  expect(std::isfinite(weight) && weight > 0.0 && weight <= 1e9, exit_code::bad_input,
         "--dataset: the weight of '", printable(text), "' is ", weight, ", expected above 0");
  return {text.substr(0, colon), weight};
}

SUPEROFFLOAD_INLINE std::vector<std::filesystem::path> files_of(std::filesystem::path const& path,
                                                                bool follow_links) {
  std::error_code status;
  if (!std::filesystem::is_directory(path, status)) {
    return {path};
  }
  std::vector<std::filesystem::path> files;
  for (auto const& name : io::list_directory(path)) {
    if (detail::is_shard(name)) {
      files.push_back(path / name);
    }
  }
  expect(!files.empty(), exit_code::bad_input, io::shown(path),
         ": a directory without data; expected files .json or .jsonl");
  if (!follow_links) {
    for (auto const& file : files) { io::expect_inside(path, file.filename().native()); }
  }
  return files;
}

}  // namespace superoffload::data
