// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/train/options.hpp>

#include <cstdint>
#include <filesystem>

namespace superoffload::test {

/// Options for a few steps of the small llama checkpoint on some of the Alpaca rows.
inline train::training_options short_run(std::filesystem::path const& output, std::int64_t steps) {
  train::training_options o;
  o.model = std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "models" / "llama";
  o.dataset = {{std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "alpaca_64_rows.json", {}}};
  o.dataset_percentage = 30;
  o.output = output;
  o.max_length = 32;
  o.batch_size = 2;
  o.max_steps = steps;
  o.mask_prompt = false;
  return o;
}

}  // namespace superoffload::test
