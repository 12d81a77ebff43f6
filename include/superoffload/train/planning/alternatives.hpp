// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/train/options.hpp>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace superoffload::train {

/// The run with other options, and its plan.
struct alternative {
  std::string flags;   ///< those that differ; empty: the run as asked for
  offload::plan plan;  ///< it may not fit
};

/// What else a run could be: other batches, more ranks that share them, other copies of the weights, other
/// recompute, more or less state off the device.
struct alternatives {
  std::vector<alternative> rows;  ///< the first is the run as asked for
  /// @{
  /// Bytes that must be available on the device beside this host, and on the host beside this device, for the
  /// run to fit; 0 if no amount suffices.
  std::size_t least_device = 0, least_host = 0;
  /// @}
  bool one_memory = false;  ///< device and host share one; `least_device` is of both
};

/// How runs on one machine are planned.
struct run_planner {
  /// Of a run with these options; it may not fit. Several threads call it at once.
  std::function<offload::plan(training_options const&)> plan;
  /// Does the run as asked for fit, with these bytes available on the device and on the host?
  std::function<bool(std::size_t device, std::size_t host)> fits_in;
  bool one_memory = false;          ///< do device and host share one?
  bool rates_of_offloading = true;  ///< does `plan` know them?
  int ranks_of_host = 0;            ///< as offload::machine::peers_part::ranks_of_host
};

/// Plans the alternatives of a run, one option changed at a time. An alternative that contradicts the other
/// options is left out. \param asked the plan of `o`
alternatives alternatives_of(training_options const& o, offload::plan asked, run_planner const& planner);

/// A table for the user: a line for each alternative, and the least memory for the run.
std::string describe(alternatives const& all);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/alternatives_inl.hpp>
#endif
