// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/file.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace superoffload::io {

/// Bytes that are read once, from the beginning to the end.
class byte_stream {
public:
  virtual ~byte_stream() = default;

  /// Fills a part of `out`, at least one byte unless the end is reached. \returns how many; 0: the end.
  /// \throws error(io_failure) when reading fails, error(bad_input) for a damaged file
  virtual std::size_t read(std::span<char> out) = 0;
};

/// The content of a regular file.
/// \throws error(bad_input) when there is no such file or it is not a regular one
std::unique_ptr<byte_stream> open_stream(std::filesystem::path const& path);
/// The same for a file that was opened for reading.
std::unique_ptr<byte_stream> open_stream(file opened);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/byte_stream_inl.hpp>
#endif
