// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/io/json.hpp>

namespace superoffload::data {

SUPEROFFLOAD_INLINE std::vector<instruction> read_instructions(std::filesystem::path const& file,
                                                               row_limits const& limits) {
  row_reader reader{file, limits};
  std::vector<instruction> rows;
  while (auto const read = reader.next()) {
    auto const document = io::parse_json(read->text, read->origin, {limits.row_bytes, limits.depth});
    io::json_field const row{document, read->origin};
    rows.push_back({row["instruction"].text(), row.has("input") ? row["input"].text() : std::string{},
                    row["output"].text()});
  }
  return rows;
}

}  // namespace superoffload::data
