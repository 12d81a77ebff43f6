// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/reports/html_report.hpp>
#include <superoffload/train/reports/lines_report.hpp>
#include <superoffload/train/reports/report_choice.hpp>
#include <superoffload/train/reports/run_description.hpp>
#include <superoffload/train/reports/tensorboard_report.hpp>
#include <superoffload/train/reports/wandb_report.hpp>
#include <superoffload/train/run/metrics.hpp>
#include <superoffload/train/run/progress.hpp>
#include <superoffload/train/run/run_summary.hpp>
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

/// The reports of a running run: progress lines, metrics, the reports of --report_to, a timeline of the first
/// steps.
class run_report {
public:
  /// Only rank zero shows progress. The options must outlive this.
  run_report(training_options const& options, bool is_rank_zero,
             std::vector<autograd::unit_layout> const& units)
      : options_{&options}, is_rank_zero_{is_rank_zero} {
    for (auto const& unit : units) { unit_names_.push_back(unit.name()); }
  }

  /// Opens the metrics of the run of this identity after step `saved_step`, from which it resumes; negative:
  /// a new run.
  void open_metrics(std::int64_t saved_step, std::string const& run) {
    if (!options_->metrics.empty()) {
      metrics_.emplace(target_of(options_->metrics, saved_step, run), unit_names_);
    }
  }
  /// Opens the reports of --report_to in the same way.
  void open_reports(std::int64_t saved_step, run_description const& run) {
    auto const& wanted = options_->report_to;
    report_files const files{options_->output};
    if (wanted.jsonl || wanted.html) {
      lines_.emplace(target_of(files.lines, saved_step, run.identity), unit_names_);
    }
    if (wanted.tensorboard) {
      tensorboard_.emplace(files.events, saved_step, run);
    }
    if (wanted.wandb) {
      wandb_.emplace(files.wandb, saved_step, run);
    }
    if (wanted.html) {
      page_.emplace(files.page, files.lines, run);
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
    ++recorded_steps_;
    if (page_ && recorded_steps_ <= options_->trace_steps) {
      page_->timeline(m.step, seen, times->tracks());
    }
    if (trace_) {
      trace_->add(m.step, std::move(seen));
      if (recorded_steps_ == options_->trace_steps) {
        write_trace(times->tracks());
      }
    }
    if (recorded_steps_ == options_->trace_steps && !options_->wall_clock_breakdown) {
      times->stop();
    }
  }

  /// A step is done.
  void step(step_metrics const& m) {
    steps_.add({m.step_time_ms * 1e-3, static_cast<double>(m.tokens)});
    to_sinks([&](report_sink auto& sink) { sink.step(m); });
    if (progress_) {
      progress_->step(m);
    }
    if (m.breakdown && options_->log_interval > 0 && m.step % options_->log_interval == 0) {
      char counted[64] = "";
      if (m.deepspeed_tflops) {
        std::snprintf(counted, sizeof counted, ", %.3g TFLOPS as DeepSpeed's example counts them",
                      *m.deepspeed_tflops);
      }
      say(describe(*m.breakdown, unit_names_) + counted);
    }
  }
  /// The held-out data were evaluated.
  void evaluation(evaluation_metrics const& m) {
    to_sinks([&](report_sink auto& sink) { sink.evaluation(m); });
    char text[96];
    std::snprintf(text, sizeof text, "step %lld  held-out loss %.4f", static_cast<long long>(m.step), m.loss);
    say(text);
  }

  /// Call after the last step.
  template <class D>
  void end_steps(recorder<D>* times) {
    if (trace_ && trace_->steps() > 0) {  // the run was shorter than --trace_steps
      write_trace(times->tracks());
    }
  }
  /// The run ends with an error, which the page says if it can still be written.
  void failed(std::string const& why) noexcept {
    try {
      if (page_) {
        page_->end("failed: " + why);
      }
    } catch (...) {}
  }
  /// The run has ended, at its last step or by `signal`.
  void end(int signal) {
    if (page_) {
      page_->end(signal == 0 ? "finished" : concat("stopped by signal ", signal));
    }
    if (wandb_ && signal == 0) {
      wandb_->finish();
    }
    progress_.reset();
    flush_log();
  }

  /// The mean of the steps, without the first two if there are others; none: there was no step with tokens.
  [[nodiscard]] std::optional<timed_step> mean_step() const { return steps_.mean(); }

private:
  [[nodiscard]] metrics_target target_of(std::filesystem::path const& file, std::int64_t saved_step,
                                         std::string const& run) const {
    return {
        .file = file, .last_step = saved_step, .run = run, .keeps_other_runs = !options_->overwrite_output};
  }

  /// Calls `body` with every sink of metrics.
  template <class Body>
  void to_sinks(Body const& body) {
    for (auto* const lines : {&metrics_, &lines_}) {
      if (*lines) {
        body(**lines);
      }
    }
    if (tensorboard_) {
      body(*tensorboard_);
    }
    if (wandb_) {
      body(*wandb_);
    }
    if (page_) {
      body(*page_);
    }
  }

  void write_trace(std::vector<track> const& tracks) {
    io::replace_file(options_->trace, trace_->json(tracks));
    say(concat("wrote a timeline of ", trace_->steps(), trace_->steps() == 1 ? " step" : " steps", " to ",
               options_->trace.string()));
    trace_.reset();
  }

  training_options const* options_;
  bool is_rank_zero_;
  std::vector<std::string> unit_names_;
  step_mean steps_;
  std::optional<step_trace> trace_;
  std::int64_t recorded_steps_ = 0;
  std::optional<lines_report> metrics_, lines_;
  std::optional<tensorboard_report> tensorboard_;
  std::optional<wandb_report> wandb_;
  std::optional<html_report> page_;
  std::optional<progress> progress_;
};

}  // namespace superoffload::train
