// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/byte_stream.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace superoffload::data {

/// Upper limits of a data set's file. Checked before memory is allocated.
struct row_limits {
  std::uint64_t bytes = std::uint64_t{8} << 30;   ///< of the file, packed and unpacked
  std::size_t row_bytes = std::size_t{16} << 20;  ///< a line, or an object of the list
  std::size_t rows = 50'000'000;                  ///< of the file
  int depth = 32;                                 ///< levels of nested JSON in a row
};

/// A row as it stands in its file.
struct row {
  std::string text;    ///< JSON, not yet checked
  std::string origin;  ///< "file:line", where it begins
};

/// Reads a file row by row: one JSON list of objects, or JSON lines, by the first character. Unpacks what
/// gzip or zstd packed (io::open_unpacked). Holds little more than one row. A byte order mark at the
/// beginning, CRLF and blank lines are accepted.
class row_reader {
public:
  /// \throws error(bad_input) when `file` is no regular file or too large
  explicit row_reader(std::filesystem::path file, row_limits const& limits = {});

  /// The next row; nothing at the end.
  /// \throws error(bad_input) that names file and line; also at the end of a file without rows
  std::optional<row> next();

private:
  enum class form { unknown, list, lines, ended };

  [[nodiscard]] std::string here() const;
  [[nodiscard]] std::string_view rest() const { return std::string_view{window_}.substr(at_); }
  bool ensure(std::size_t bytes);
  void skip_blanks();
  std::string shown();
  void expect_json();
  void begin();
  std::optional<row> next_line();
  std::optional<row> next_object();
  std::size_t object_bytes();
  void end_list();
  row take(std::size_t bytes);

  std::filesystem::path file_;
  row_limits limits_;
  std::unique_ptr<io::byte_stream> bytes_;
  std::string window_;  ///< a part of the file
  std::size_t at_ = 0;  ///< where in it the unread bytes begin
  std::uint64_t read_ = 0;
  std::int64_t line_ = 1;  ///< of the first unread byte
  std::size_t rows_ = 0;
  form form_ = form::unknown;
};

/// `percentage` of `rows`, rounded down, at least one. The caller takes that many from the beginning.
/// \throws error(bad_input) unless 0 < percentage <= 100
std::size_t rows_of_percentage(std::size_t rows, double percentage);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/row_reader_inl.hpp>
#endif
