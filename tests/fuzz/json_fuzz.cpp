// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/json.hpp>

#include "fuzz.hpp"

using namespace superoffload;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const text = fuzz::text_of(data, size);
  fuzz::expect_refusal_at_most([&] {
    auto const document = io::parse_json(text, "input");
    fuzz::require(io::parse_json(document.dump(), "again") == document,
                  "what was parsed can be written and parsed");
  });
  return 0;
}
