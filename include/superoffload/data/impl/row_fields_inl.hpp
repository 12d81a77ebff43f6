// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/row_format.hpp>
#include <superoffload/io/json.hpp>

#include <string>

namespace superoffload::data::detail {

/// A row's fields, under the names that the format has for them.
class row_fields {
public:
  row_fields(io::json const& document, std::string const& origin, column_names const& columns)
      : row_{document, origin}, columns_{&columns} {}

  [[nodiscard]] bool has(std::string const& field) const { return row_.has(column_of(*columns_, field)); }
  [[nodiscard]] io::json_field operator[](std::string const& field) const {
    return row_[column_of(*columns_, field)];
  }
  /// Empty where the field is missing or null.
  [[nodiscard]] std::string text_or_empty(std::string const& field) const {
    return has(field) ? (*this)[field].text() : std::string{};
  }

private:
  io::json_field row_;
  column_names const* columns_;
};

}  // namespace superoffload::data::detail
