// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/row_reader.hpp>

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace superoffload::data {

/// What the fields of a row mean.
enum class row_format {
  automatic,          ///< by the fields of the first row
  alpaca,             ///< instruction, output, and maybe input, system
  messages,           ///< messages with role and content, and maybe tools
  sharegpt,           ///< conversations with from and value
  prompt_completion,  ///< prompt, completion: the completion is learnt
  text,               ///< text: all of it is learnt
  tokenized,          ///< input_ids, and maybe labels or attention_mask
};

inline constexpr std::array<std::pair<std::string_view, row_format>, 7> row_formats{
    {{"auto", row_format::automatic},
     {"alpaca", row_format::alpaca},
     {"messages", row_format::messages},
     {"sharegpt", row_format::sharegpt},
     {"prompt_completion", row_format::prompt_completion},
     {"text", row_format::text},
     {"tokenized", row_format::tokenized}}};

constexpr std::string_view name_of(row_format format) {
  return row_formats[static_cast<std::size_t>(format)].first;
}

/// Whether a chat template makes a text of such a row.
constexpr bool has_conversations(row_format format) {
  return format == row_format::messages || format == row_format::sharegpt;
}

/// What the file calls the fields of a format, for those that it calls otherwise.
using column_names = std::map<std::string, std::string, std::less<>>;

/// The file's name of `field`.
inline std::string const& column_of(column_names const& columns, std::string const& field) {
  auto const renamed = columns.find(field);
  return renamed == columns.end() ? field : renamed->second;
}

/// Parses "field=name,field=name". \throws error(bad_input) for a field that no format has, one that appears
/// twice, or an empty name
column_names parse_columns(std::string_view text);
/// The text that parse_columns() reads.
std::string to_text(column_names const& columns);

/// The format whose fields `first` has. \throws error(bad_input) when it is no object, or no format's
row_format format_of(row const& first, column_names const& columns, int depth);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/row_format_inl.hpp>
#endif
