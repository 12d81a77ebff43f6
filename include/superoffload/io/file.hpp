// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace superoffload::io {

/// An open regular file. Owns the descriptor; can be moved, not copied. Several threads may read at offsets
/// at once. Every member throws error(io_failure) naming the path and the system's reason.
class file {
public:
  /// \throws error(bad_input) when there is no such file or it is not a regular one. Follows links.
  static file open_read(std::filesystem::path const& path);

  /// Creates `path` for writing. \throws error(io_failure) also when that name exists, even as a link.
  static file create_new(std::filesystem::path const& path);

  /// Afterwards `other` has no file and may only be assigned to or destroyed.
  file(file&& other) noexcept;
  /// Exchanges the files: the one that this object had is closed with `other`.
  file& operator=(file&& other) noexcept;
  ~file();

  /// As the file was opened.
  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

  /// For calls of the system; stays this object's.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// The current size in bytes.
  [[nodiscard]] std::uint64_t size() const;

  /// Fills `out` from byte `offset` on; an earlier end of the file is an error.
  void pread_exact(std::uint64_t offset, std::span<std::byte> out) const;

  /// Writes all of `data` at byte `offset`.
  void pwrite_all(std::uint64_t offset, std::span<std::byte const> data) const;

  /// Makes the file `bytes` long and reserves the disk space, so that a full disk is reported now.
  void preallocate(std::uint64_t bytes) const;

  /// Asks the system to begin writing bytes [offset, offset + bytes) to the disk, so that sync() waits less.
  /// A system that cannot does so in sync().
  void start_sync(std::uint64_t offset, std::uint64_t bytes) const noexcept;

  /// Returns when the content is on stable storage.
  void sync() const;

  /// Closes and reports the errors that the destructor would ignore.
  void close();

private:
  file(int descriptor, std::filesystem::path path) : descriptor_{descriptor}, path_{std::move(path)} {}

  int descriptor_;
  std::filesystem::path path_;
};

/// The whole of a regular file of at most `limit` bytes.
/// \throws error(bad_input) when there is no such file or it is larger, error(io_failure) when reading fails.
std::string read_file(std::filesystem::path const& path, std::size_t limit);

/// Creates `path` with this content; on stable storage on return.
void write_new_file(std::filesystem::path const& path, std::string_view content);

/// A path as printed in messages.
inline std::string shown(std::filesystem::path const& path) { return printable(path.native(), 1000); }

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/file_inl.hpp>
#endif
