// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/data/row_reader.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace superoffload::data {

/// One row of an Alpaca data set. `input` may be empty.
struct instruction {
  std::string instruction;
  std::string input;   ///< what the instruction is applied to, or empty
  std::string output;  ///< the answer, which is learnt
};

/// Reads a data set of Alpaca rows in UTF-8. `instruction` and `output` are required strings, `input` may be
/// missing or null, other fields are ignored.
/// \throws error(bad_input) naming file, line (where the row begins) and field; also for a set without rows.
std::vector<instruction> read_instructions(std::filesystem::path const& file, row_limits const& limits = {});

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/instructions_inl.hpp>
#endif
