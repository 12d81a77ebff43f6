// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/row_format.hpp>
#include <superoffload/io/json.hpp>

#include <algorithm>

namespace superoffload::data {
namespace detail {

inline constexpr std::array<std::string_view, 14> known_fields{
    "instruction",   "input",  "output",     "system", "history",   "messages", "tools",
    "conversations", "prompt", "completion", "text",   "input_ids", "labels",   "attention_mask"};

/// A field that marks a row of a format, and another one that such a row must have.
struct format_mark {
  char const* field;
  row_format format;
  char const* other;  ///< null: none
};
/// In the order of the search: rows of chats often have a prompt beside, and those of Alpaca a text.
inline constexpr std::array<format_mark, 7> marks{{{"messages", row_format::messages, nullptr},
                                                   {"conversations", row_format::sharegpt, nullptr},
                                                   {"input_ids", row_format::tokenized, nullptr},
                                                   {"instruction", row_format::alpaca, "output"},
                                                   {"prompt", row_format::prompt_completion, "completion"},
                                                   {"completion", row_format::prompt_completion, "prompt"},
                                                   {"text", row_format::text, nullptr}}};

/// The row's fields for a message, some 200 bytes of them.
SUPEROFFLOAD_INLINE std::string shown_fields(io::json const& document) {
  std::string found;
  for (auto const& field : document.items()) {
    found += concat(found.empty() ? "" : ", ", "'", printable(field.key(), 40), "'");
    if (found.size() > 200) {
      found += ", ...";
      break;
    }
  }
  return found.empty() ? "of {}" : found;
}

}  // namespace detail

SUPEROFFLOAD_INLINE column_names parse_columns(std::string_view text) {
  column_names columns;
  while (!text.empty()) {
    auto const end = std::min(text.find(','), text.size());
    auto const one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    auto const equal = std::min(one.find('='), one.size());
    auto const field = one.substr(0, equal);
    expect(equal + 1 < one.size(), exit_code::bad_input, "--columns: '", printable(one),
           "', expected FIELD=NAME, the format's field and its name in the data");
    std::string known;
    for (auto const name : detail::known_fields) { known += concat(known.empty() ? "" : ", ", name); }
    expect(std::ranges::find(detail::known_fields, field) != detail::known_fields.end(), exit_code::bad_input,
           "--columns: '", printable(field), "' is no field of a format; expected one of ", known);
    expect(columns.emplace(field, one.substr(equal + 1)).second, exit_code::bad_input, "--columns: '", field,
           "' appears twice, expected each field once");
  }
  return columns;
}

SUPEROFFLOAD_INLINE std::string to_text(column_names const& columns) {
  std::string text;
  for (auto const& [field, name] : columns) { text += concat(text.empty() ? "" : ",", field, "=", name); }
  return text;
}

SUPEROFFLOAD_INLINE row_format format_of(row const& first, column_names const& columns, int depth) {
  auto const document = io::parse_json(first.text, first.origin, {first.text.size(), depth});
  io::json_field{document, first.origin}.require_object();
  for (auto const& mark : detail::marks) {
    if (!document.contains(column_of(columns, mark.field))) {
      continue;
    }
    if (mark.other != nullptr && !document.contains(column_of(columns, mark.other))) {
      fail(exit_code::bad_input, first.origin, ": '", printable(column_of(columns, mark.field)),
           "' without '", printable(column_of(columns, mark.other)), "'; the row has ",
           detail::shown_fields(document), "; name the one meant with --columns ", mark.other, "=NAME");
    }
    return mark.format;
  }
  for (auto const& field : document.items()) {
    bool const holds_rows =
        field.value().is_array() && !field.value().empty() && field.value()[0].is_object();
    expect(!holds_rows, exit_code::bad_input, first.origin, ": the rows are in the field '",
           printable(field.key(), 40), "', expected them as one list or one object per line: jq -c '.[\"",
           printable(field.key(), 40), "\"][]' FILE > LINES");
  }
  fail(exit_code::bad_input, first.origin, ": no format has the fields ", detail::shown_fields(document),
       "; expected instruction and output, messages, conversations, prompt and completion, text, or "
       "input_ids; rename fields with --columns, such as --columns instruction=question,output=answer");
}

}  // namespace superoffload::data
