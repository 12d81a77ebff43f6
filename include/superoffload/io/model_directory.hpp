// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::io {

/// Checks the entry `name` of a directory that others made: its symbolic links must lead to something inside
/// of the directory. A download must not choose which of a user's files is read or exported. Links of the
/// Hugging Face hub's cache are followed: from REPOSITORY/snapshots/REVISION to REPOSITORY/blobs/HASH.
/// \throws error(bad_input) naming the link and where it leads.
void expect_inside(std::filesystem::path const& directory, std::string_view name);

/// Fields that replace those of a config.json.
struct config_fields {
  std::string json{};    ///< an object; empty: no field is replaced
  std::string origin{};  ///< where they come from, for messages
};

/// The directory of a model, in the layout of the Hugging Face hub. Every file of a model is read by a path
/// from here, so that one rule holds for all of them: see expect_inside().
class model_directory {
public:
  /// `follow_links`: wherever they lead. `replaced`: of its config.json. Not explicit: a path is a directory
  /// whose links are checked.
  template <std::convertible_to<std::filesystem::path> Path>
  model_directory(Path const& path, bool follow_links = false, config_fields replaced = {})
      : path_{path}, follow_links_{follow_links}, replaced_{std::move(replaced)} {}

  /// As it was given.
  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

  /// The path of the file `name`, to open it. \throws error(bad_input) as expect_inside(), and unless `name`
  /// is the name of a file and no more.
  [[nodiscard]] std::filesystem::path file(std::string_view name) const;

  /// The text of config.json, with the fields that replace its own. \throws error(io_failure);
  /// error(bad_input) if it is longer than json_limits::bytes, or has fields replaced and is no JSON object
  [[nodiscard]] std::string config() const;
  /// The name of that text in messages.
  [[nodiscard]] std::string config_name() const;

  /// Is anything of that name there? A link counts, also one that leads nowhere.
  [[nodiscard]] bool has(std::string_view name) const;

  /// The names of the files that belong to the model beside its configuration and weights, sorted: tokenizer,
  /// generation settings and chat template. An export has them, too. \throws error(io_failure).
  [[nodiscard]] std::vector<std::string> companions() const;

private:
  std::filesystem::path path_;
  bool follow_links_;
  config_fields replaced_;
};

/// Is it the name of a file in a directory, without a path?
bool is_basename(std::string_view name);

/// Is it a name of model_directory::companions()?
bool is_companion(std::string_view name);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/model_directory_inl.hpp>
#endif
