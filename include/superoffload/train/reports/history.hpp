// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/train/run/metrics.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

namespace superoffload::train {

/// The metrics of a run, so far, for curves: all steps of a short run; of a longer one, means of as many
/// steps as keep the number of points small.
class history {
public:
  /// An index into point::means.
  enum curve { loss, grad_norm, lr, tokens_per_second, step_time_ms, model_tflops, hit_rate };
  static constexpr std::size_t curves = 7;  ///< the number of curves
  /// The means of up to stride() steps.
  struct point {
    std::int64_t step = 0;               ///< the last one
    std::array<double, curves> means{};  ///< in the units of step_metrics
  };

  /// `most`: of points; even.
  explicit history(std::size_t most = 2000) : most_{most} {}

  /// Adds a step, which is later than those before.
  void step(step_metrics const& m);
  /// Adds an evaluation. Beyond the most points, it replaces the one before.
  void evaluation(evaluation_metrics const& m);
  /// Adds what a metrics file has. \throws error(bad_input) that names the file and the line.
  void read(std::filesystem::path const& lines);

  /// Values that are not finite are left out of the means; a mean of none is not a number.
  [[nodiscard]] std::vector<point> points() const;
  /// Steps of a point.
  [[nodiscard]] std::int64_t stride() const noexcept { return stride_; }
  /// In the order of the run.
  [[nodiscard]] std::vector<evaluation_metrics> const& evaluations() const noexcept { return evaluations_; }

private:
  struct sums {
    std::int64_t step = 0, steps = 0;
    std::array<double, curves> total{};
    std::array<std::int64_t, curves> count{};
    void add(sums const& more);
  };
  void add(sums const& one);

  std::size_t most_;
  std::int64_t stride_ = 1;
  std::vector<sums> points_;
  std::vector<evaluation_metrics> evaluations_;
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/reports/impl/history_inl.hpp>
#endif
