// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/config.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/plan.hpp>

#include <cstdint>
#include <string>

namespace superoffload::train {

/// What a run will do, beside the memory of its plan.
struct run_outline {
  std::string device;
  std::string element_type;
  std::int64_t sequences = 0;  ///< of the data set; 0: not known
  std::int64_t tokens = 0;     ///< of an epoch, without padding; 0: not known
  std::int64_t steps = 0;      ///< 0: not known
};

/// A table for people: the model, memory by kind, steps and tokens.
std::string describe(plan const& p, model::config const& config, training_options const& o,
                     run_outline const& outline);

/// \throws error(cannot_fit) when the plan needs more than `available` bytes, with the largest batch that
/// would fit.
void expect_fits(plan const& p, std::size_t available, training_options const& o);

/// Memory that this process may still use, cgroup limits included.
std::size_t available_host_bytes();

}  // namespace superoffload::train
