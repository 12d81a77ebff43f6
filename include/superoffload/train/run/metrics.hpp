// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/appended_file.hpp>
#include <superoffload/offload/scheduling/worker_counts.hpp>
#include <superoffload/train/run/breakdown.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::train {

/// The metrics of a step. Times are wall clock. FLOPs count GEMMs and causal attention of real tokens; model:
/// three forwards, hardware: with recompute.
struct step_metrics {
  std::int64_t step = 0;           ///< from 1
  double loss = 0.0;               ///< mean over the step's label tokens
  double grad_norm = 0.0;          ///< before clipping
  double lr = 0.0;                 ///< of this step
  double epoch = 0.0;              ///< position in the data after the step
  double step_time_ms = 0.0;       ///< from batch to update
  double tokens_per_second = 0.0;  ///< real tokens, padding not counted
  std::int64_t label_tokens = 0;   ///< over all ranks, as all numbers of tokens and FLOPs
  std::int64_t tokens = 0;         ///< padding not counted
  double model_tflops = 0.0;       ///< TFLOP/s
  double hardware_tflops = 0.0;    ///< TFLOP/s
  /// TFLOP/s as DeepSpeed's SuperOffload example counts them: padding, whole attention and recompute
  /// included.
  std::optional<double> deepspeed_tflops;
  std::size_t host_bytes = 0;      ///< peak resident set of the process
  std::size_t device_bytes = 0;    ///< peak of the engine's allocations
  bool skipped = false;            ///< the gradient was not finite, or there was no label: nothing changed
  /// Updates since the step before; none: no state is off the device.
  std::optional<offload::worker_counts> buckets;
  double hit_rate = 1.0;                      ///< estimated share of confirmed speculative updates
  std::optional<train::breakdown> breakdown;  ///< none: the run records none
};

/// One line of JSON. Numbers have full precision; those that are not finite are null. `run`: the identity of
/// the run, empty: none. `units`: names for the breakdown.
std::string to_json(step_metrics const& m, std::string_view run = {},
                    std::vector<std::string> const& units = {});

/// An evaluation after a step.
struct evaluation_metrics {
  std::int64_t step = 0;          ///< 0: before the first one
  double loss = 0.0;              ///< mean over the label tokens of the held-out data
  std::int64_t label_tokens = 0;  ///< over all ranks
};

/// One line of JSON, as above.
std::string to_json(evaluation_metrics const& m, std::string_view run = {});

/// Where a run writes its metrics.
struct metrics_target {
  std::filesystem::path file;    ///< made where there is none
  std::int64_t last_step = -1;   ///< after which the run goes on; negative: a new run
  std::string run = {};          ///< its identity
  bool keeps_other_runs = true;  ///< lines of other runs stay
};

/// A file with one JSON object in each line. Each line is written at once.
class metrics_file {
public:
  /// Continues an existing file: lines of the run after `last_step` are cut off. So are those of no run,
  /// which earlier versions wrote, and lines that a power loss has torn. Lines that stay are in the file at
  /// every moment, even if the process is killed.
  /// \throws error(bad_input) if the file has anything but metrics; error(io_failure). Both name the file.
  explicit metrics_file(metrics_target const& target);

  /// Appends `line`, which has no line end. \throws error(io_failure) that names the file
  void write(std::string const& line);

private:
  std::optional<io::appended_file> lines_;
};

/// Does the file exist and have any content? \throws error(bad_input) if it is no regular file;
/// error(io_failure).
bool has_content(std::filesystem::path const& file);

/// Peak resident set of this process in bytes.
std::size_t peak_resident_bytes();

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/metrics_inl.hpp>
#endif
