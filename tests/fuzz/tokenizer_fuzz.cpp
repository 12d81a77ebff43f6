// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/tokenizer.hpp>

#include "fuzz.hpp"

using namespace superoffload;

/// A tokenizer.json, with texts that it cuts.
int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::scratch_directory const directory;
  directory.write("tokenizer.json", fuzz::text_of(data, size));
  fuzz::expect_refusal_at_most([&] {
    auto const tokenizer = text::tokenizer::load(directory.path());
    for (std::string_view const text :
         {"", " ab", "It's 12 \xc3\xa9\n\n  ab<s>ba", "\xf0\x9f\x99\x82\xe2\x80\x83x"}) {
      auto const ids = tokenizer.encode(text);
      for (auto const id : ids) {
        fuzz::require(id >= 0 && id < tokenizer.size(), "ids are below the tokenizer's size");
      }
      static_cast<void>(tokenizer.decode(ids));
    }
  });
  return 0;
}
