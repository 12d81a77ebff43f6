// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/chat_template.hpp>

#include "fuzz.hpp"

using namespace superoffload;

/// A row of a data set, as each of the known templates writes it.
int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const row = fuzz::text_of(data, size);
  for (auto const name : text::chat_template::names()) {
    fuzz::expect_refusal_at_most([&] {
      auto const talk = text::chat_template::named(name).render(row, "input:1", {});
      std::size_t end = 0;
      for (auto const& turn : talk.turns) {
        fuzz::require(end <= turn.begin && turn.begin <= turn.end && turn.end <= talk.text.size(),
                      "turns are in order, inside of the text");
        end = turn.end;
      }
    });
  }
  return 0;
}
