// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/scheduling/worker_counts.hpp>
#include <superoffload/train/run/breakdown.hpp>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace superoffload::train {

/// What is known of a step once it is done. Times are wall clock; FLOPs count matrix products and causal
/// attention of real tokens (model: three forwards; hardware: recompute added).
struct step_metrics {
  std::int64_t step = 0;   ///< from 1
  double loss = 0.0;       ///< mean over the step's label tokens
  double grad_norm = 0.0;  ///< before clipping
  double lr = 0.0;
  double epoch = 0.0;
  double step_time_ms = 0.0;
  double tokens_per_second = 0.0;  ///< real tokens, padding not counted
  std::int64_t label_tokens = 0;
  std::int64_t tokens = 0;
  double model_tflops = 0.0;
  double hardware_tflops = 0.0;
  std::size_t host_bytes = 0;    ///< peak resident set of the process
  std::size_t device_bytes = 0;  ///< peak of what the engine allocated
  bool skipped = false;          ///< the gradient was not finite or there was no label: nothing was changed
  std::optional<offload::worker_counts>
      buckets;            ///< served since the step before; none: no state is off the device
  double hit_rate = 1.0;  ///< how often, as estimated, speculation comes true
  std::optional<train::breakdown> breakdown;
};

/// One line of JSON. Numbers in full precision; what is not finite is null. `units`: names, for the
/// breakdown.
std::string to_json(step_metrics const& m, std::vector<std::string> const& units = {});

/// One line of JSON for an evaluation after `step`.
std::string evaluation_json(std::int64_t step, double loss, std::int64_t label_tokens);

/// A file of one JSON object a line, each written whole and at once.
class metrics_file {
public:
  /// Goes on with an existing file after `last_step`: what a stopped run wrote beyond its checkpoint is cut
  /// off. The lines up to there are in the file at every moment, whenever the process is killed.
  /// \throws error(bad_input) when the file holds anything but metrics, error(io_failure), naming the file.
  metrics_file(std::filesystem::path const& file, std::int64_t last_step);
  metrics_file(metrics_file const&) = delete;
  metrics_file& operator=(metrics_file const&) = delete;
  ~metrics_file();

  void write(std::string const& line);

private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

/// Is there a file with metrics, or anything else, in it? \throws error(bad_input) for what is no regular
/// file, error(io_failure).
bool has_content(std::filesystem::path const& file);

/// Peak resident set of this process in bytes.
std::size_t peak_resident_bytes();

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/metrics_inl.hpp>
#endif
