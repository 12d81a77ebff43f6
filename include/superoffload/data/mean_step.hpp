// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/example_set.hpp>
#include <superoffload/data/loader.hpp>

#include <cstdint>

namespace superoffload::data {

/// Means over steps of a loader.
struct mean_step {
  double tokens = 0.0;      ///< of a step, over all ranks, without padding
  double batch_rows = 0.0;  ///< of a rank's micro-batch, with padding
  double square = 0.0;      ///< sum of the squares of a micro-batch's documents
};

/// The means over the first epoch's whole steps, `most_steps` of them at most. An epoch that is a single step
/// counts as it is.
mean_step mean_step_of(example_set const& examples, loader_options options, std::int64_t most_steps = 256);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/mean_step_inl.hpp>
#endif
