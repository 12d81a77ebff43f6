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

/// An open regular file. Owns the descriptor; moves, does not copy. Reading at offsets is safe from several
/// threads. Every member throws error(io_failure) naming the path and the system's reason.
class file {
public:
  /// \throws error(bad_input) when there is no such file or it is not a regular one. Follows links.
  static file open_read(std::filesystem::path const& path);

  /// Creates `path` for writing. \throws error(io_failure) also when anything of that name exists, a link
  /// included.
  static file create_new(std::filesystem::path const& path);

  file(file&& other) noexcept;
  file& operator=(file&& other) noexcept;
  ~file();

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

  /// Its size in bytes now.
  [[nodiscard]] std::uint64_t size() const;

  /// Fills `out` from byte `offset` on; a file that ends before is an error.
  void pread_exact(std::uint64_t offset, std::span<std::byte> out) const;

  /// Writes all of `data` at byte `offset`.
  void pwrite_all(std::uint64_t offset, std::span<std::byte const> data) const;

  /// Makes the file `bytes` long and reserves the disk space, so that a full disk shows itself now.
  void preallocate(std::uint64_t bytes) const;

  /// Returns when the content is on stable storage.
  void sync() const;

  /// Closes and reports what the destructor would ignore.
  void close();

private:
  file(int descriptor, std::filesystem::path path) : descriptor_{descriptor}, path_{std::move(path)} {}

  int descriptor_;
  std::filesystem::path path_;
};

/// The whole of a regular file of at most `limit` bytes.
/// \throws error(bad_input) when there is no such file or it is larger, error(io_failure) when reading fails.
std::string read_file(std::filesystem::path const& path, std::size_t limit);

/// Creates `path` with this content, on stable storage on return.
void write_new_file(std::filesystem::path const& path, std::string_view content);

/// A path as messages show it.
inline std::string shown(std::filesystem::path const& path) { return printable(path.native(), 1000); }

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/file_inl.hpp>
#endif
