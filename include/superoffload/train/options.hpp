// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/collate.hpp>
#include <superoffload/offload/settings.hpp>
#include <superoffload/optim/adamw.hpp>
#include <superoffload/optim/deepspeed_schedule.hpp>
#include <superoffload/optim/schedule.hpp>
#include <superoffload/text/prompt.hpp>
#include <superoffload/train/engine/lay_out.hpp>
#include <superoffload/train/engine/recompute.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

enum class on_nonfinite { skip, stop };
enum class no_decay { none, norms_and_biases };

/// All options of a fine-tuning run. The defaults are those of the programs.
struct training_options {
  std::filesystem::path model;    ///< a Hugging Face directory
  std::filesystem::path dataset;  ///< Alpaca JSON or JSONL
  double dataset_percentage = 100.0;
  std::filesystem::path output;
  bool overwrite_output = false;           ///< remove what earlier runs saved and exported there
  std::filesystem::path deepspeed_config;  ///< the file that some of these came from; empty: none

  std::int64_t max_length = 1024;  ///< tokens of a sequence
  std::int64_t batch_size = 8;     ///< sequences per optimizer step, over all ranks and micro-batches
  std::int64_t accumulation = 1;   ///< micro-batches per step
  double epochs = 1.0;
  std::int64_t max_steps = 0;  ///< 0: those of the epochs

  double lr = 1e-5;
  optim::schedule::shape scheduler = optim::schedule::shape::linear;
  std::int64_t warmup_steps = 0;
  std::optional<optim::deepspeed_schedule> deepspeed_schedule;  ///< replaces the three above
  optim::adamw_settings adamw;
  no_decay undecayed = no_decay::none;
  std::vector<std::string> freeze;  ///< shell patterns over tensor names
  double max_grad_norm = 1.0;       ///< 0: no clipping
  on_nonfinite nonfinite = on_nonfinite::skip;
  std::int64_t most_skips = 10;  ///< this many skipped steps in a row end the run

  std::uint64_t seed = 0;
  text::prompt_template prompt_template = text::prompt_template::alpaca;
  bool mask_prompt = true;
  bool append_eos = true;
  data::pad_to padding = data::pad_to::longest;
  bool packing = false;
  bool shuffle = true;
  recompute::choice recompute = recompute::choice::automatic;
  offload::settings offload;

  std::filesystem::path eval_dataset;  ///< empty: no evaluation
  std::int64_t eval_steps = 0;         ///< 0: before the first step and after the last only
  std::int64_t log_interval = 10;
  std::filesystem::path metrics;      ///< empty: none
  bool wall_clock_breakdown = false;  ///< report where the time of each step went
  std::filesystem::path trace;        ///< file for a timeline of the first steps; empty: none
  std::int64_t trace_steps = 5;
  std::int64_t save_steps = 0;  ///< 0: checkpoints on a signal only
  int save_total_limit = 0;     ///< 0: all are kept
  std::string resume;           ///< empty, "auto" or a checkpoint's directory
  bool export_every_save = false;
  bool export_best = false;
  bool dry_run = false;

  int rank = 0, ranks = 1;  ///< of the processes that share every step

  /// The number of parts of a step's batch: micro-batches of all ranks.
  [[nodiscard]] std::int64_t parts() const noexcept { return accumulation * ranks; }
  /// Sequences of the largest part.
  [[nodiscard]] std::int64_t sequences_per_part() const noexcept {
    return (batch_size + parts() - 1) / parts();
  }
};

/// Names and values of the options that must be the same on all ranks.
std::vector<std::pair<std::string, std::string>> shared_settings(training_options const& options);

/// \throws error(bad_input) that names the flag, for a value out of range or a contradiction.
void check(training_options const& options);

/// The learning rate of step k, from 0, in a run of `steps`.
double learning_rate(training_options const& options, std::int64_t k, std::int64_t steps);

/// The tensors that --freeze does not freeze.
tensor_choice trained_by(training_options const& options);

/// Does a shell pattern (*, ?, [...]) match the whole name?
bool matches(std::string const& pattern, std::string const& name);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/impl/options_inl.hpp>
#endif
