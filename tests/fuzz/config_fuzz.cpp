// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/config.hpp>

#include "fuzz.hpp"

#include <cmath>

using namespace superoffload;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::scratch_directory const directory;
  directory.write("config.json", fuzz::text_of(data, size));
  fuzz::expect_refusal_at_most([&] {
    auto const c = model::read_config(directory.path());
    fuzz::require(c.hidden > 0 && c.layers > 0 && c.vocabulary > 0, "a model has a size");
    fuzz::require(c.heads % c.kv_heads == 0, "as many heads of queries share each head of keys");
    auto const frequencies = model::inverse_frequencies(c);
    fuzz::require(frequencies.size() <= static_cast<std::size_t>(c.head_dim), "a head rotates at most itself");
    for (auto const frequency : frequencies) {
      fuzz::require(std::isfinite(frequency) && frequency >= 0.0, "frequencies are numbers");
    }
  });
  return 0;
}
