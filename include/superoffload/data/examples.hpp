// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/example_set.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/data/row_encoder.hpp>
#include <superoffload/data/row_format.hpp>
#include <superoffload/data/row_reader.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace superoffload::data {

/// How a data set is read.
struct reading_options {
  row_format format = row_format::automatic;  ///< automatic: by the first row of the first file
  column_names columns{};                     ///< for fields that the files call otherwise
  double percentage = 100.0;                  ///< of the rows, from the beginning
  std::size_t first = std::numeric_limits<std::size_t>::max();  ///< read so many rows at most
  row_limits limits{};  ///< bytes of each file, rows of all files together
};

/// The format of the rows of `files`: that of the options, unless it is automatic.
/// \throws error(bad_input) when the first row has the fields of no format
row_format format_of(std::span<std::filesystem::path const> files, reading_options const& options);

/// Gets every row and its ids, in the order of the files.
using row_use = std::function<void(row const&, encoded_row const&)>;

/// Reads a data set, the rows of one file after the other, and turns each row into ids, with several threads.
/// Holds few rows at a time.
/// \throws error(bad_input) that names file, line and field
void encode_rows(std::span<std::filesystem::path const> files, reading_options const& reading,
                 row_encoder const& encoder, row_use const& use);

/// The number of rows that the options use. \throws error(bad_input) for a file whose rows cannot be told
/// apart
std::size_t count_rows(std::span<std::filesystem::path const> files, reading_options const& options);

/// All rows as examples. Some may end up without labels, but not all. `notes` gets what a user should know of
/// them.
/// \throws error(bad_input) as encode_rows() does, and when no row has a label
example_set read_examples(std::span<std::filesystem::path const> files, reading_options const& reading,
                          row_encoder const& encoder, std::vector<std::string>* notes = nullptr);

/// The same for rows of Alpaca that are already in memory.
/// \throws error(bad_input) when no row has a label, or when end-of-text is asked for and `eos` is missing
example_set encode_examples(std::span<instruction const> rows, text_encoder const& encode,
                            std::optional<std::int32_t> eos, encoding_options const& options);

example_set encode_examples(std::span<instruction const> rows, text::tokenizer const& tokenizer,
                            encoding_options const& options);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/examples_inl.hpp>
#endif
