// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/write_behind.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace superoffload::io {

/// Where a tensor is in a safetensors file: row-major, little-endian.
struct tensor_info {
  dtype type = dtype::f32;          ///< of the stored elements
  std::vector<std::int64_t> shape;  ///< empty for a scalar
  std::uint64_t begin = 0;          ///< bytes from the end of the header
  std::uint64_t end = 0;            ///< likewise, behind the last byte

  /// The product of the shape.
  [[nodiscard]] std::uint64_t elements() const { return (end - begin) / size_of(type); }

  friend bool operator==(tensor_info const&, tensor_info const&) = default;  ///< of type, shape and place
};

/// Checked before memory of that size is allocated.
struct safetensors_limits {
  std::size_t header_bytes = std::size_t{32} << 20;  ///< the format's own limit is 100,000,000
  std::size_t tensors = 200'000;                     ///< in the file
};

/// A safetensors file open for reading. Its header was checked completely: known types, unique names, and
/// tensors that fill the file without gap, overlap or rest. Several threads may read at once. The file is not
/// memory-mapped.
class safetensors_file {
public:
  /// \throws error(bad_input) naming the file, the field and what was expected, error(io_failure) when
  /// reading fails.
  static safetensors_file open(std::filesystem::path const& path, safetensors_limits limits = {});

  /// As the file was opened.
  [[nodiscard]] std::filesystem::path const& path() const noexcept { return file_.path(); }
  /// By name; valid as long as the file.
  [[nodiscard]] std::map<std::string, tensor_info, std::less<>> const& tensors() const noexcept {
    return tensors_;
  }
  /// The header's "__metadata__".
  [[nodiscard]] std::map<std::string, std::string> const& metadata() const noexcept { return metadata_; }

  /// Reads elements [first, first + out.size()) of `tensor`, one of tensors(), widened to float. Not for u8.
  void read(tensor_info const& tensor, std::uint64_t first, std::span<float> out) const;

  /// Reads bytes [first, first + out.size()) of `tensor`, unconverted.
  void read_raw(tensor_info const& tensor, std::uint64_t first, std::span<std::byte> out) const;

private:
  explicit safetensors_file(file opened) : file_{std::move(opened)} {}

  void parse_header(std::string_view header, std::uint64_t data_bytes, safetensors_limits limits);

  file file_;
  std::uint64_t data_begin_ = 0;
  std::map<std::string, tensor_info, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// A tensor's name, type and shape, declared before its data are written.
struct tensor_declaration {
  std::string name;                 ///< unique in the file
  dtype type = dtype::f32;          ///< of the data that follow
  std::vector<std::int64_t> shape;  ///< row-major; empty for a scalar

  /// Size of the data. \throws error(bad_input) when a dimension is negative or the size exceeds 2^63 - 1.
  [[nodiscard]] std::uint64_t bytes() const;
};

/// Writes a safetensors file sequentially in bounded memory, in a thread beside the caller: all tensors are
/// declared first, and their data follow in the order of declaration. If wider types are declared first,
/// every tensor is aligned to its element.
class safetensors_writer {
public:
  /// Creates `path`, reserves its full size and writes the header.
  /// \throws error(io_failure) when it exists or the disk is full, error(bad_input) for a name used twice.
  safetensors_writer(std::filesystem::path const& path, std::span<tensor_declaration const> tensors);

  /// The largest span that next() gives.
  static constexpr std::size_t most_bytes = write_behind::buffer_bytes;
  /// Memory for the next `bytes` of the data, at most most_bytes, to be filled before commit(). A tensor may
  /// be written in several pieces. \throws error(io_failure), also for earlier pieces.
  std::span<std::byte> next(std::size_t bytes);
  /// Appends what next() gave.
  void commit();
  /// The same with data of any size that exist already.
  void write(std::span<std::byte const> data);

  /// Call last: on return the file is complete and on stable storage.
  /// \throws error(internal) unless all declared data were written.
  void finish();

private:
  std::optional<write_behind> file_;
  std::uint64_t position_ = 0;
  std::uint64_t end_ = 0;
  std::size_t piece_ = 0;  ///< bytes that next() gave
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/safetensors_inl.hpp>
#endif
