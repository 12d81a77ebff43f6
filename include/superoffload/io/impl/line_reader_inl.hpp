// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/line_reader.hpp>

#include <span>
#include <utility>

namespace superoffload::io {
namespace detail {

inline constexpr std::size_t longest_line = std::size_t{16} << 20;

}  // namespace detail

SUPEROFFLOAD_INLINE line_reader::line_reader(std::filesystem::path file)
    : file_{std::move(file)}, bytes_{open_stream(file_)} {}

SUPEROFFLOAD_INLINE std::optional<std::string> line_reader::next() {
  std::string line;
  while (true) {
    if (used_ == read_.size()) {
      read_.resize(std::size_t{64} << 10);
      read_.resize(bytes_->read(std::span{read_}));
      used_ = 0;
    }
    if (read_.empty()) {
      ended_ = false;
      return line.empty() ? std::nullopt : std::optional{std::move(line)};
    }
    auto const end = read_.find('\n', used_);
    line.append(read_, used_, end - used_);
    expect(line.size() <= detail::longest_line, exit_code::bad_input, shown(file_), ": a line of more than ",
           detail::longest_line, " bytes; expected shorter lines");
    if (end != read_.npos) {
      used_ = end + 1;
      ended_ = true;
      return line;
    }
    used_ = read_.size();
  }
}

}  // namespace superoffload::io
