// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/file.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::io {

// Every function throws error(io_failure) naming the path and the system's reason.

/// Creates `path` and the directories above it that do not exist, all of them on stable storage.
void make_directories(std::filesystem::path const& path);

/// Syncs the directory: on return its names are on stable storage.
void sync_directory(std::filesystem::path const& path);

/// The names in a directory, sorted; none when there is no such directory.
std::vector<std::string> list_directory(std::filesystem::path const& path);

/// rename(2): atomic; on stable storage after sync_directory.
void rename_path(std::filesystem::path const& from, std::filesystem::path const& to);

/// Writes a file, atomically and on stable storage; replaces an earlier regular file.
/// \throws error(bad_input) when `path` is anything else, such as a link or a device.
void replace_file(std::filesystem::path const& path, std::string_view content);

/// \throws error(bad_input) unless `path` is a regular file (not a link to one) or does not exist.
void expect_replaceable_file(std::filesystem::path const& path);

/// Bytes that this user may still write to the file system of a directory. Other processes may change it.
std::uint64_t free_bytes(std::filesystem::path const& directory);

/// Removes a file, a link or a directory with all that is in it. Does nothing when there is none.
void remove_tree(std::filesystem::path const& path);

/// Moves the directory `staged` to its sibling `destination`, on stable storage, and removes what was there
/// before. If the process is killed, `destination` is the old directory or the new one, possibly only after
/// restore_replaced.
void replace_directory(std::filesystem::path const& staged, std::filesystem::path const& destination);

/// Finishes or undoes a replace_directory that was killed on a file system that cannot exchange two names.
void restore_replaced(std::filesystem::path const& destination);

/// The name to which `destination` is moved meanwhile.
std::filesystem::path replaced_name(std::filesystem::path const& destination);

/// 16 hexadecimal digits that no other process uses.
std::string random_suffix();

/// Whether `text` is `prefix` and a random_suffix, the name of what a killed process left behind.
bool is_suffixed(std::string_view text, std::string_view prefix);

/// A new directory. The destructor removes it with its content, unless it was moved away.
class staging_directory {
public:
  /// Creates `path`, whose parent must exist. \throws error(io_failure), also when `path` exists
  explicit staging_directory(std::filesystem::path path);
  staging_directory(staging_directory const&) = delete;
  staging_directory& operator=(staging_directory const&) = delete;
  ~staging_directory();

  /// The constructor's; the directory may have been moved away since.
  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

private:
  std::filesystem::path path_;
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/directory_inl.hpp>
#endif
