// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/config.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/train/engine/allocation.hpp>
#include <superoffload/train/options.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

namespace superoffload::train {

/// The device, element type and attention of an engine.
struct engine_outline {
  std::string device;        ///< its description
  std::string element_type;  ///< "bf16", "fp8" or "float32"
  std::string attention;     ///< the implementation, if the device has several
  std::size_t lockable = std::numeric_limits<std::size_t>::max();  ///< device_policy's lockable_bytes
};

/// A table for the user: the model, memory by kind, the expected step.
std::string describe(offload::plan const& p, allocation const& of_engine, model::config const& config,
                     engine_outline const& outline);

/// The size of a run.
struct run_outline {
  std::int64_t sequences = 0;  ///< of the data set; 0: not known
  std::int64_t tokens = 0;     ///< of an epoch, without padding; 0: not known
  std::int64_t steps = 0;      ///< 0: not known
  std::string format;          ///< of the rows; empty: not known
};

/// The table's lines about a run: batch, data, steps and tokens.
std::string describe(training_options const& o, run_outline const& outline);

/// Does a run with other options fit?
using fits_with = std::function<bool(training_options const&)>;

/// Why a plan does not fit the memory of `device` or of the host: with the largest micro-batch that fits and
/// its flags, or, if none fits, with the planner's own refusal. If none of the ranks that share it fits as it
/// is computed, its MLPs may be computed in tiles, and it may be shared by more. `fits` may throw error(bad_input) for options that contradict each other.
std::string refusal_of(offload::plan const& p, std::string const& device, training_options const& o,
                       fits_with const& fits);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/report_inl.hpp>
#endif
