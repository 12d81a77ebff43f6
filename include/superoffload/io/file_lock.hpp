// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

namespace superoffload::io {

/// A lock that one process at a time holds. It ends with the process, however that ends.
class file_lock {
public:
  /// Creates the file at `path`, or takes the one that a killed process left, and locks it. The destructor
  /// removes it. Returns nothing when another process holds the lock; does not wait for it.
  /// \throws error(io_failure) when the file cannot be created, error(bad_input) when it is not a regular
  /// file.
  static std::optional<file_lock> acquire(std::filesystem::path const& path);

  /// Takes over the lock: the destructor of `other` then does nothing.
  file_lock(file_lock&& other) noexcept
      : descriptor_{std::exchange(other.descriptor_, -1)},
        path_{std::move(other.path_)},
        weakness_{std::move(other.weakness_)} {}
  file_lock& operator=(file_lock&&) = delete;
  ~file_lock();

  /// Why the lock does not exclude other processes: the file system has no locks. Empty when it does.
  [[nodiscard]] std::string const& weakness() const noexcept { return weakness_; }

private:
  file_lock(int descriptor, std::filesystem::path path, std::string weakness)
      : descriptor_{descriptor}, path_{std::move(path)}, weakness_{std::move(weakness)} {}

  int descriptor_;
  std::filesystem::path path_;
  std::string weakness_;
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/file_lock_inl.hpp>
#endif
