// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/config.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace superoffload::train {

/// What a run will do, beside the memory of its plan.
struct run_outline {
  std::string device;
  std::string element_type;
  std::size_t available = 0;   ///< bytes of the device's memory
  std::string attention;       ///< the implementation, where the device has several
  std::string places;          ///< of state off the device; empty: there is none
  std::int64_t sequences = 0;  ///< of the data set; 0: not known
  std::int64_t tokens = 0;     ///< of an epoch, without padding; 0: not known
  std::int64_t steps = 0;      ///< 0: not known
};

/// A table for people: the model, memory by kind, steps and tokens.
std::string describe(plan const& p, model::config const& config, training_options const& o,
                     run_outline const& outline);

/// Bytes that would be planned for micro-batches of so many sequences.
using planned_bytes = std::function<std::size_t(std::int64_t sequences, recompute::choice)>;

/// \throws error(cannot_fit) when the plan needs more than the `available` bytes of `device`, with the
/// largest micro-batch that fits and the flags that ask for it.
void expect_fits(plan const& p, std::size_t available, std::string const& device, training_options const& o,
                 planned_bytes const& bytes_of);

}  // namespace superoffload::train
