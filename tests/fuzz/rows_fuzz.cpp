// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/examples.hpp>

#include "fuzz.hpp"

#include <array>

using namespace superoffload;

namespace {

/// An id for each byte: a tokenizer of the model's would be no part of the rows.
data::row_encoder const& encoder() {
  static data::row_encoder const of_bytes{
      [](std::string_view text) { return std::vector<std::int32_t>(text.begin(), text.end()); },
      0,
      {.max_length = 64, .threads = 1, .vocabulary = 256}};
  return of_bytes;
}

}  // namespace

/// A data set, in the format that its first row has.
int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const input = fuzz::text_of(data, size);
  if (input.starts_with("\x1f\x8b") || input.starts_with("\x28\xb5\x2f\xfd")) {
    return 0;  // other programs unpack these
  }
  static fuzz::scratch_directory const directory;
  std::array const files{directory.write("rows.json", input)};
  fuzz::expect_refusal_at_most([&] {
    data::reading_options reading;
    reading.format = data::format_of(files, reading);
    if (data::has_conversations(reading.format)) {
      return;  // chat_fuzz.cpp renders them
    }
    std::size_t rows = 0;
    data::encode_rows(files, reading, encoder(), [&](data::row const&, data::encoded_row const& row) {
      ++rows;
      fuzz::require(row.ids.size() <= 64, "a row is cut to the length of a sequence");
      for (auto const& learnt : row.learnt) {
        fuzz::require(0 <= learnt.begin && learnt.begin <= learnt.end &&
                          learnt.end <= static_cast<std::int64_t>(row.ids.size()),
                      "what is learnt is a part of the row");
      }
    });
    fuzz::require(rows == data::count_rows(files, reading), "all rows are read");
  });
  return 0;
}
