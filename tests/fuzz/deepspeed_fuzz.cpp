// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/deepspeed/options.hpp>

#include "fuzz.hpp"

#include <optional>

using namespace superoffload;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  std::optional<train::training_options> parsed;
  fuzz::expect_refusal_at_most([&] {
    auto const config = train::parse_deepspeed_config(fuzz::text_of(data, size), "input");
    fuzz::require(config.note.find_first_of("\n\x1b") == std::string::npos, "a note is one plain line");
    train::training_options options;
    train::apply(config, [](std::string_view) { return false; }, 1, options);
    parsed = options;
  });
  if (parsed) {
    auto const& o = *parsed;
    offload::check(o.offload);  // an exception here fails the test
    optim::check(o.adamw);
    fuzz::require(o.batch_size > 0 && o.accumulation > 0 && o.batch_size % o.accumulation == 0,
                  "a step has micro-batches of one size");
    fuzz::require(o.max_grad_norm >= 0.0, "a norm is a number, and not negative");
    for (std::int64_t const step : {0, 1, 2, 1'000'000'000}) {
      fuzz::require(train::learning_rate(o, step, 1'000) >= 0.0, "a rate is a number, and not negative");
    }
  }
  return 0;
}
