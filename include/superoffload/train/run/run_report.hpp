// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/run/metrics.hpp>
#include <superoffload/train/run/progress.hpp>
#include <superoffload/train/run/step_trace.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// The reports of a running run: progress lines, metrics, a timeline of the first steps.
class run_report {
public:
  /// Only rank zero shows progress. The options must outlive this.
  run_report(training_options const& options, bool is_rank_zero,
             std::vector<autograd::unit_layout> const& units)
      : options_{&options}, is_rank_zero_{is_rank_zero} {
    for (auto const& unit : units) { unit_names_.push_back(unit.name()); }
  }

  /// Opens the metrics after step `saved_step`, from which the run resumes; negative: a new run.
  void open_metrics(std::int64_t saved_step) {
    if (!options_->metrics.empty()) {
      metrics_.emplace(options_->metrics, saved_step);
    }
  }
  /// `step` of `total_steps` steps are done already.
  void begin(std::int64_t step, std::int64_t total_steps) {
    trace_.reset();
    if (!options_->trace.empty()) {
      trace_.emplace(unit_names_);
      io::replace_file(options_->trace, trace_->json({}));  // an error ends the run now, not later
    }
    if (is_rank_zero_) {
      progress_.emplace(step, total_steps, options_->log_interval);
    }
  }

  /// A progress line that stays.
  void say(std::string const& line) {
    if (progress_) {
      log_line(log_level::info, line);
    }
  }

  /// Collects the step's recording, for its breakdown and for the timeline.
  template <class D>
  void look_at_times(recorder<D>* times, step_metrics& m) {
    if (times == nullptr) {
      return;
    }
    auto seen = times->collect();
    if (options_->wall_clock_breakdown) {
      m.breakdown = break_down(seen, times->tracks(), unit_names_.size());
    }
    if (trace_) {
      trace_->add(m.step, std::move(seen));
      if (static_cast<std::int64_t>(trace_->steps()) == options_->trace_steps) {
        write_trace(times->tracks());
        if (!options_->wall_clock_breakdown) {
          times->stop();
        }
      }
    }
  }

  /// A step is done.
  void step(step_metrics const& m) {
    step_times_.push_back(m.step_time_ms * 1e-3);
    if (metrics_) {
      metrics_->write(to_json(m, unit_names_));
    }
    if (progress_) {
      progress_->step(m.step, m.loss, m.lr, m.tokens_per_second, m.skipped);
    }
    if (m.breakdown && options_->log_interval > 0 && m.step % options_->log_interval == 0) {
      say(describe(*m.breakdown, unit_names_));
    }
  }
  void evaluation(std::int64_t step, double loss, std::int64_t targets) {
    if (metrics_) {
      metrics_->write(evaluation_json(step, loss, targets));
    }
    char text[96];
    std::snprintf(text, sizeof text, "step %lld  held-out loss %.4f", static_cast<long long>(step), loss);
    say(text);
  }

  /// Call after the last step.
  template <class D>
  void end_steps(recorder<D>* times) {
    if (trace_ && trace_->steps() > 0) {  // the run was shorter than --trace_steps
      write_trace(times->tracks());
    }
  }
  void end() {
    progress_.reset();
    flush_log();
  }

  /// Median seconds of a step, without the first two if there are others.
  [[nodiscard]] std::optional<double> median_step_time() const {
    if (step_times_.empty()) {
      return std::nullopt;
    }
    constexpr std::ptrdiff_t warm_up = 2;
    std::vector<double> times{step_times_.begin() + std::min(warm_up, std::ssize(step_times_) - 1),
                              step_times_.end()};
    auto const middle = times.begin() + std::ssize(times) / 2;
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

private:
  void write_trace(std::vector<track> const& tracks) {
    io::replace_file(options_->trace, trace_->json(tracks));
    say(concat("wrote a timeline of ", trace_->steps(), trace_->steps() == 1 ? " step" : " steps", " to ",
               options_->trace.string()));
    trace_.reset();
  }

  training_options const* options_;
  bool is_rank_zero_;
  std::vector<std::string> unit_names_;
  std::vector<double> step_times_;  // s
  std::optional<step_trace> trace_;
  std::optional<metrics_file> metrics_;
  std::optional<progress> progress_;
};

}  // namespace superoffload::train
