// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/messages.hpp>

namespace superoffload::data {

SUPEROFFLOAD_INLINE encoded_row encode_messages(std::string_view json, std::string const& origin,
                                                column_names const& columns, row_encoder const& encoder) {
  auto encoded =
      encoder.encode_messages(json, origin, {column_of(columns, "messages"), column_of(columns, "tools")});
  expect(!encoded.ids.empty(), exit_code::bad_input, origin, ": the row is empty: it makes no token");
  return encoded;
}

}  // namespace superoffload::data
