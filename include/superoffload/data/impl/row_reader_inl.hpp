// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/row_reader.hpp>
#include <superoffload/io/unpacked_stream.hpp>

#include <algorithm>
#include <system_error>
#include <utility>

namespace superoffload::data {
namespace detail {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
inline constexpr std::string_view blanks = " \t\r\n";
inline constexpr std::size_t read_bytes = std::size_t{1} << 18;

/// Is it OWNER/NAME, as data sets are called on the Hugging Face hub?
SUPEROFFLOAD_INLINE bool is_name_of_hub(std::filesystem::path const& file) {
  std::error_code status;
  auto const owner = file.parent_path();
  return file.is_relative() && !owner.empty() && !owner.has_parent_path() &&
         !std::filesystem::exists(owner, status);
}

}  // namespace detail

SUPEROFFLOAD_INLINE row_reader::row_reader(std::filesystem::path file, row_limits const& limits)
    : file_{std::move(file)}, limits_{limits} {
  std::error_code status;
  // Opening a pipe would wait for its writer.
  if (!std::filesystem::is_regular_file(file_, status)) {
    bool const exists = std::filesystem::exists(file_, status);
    fail(exit_code::bad_input, file_.string(), exists ? ": is no regular file" : ": cannot be opened",
         "; expected a data set: a JSON list or JSON lines",
         detail::is_name_of_hub(file_) ? "; nothing is downloaded: give the path of a downloaded file" : "");
  }
  auto const bytes = std::filesystem::file_size(file_, status);
  expect(!status && bytes <= limits_.bytes, exit_code::bad_input, file_.string(), ": ", bytes,
         " bytes, expected at most ", limits_.bytes, "; split the data set");
  bytes_ = io::open_unpacked(file_);
}

SUPEROFFLOAD_INLINE std::string row_reader::here() const { return concat(file_.string(), ":", line_); }

/// Are there so many unread bytes? Reads as far as that takes.
SUPEROFFLOAD_INLINE bool row_reader::ensure(std::size_t bytes) {
  while (window_.size() - at_ < bytes) {
    window_.erase(0, std::exchange(at_, 0));
    auto const kept = window_.size();
    window_.resize(kept + detail::read_bytes);
    auto const got = bytes_->read(std::span{window_}.subspan(kept));
    window_.resize(kept + got);
    if (got == 0) {
      return false;
    }
    read_ += got;
    expect(read_ <= limits_.bytes, exit_code::bad_input, file_.string(), ": more than ", limits_.bytes,
           " bytes; split the data set");
  }
  return true;
}

SUPEROFFLOAD_INLINE void row_reader::skip_blanks() {
  while (ensure(1) && detail::blanks.find(window_[at_]) != detail::blanks.npos) {
    line_ += window_[at_++] == '\n' ? 1 : 0;
  }
}

/// What is found where something else was expected.
SUPEROFFLOAD_INLINE std::string row_reader::shown() {
  constexpr std::size_t some = 20;
  ensure(some);
  return rest().empty() ? "the end of the file" : concat("'", printable(rest().substr(0, some)), "'");
}

/// A file of another kind is not JSON that begins badly: what converts it is said.
SUPEROFFLOAD_INLINE void row_reader::expect_json() {
  auto const name = printable(file_.native(), 1000);
  ensure(4);
  expect(
      !rest().starts_with("PAR1"), exit_code::bad_input, name,
      ": is a Parquet file, expected JSON lines: pandas.read_parquet(FILE).to_json(LINES, orient='records', "
      "lines=True) in Python converts it");
  auto const kind = std::filesystem::path{io::unpacked_name(file_.native())}.extension();
  if (kind == ".csv" || kind == ".tsv") {
    fail(exit_code::bad_input, name, ": is a table, expected JSON lines: pandas.read_csv(FILE",
         kind == ".tsv" ? ", sep='\\t'" : "",
         ").to_json(LINES, orient='records', lines=True) in Python converts it");
  }
}

SUPEROFFLOAD_INLINE void row_reader::begin() {
  expect_json();
  if (ensure(detail::byte_order_mark.size()) && rest().starts_with(detail::byte_order_mark)) {
    at_ += detail::byte_order_mark.size();
  }
  skip_blanks();
  form_ = ensure(1) && window_[at_] == '[' ? form::list : form::lines;
  if (form_ == form::list) {
    ++at_;
    skip_blanks();
    if (ensure(1) && window_[at_] == ']') {
      end_list();
    }
  }
}

SUPEROFFLOAD_INLINE row row_reader::take(std::size_t bytes) {
  expect(rows_ < limits_.rows, exit_code::bad_input, here(), ": more than ", limits_.rows,
         " rows; split the data set");
  row taken{std::string{rest().substr(0, bytes)}, here()};
  // The parser would skip the byte order mark.
  expect(!taken.text.starts_with(detail::byte_order_mark), exit_code::bad_input, taken.origin,
         ": a byte order mark inside the file; expected it at the beginning only");
  line_ += std::count(taken.text.begin(), taken.text.end(), '\n');
  at_ += bytes;
  ++rows_;
  return taken;
}

SUPEROFFLOAD_INLINE std::optional<row> row_reader::next_line() {
  skip_blanks();
  std::size_t bytes = 0;
  while (ensure(bytes + 1) && window_[at_ + bytes] != '\n') {
    bytes = std::min(rest().find('\n', bytes), rest().size());
    expect(bytes <= limits_.row_bytes, exit_code::bad_input, here(), ": a line longer than ",
           limits_.row_bytes, " bytes; expected one object a line");
  }
  if (bytes == 0) {
    form_ = form::ended;
    return std::nullopt;
  }
  auto const line = rest().substr(0, bytes);
  expect(line.front() != '{' || line.find_first_not_of(detail::blanks, 1) != line.npos, exit_code::bad_input,
         here(), ": an object that goes over several lines; expected one a line: jq -c . FILE > LINES");
  return take(bytes);
}

/// Of the object that begins at the first unread byte.
SUPEROFFLOAD_INLINE std::size_t row_reader::object_bytes() {
  std::size_t level = 0;
  bool quoted = false;
  for (std::size_t i = 0;; ++i) {
    expect(ensure(i + 1), exit_code::bad_input, here(), ": row ", rows_ + 1,
           ": the object that begins here has no end");
    expect(i < limits_.row_bytes, exit_code::bad_input, here(), ": a row longer than ", limits_.row_bytes,
           " bytes; expected shorter rows");
    char const c = window_[at_ + i];
    if (quoted) {
      i += c == '\\' ? 1 : 0;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{') {
      ++level;
    } else if (c == '}' && --level == 0) {
      return i + 1;
    }
  }
}

SUPEROFFLOAD_INLINE std::optional<row> row_reader::next_object() {
  if (rows_ > 0) {
    skip_blanks();
    if (ensure(1) && window_[at_] == ']') {
      end_list();
      return std::nullopt;
    }
    expect(ensure(1) && window_[at_] == ',', exit_code::bad_input, here(), ": expected ',' or ']' after row ",
           rows_, ", found ", shown());
    ++at_;
    skip_blanks();
  }
  expect(ensure(1) && window_[at_] == '{', exit_code::bad_input, here(), ": row ", rows_ + 1,
         ": expected an object, found ", shown());
  return take(object_bytes());
}

SUPEROFFLOAD_INLINE void row_reader::end_list() {
  ++at_;
  skip_blanks();
  expect(!ensure(1), exit_code::bad_input, here(), ": expected nothing after the list, found ", shown());
  form_ = form::ended;
}

SUPEROFFLOAD_INLINE std::optional<row> row_reader::next() {
  if (form_ == form::unknown) {
    begin();
  }
  std::optional<row> found;
  if (form_ == form::list) {
    found = next_object();
  } else if (form_ == form::lines) {
    found = next_line();
  }
  expect(rows_ > 0, exit_code::bad_input, file_.string(),
         ": the data set is empty; expected at least one row, a JSON object");
  return found;
}

SUPEROFFLOAD_INLINE std::size_t rows_of_percentage(std::size_t rows, double percentage) {
  expect(percentage > 0.0 && percentage <= 100.0, exit_code::bad_input, "dataset percentage: ", percentage,
         ", expected more than 0 and at most 100");
  auto const part = static_cast<std::size_t>(static_cast<double>(rows) * percentage / 100.0);
  return std::clamp<std::size_t>(part, std::min<std::size_t>(rows, 1), rows);
}

}  // namespace superoffload::data
