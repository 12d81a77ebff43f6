// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/byte_stream.hpp>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace superoffload::io {

/// The lines of a text file, one after the other.
class line_reader {
public:
  /// \throws error(bad_input) when there is no such file or it is not a regular one, error(io_failure).
  explicit line_reader(std::filesystem::path file);

  /// The next line without its end; nothing behind the last one.
  /// \throws error(bad_input) for a line of more than 16 MiB, error(io_failure).
  std::optional<std::string> next();

  /// Had the last line of next() its end? The last line of a file may have none.
  [[nodiscard]] bool ended() const noexcept { return ended_; }

private:
  std::filesystem::path file_;
  std::unique_ptr<byte_stream> bytes_;
  std::string read_;      // from the file
  std::size_t used_ = 0;  // of `read_`
  bool ended_ = true;
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/line_reader_inl.hpp>
#endif
