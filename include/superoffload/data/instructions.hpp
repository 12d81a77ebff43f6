// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace superoffload::data {

/// One row of an Alpaca data set. `input` may be empty.
struct instruction {
  std::string instruction;
  std::string input;
  std::string output;
};

/// Upper limits of a data set. Checked before memory is allocated.
struct instruction_limits {
  std::uint64_t list_bytes = std::uint64_t{1} << 30;   ///< a JSON list is held in memory while it is read
  std::uint64_t lines_bytes = std::uint64_t{8} << 30;  ///< JSON lines are read one by one
  std::size_t row_bytes = std::size_t{16} << 20;       ///< a line, or an object of the list
  std::size_t rows = 50'000'000;
  int depth = 32;
};

/// Reads a data set in UTF-8: one JSON list of objects, or one object a line, by the first character.
/// `instruction` and `output` are required strings, `input` may be missing or null, other fields are ignored.
/// A byte order mark at the beginning, CRLF and blank lines are accepted.
/// \throws error(bad_input) naming file, line (where the row begins) and field; also for a set without rows.
std::vector<instruction> read_instructions(std::filesystem::path const& file,
                                           instruction_limits const& limits = {});

/// `percentage` of `rows`, rounded down, at least one. The caller takes that many from the beginning.
/// \throws error(bad_input) unless 0 < percentage <= 100
std::size_t rows_of_percentage(std::size_t rows, double percentage);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/instructions_inl.hpp>
#endif
