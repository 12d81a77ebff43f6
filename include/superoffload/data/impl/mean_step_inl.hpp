// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/data/mean_step.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace superoffload::data {

SUPEROFFLOAD_INLINE mean_step mean_step_of(example_set const& examples, loader_options options,
                                           std::int64_t most_steps) {
  mean_step mean;
  std::int64_t steps = 0;
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    loader from{examples, options};
    steps = std::clamp(from.steps_per_epoch() - 1, std::int64_t{1}, most_steps);
    for (std::int64_t i = 0; i < steps; ++i) {
      auto const step = from.next();
      mean.tokens += static_cast<double>(step.tokens);
      for (auto const& batch : step.micro_batches) {
        mean.batch_rows += static_cast<double>(batch.rows());
        for (std::size_t d = 1; d < batch.starts.size(); ++d) {
          auto const length = static_cast<double>(batch.starts[d] - batch.starts[d - 1]);
          mean.square += length * length;
        }
      }
    }
  }
  auto const seen = static_cast<double>(steps * options.world);
  mean.tokens /= seen;
  mean.batch_rows /= seen * static_cast<double>(options.micro_batches);
  mean.square /= seen * static_cast<double>(options.micro_batches);
  return mean;
}

}  // namespace superoffload::data
