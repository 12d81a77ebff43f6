// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string_view>

namespace superoffload::data {
namespace detail {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
inline constexpr std::string_view blanks = " \t\r\n";

class reader {
public:
  reader(std::filesystem::path const& file, instruction_limits const& limits)
      : file_{file}, limits_{limits} {}

  std::vector<instruction> read() {
    std::error_code status;
    bool const regular =
        std::filesystem::is_regular_file(file_, status);  // opening a pipe would wait for its writer
    std::ifstream stream;
    if (regular) {
      stream.open(file_, std::ios::binary);
    }
    expect(stream.is_open(), exit_code::bad_input, file_.string(),
           ": cannot be opened; expected a data set: a JSON list or JSON lines");
    auto const bytes = std::filesystem::file_size(file_);
    std::string beginning(byte_order_mark.size(), '\0');
    stream.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
    std::size_t const skipped = beginning == byte_order_mark ? byte_order_mark.size() : 0;
    stream.clear();
    stream.seekg(static_cast<std::streamoff>(skipped));
    bool const list = (stream >> std::ws).peek() == '[';
    auto const most = list ? limits_.list_bytes : limits_.lines_bytes;
    expect(bytes <= most, exit_code::bad_input, file_.string(), ": ", bytes, " bytes, expected at most ",
           most,
           list ? " in a JSON list; write it as JSON lines, one object a line" : "; split the data set");
    if (list) {
      auto const text = io::read_file(file_, most);
      read_list(std::string_view{text}.substr(skipped));
    } else {
      stream.clear();
      stream.seekg(static_cast<std::streamoff>(skipped));
      read_lines(stream);
    }
    expect(!rows_.empty(), exit_code::bad_input, file_.string(),
           ": the data set is empty; expected at least one object with 'instruction' and 'output'");
    return std::move(rows_);
  }

private:
  [[nodiscard]] std::string here() const { return concat(file_.string(), ":", line_); }

  void add(std::string_view text) {
    auto const origin = here();
    expect(text.size() <= limits_.row_bytes, exit_code::bad_input, origin, ": a row of ", text.size(),
           " bytes, expected at most ", limits_.row_bytes);
    expect(rows_.size() < limits_.rows, exit_code::bad_input, origin, ": more than ", limits_.rows,
           " rows; split the data set");
    // The parser would skip the byte order mark.
    expect(!text.starts_with(byte_order_mark), exit_code::bad_input, origin,
           ": a byte order mark inside the file; expected it at the beginning only");
    auto const document = io::parse_json(text, origin, {limits_.row_bytes, limits_.depth});
    io::json_field const row{document, origin};
    rows_.push_back({row["instruction"].text(), row.has("input") ? row["input"].text() : std::string{},
                     row["output"].text()});
  }

  void read_lines(std::istream& stream) {
    std::string buffer(limits_.row_bytes + 1, '\0');  // including the zero that getline writes
    while (stream.getline(buffer.data(), static_cast<std::streamsize>(buffer.size())) ||
           stream.gcount() > 0) {
      ++line_;
      expect(!stream.fail(), exit_code::bad_input, here(), ": a line longer than ", limits_.row_bytes,
             " bytes; expected one object a line");
      std::string_view text{buffer.data(),
                            static_cast<std::size_t>(stream.gcount()) - (stream.eof() ? 0 : 1)};
      if (text.find_first_not_of(blanks) != text.npos) {
        add(text);
      }
    }
    expect(!stream.bad(), exit_code::io_failure, file_.string(), ": reading failed after line ", line_);
  }

  /// Cuts the list into its objects, so that memory is bounded by text and rows, and errors name their line.
  void read_list(std::string_view text) {
    line_ = 1;
    std::size_t at = 0;
    skip_blanks(text, at);
    ++at;  // the bracket
    skip_blanks(text, at);
    bool open = !(at < text.size() && text[at] == ']');
    while (open) {
      expect(at < text.size() && text[at] == '{', exit_code::bad_input, here(), ": row ", rows_.size() + 1,
             ": expected an object, found ", shown(text, at));
      auto const size = size_of_object(text.substr(at));
      expect(size != text.npos, exit_code::bad_input, here(), ": row ", rows_.size() + 1,
             ": the object that begins here has no end");
      auto const object = text.substr(at, size);
      add(object);
      line_ += std::count(object.begin(), object.end(), '\n');
      at += size;
      skip_blanks(text, at);
      open = at < text.size() && text[at] == ',';
      if (open) {
        skip_blanks(text, ++at);
      }
    }
    expect(at < text.size() && text[at] == ']', exit_code::bad_input, here(),
           ": expected ',' or ']' after row ", rows_.size(), ", found ", shown(text, at));
    skip_blanks(text, ++at);
    expect(at == text.size(), exit_code::bad_input, here(), ": expected nothing after the list, found ",
           shown(text, at));
  }

  void skip_blanks(std::string_view text, std::size_t& at) {
    auto const end = std::min(text.find_first_not_of(blanks, at), text.size());
    line_ += std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                        text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    at = end;
  }

  static std::size_t size_of_object(std::string_view text) {
    std::size_t level = 0;
    bool quoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
      char const c = text[at];
      if (quoted) {
        at += c == '\\' ? 1 : 0;
        quoted = c != '"';
      } else if (c == '"') {
        quoted = true;
      } else if (c == '{') {
        ++level;
      } else if (c == '}' && --level == 0) {
        return at + 1;
      }
    }
    return text.npos;
  }

  static std::string shown(std::string_view text, std::size_t at) {
    return at < text.size() ? concat("'", printable(text.substr(at, 20)), "'") : "the end of the file";
  }

  std::filesystem::path const& file_;
  instruction_limits const& limits_;
  std::vector<instruction> rows_;
  std::int64_t line_ = 0;
};

}  // namespace detail

SUPEROFFLOAD_INLINE std::vector<instruction> read_instructions(std::filesystem::path const& file,
                                                               instruction_limits const& limits) {
  return detail::reader{file, limits}.read();
}

SUPEROFFLOAD_INLINE std::size_t rows_of_percentage(std::size_t rows, double percentage) {
  expect(percentage > 0.0 && percentage <= 100.0, exit_code::bad_input, "dataset percentage: ", percentage,
         ", expected more than 0 and at most 100");
  auto const part = static_cast<std::size_t>(static_cast<double>(rows) * percentage / 100.0);
  return std::clamp<std::size_t>(part, std::min<std::size_t>(rows, 1), rows);
}

}  // namespace superoffload::data
