// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/io/model_directory.hpp>

#include <algorithm>
#include <array>
#include <system_error>

namespace superoffload::io {
namespace detail {

/// Both are canonical paths.
SUPEROFFLOAD_INLINE bool lies_in(std::filesystem::path const& inner, std::filesystem::path const& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// Does the hub's cache lead from a file of `home` to `target`? Blobs are named by their hash: a directory
/// that happens to be called blobs has no such files.
SUPEROFFLOAD_INLINE bool is_blob(std::filesystem::path const& target, std::filesystem::path const& home) {
  constexpr std::size_t least_digits = 32;
  auto const hash = target.filename().native();
  auto const blobs = target.parent_path();
  auto const snapshots = blobs.parent_path() / "snapshots";
  return blobs.filename() == "blobs" && hash.size() >= least_digits &&
         hash.find_first_not_of("0123456789abcdef") == hash.npos && home != snapshots &&
         lies_in(home, snapshots);
}

/// The object in `text`, its members in their order. \throws error(bad_input) as parse_json, and unless it is
/// one
SUPEROFFLOAD_INLINE nlohmann::ordered_json ordered_object(std::string const& text,
                                                          std::string const& origin) {
  auto const checked = parse_json(text, origin);
  json_field{checked, origin}.require_object();
  return nlohmann::ordered_json::parse(text);
}

}  // namespace detail

SUPEROFFLOAD_INLINE void expect_inside(std::filesystem::path const& directory, std::string_view name) {
  std::error_code failure, none;
  auto const path = directory / name;
  auto const home = std::filesystem::canonical(directory, none);
  auto const target = std::filesystem::canonical(path, failure);
  // Links of /proc may lead to what has no path. Opening what is not there reports the reason.
  bool const inside = failure
                          ? !std::filesystem::exists(path, none)
                          : !home.empty() && (detail::lies_in(target, home) || detail::is_blob(target, home));
  expect(inside, exit_code::bad_input, shown(path), ": is a symbolic link to ",
         shown(failure ? std::filesystem::read_symlink(path, none) : target),
         ", outside of its directory; expected a file; put a copy there, or have links followed "
         "(--follow_links)");
}

SUPEROFFLOAD_INLINE bool is_basename(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view{"/\\\0", 3}) == name.npos;
}

SUPEROFFLOAD_INLINE bool is_companion(std::string_view name) {
  static constexpr std::array<std::string_view, 8> names{"tokenizer.json",
                                                         "tokenizer_config.json",
                                                         "special_tokens_map.json",
                                                         "generation_config.json",
                                                         "tokenizer.model",
                                                         "added_tokens.json",
                                                         "vocab.json",
                                                         "merges.txt"};
  return std::ranges::find(names, name) != names.end() || name.starts_with("chat_template");
}

SUPEROFFLOAD_INLINE std::filesystem::path model_directory::file(std::string_view name) const {
  expect(is_basename(name), exit_code::bad_input, shown(path_), ": '", printable(name),
         "' is no file of a model; expected a name without a path");
  if (!follow_links_) {
    expect_inside(path_, name);
  }
  return path_ / name;
}

SUPEROFFLOAD_INLINE std::string model_directory::config() const {
  auto text = read_file(file("config.json"), json_limits{}.bytes);
  if (replaced_.json.empty()) {
    return text;
  }
  auto document = detail::ordered_object(text, shown(path_ / "config.json"));
  document.update(nlohmann::ordered_json::parse(replaced_.json));
  return document.dump(2) + "\n";
}

SUPEROFFLOAD_INLINE std::string model_directory::config_name() const {
  auto const name = shown(path_ / "config.json");
  return replaced_.json.empty() ? name : concat(name, " with ", replaced_.origin);
}

SUPEROFFLOAD_INLINE bool model_directory::has(std::string_view name) const {
  std::error_code failure;
  return std::filesystem::exists(std::filesystem::symlink_status(path_ / name, failure));
}

SUPEROFFLOAD_INLINE std::vector<std::string> model_directory::companions() const {
  auto names = list_directory(path_);
  std::erase_if(names, [&](std::string const& name) {
    std::error_code failure;
    auto const kind = std::filesystem::status(path_ / name, failure).type();
    return !is_companion(name) ||
           (kind != std::filesystem::file_type::regular &&
            kind != std::filesystem::file_type::not_found);  // opening it says what is missing
  });
  return names;
}

}  // namespace superoffload::io
