// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/gemm_format.hpp>
#include <superoffload/data/collate.hpp>
#include <superoffload/data/row_format.hpp>
#include <superoffload/data/source.hpp>
#include <superoffload/io/model_directory.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/offload/settings.hpp>
#include <superoffload/optim/adamw.hpp>
#include <superoffload/optim/deepspeed_schedule.hpp>
#include <superoffload/optim/schedule.hpp>
#include <superoffload/text/chat_template.hpp>
#include <superoffload/text/prompt.hpp>
#include <superoffload/train/engine/lay_out.hpp>
#include <superoffload/train/engine/recompute.hpp>
#include <superoffload/train/reports/report_choice.hpp>

#include <algorithm>
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
  std::filesystem::path model;        ///< a Hugging Face directory
  bool follow_links = false;          ///< of model and data sets, also out of their directories
  std::vector<data::source> dataset;  ///< with weights, or without any
  data::row_format format = data::row_format::automatic;  ///< of all data sets, or of each by its first row
  data::column_names columns;                             ///< fields that the data sets call otherwise
  double dataset_percentage = 100.0;       ///< of the rows of each data set, from its beginning
  std::filesystem::path output;            ///< directory of checkpoints, exports and reports
  bool overwrite_output = false;           ///< remove what earlier runs saved and exported there
  std::filesystem::path deepspeed_config;  ///< the file that some of these came from; empty: none

  std::int64_t max_length = 1024;     ///< tokens of a sequence
  std::int64_t batch_size = 8;        ///< sequences per optimizer step, over all ranks and micro-batches
  std::int64_t tokens_per_batch = 0;  ///< tokens per step, in place of `batch_size`; 0: that counts
  std::int64_t accumulation = 1;      ///< micro-batches per step
  double epochs = 1.0;                ///< a part of an epoch is rounded up to whole steps
  std::int64_t max_steps = 0;         ///< 0: those of the epochs

  double lr = 1e-5;  ///< the peak
  /// How the rate falls after the warm-up.
  optim::schedule::shape scheduler = optim::schedule::shape::linear;
  std::int64_t warmup_steps = 0;  ///< in which the rate rises from 0
  double warmup_ratio = 0.0;      ///< of all steps, rounded up, where `warmup_steps` is 0
  double min_lr = 0.0;            ///< to which the rate falls, unless it is constant
  double lr_cycles = 1.0;         ///< of cosine_with_restarts
  double lr_power = 1.0;          ///< of polynomial
  std::optional<optim::deepspeed_schedule> deepspeed_schedule;  ///< replaces all of the above but `lr`
  optim::adamw_settings adamw;                                  ///< of all tensors that are trained
  no_decay undecayed = no_decay::none;                          ///< tensors without weight decay
  std::vector<std::string> freeze;                              ///< shell patterns over tensor names
  double max_grad_norm = 1.0;                                   ///< 0: no clipping
  on_nonfinite nonfinite = on_nonfinite::skip;  ///< what happens after a step whose gradient is not finite
  std::int64_t most_skips = 10;                 ///< this many skipped steps in a row end the run

  std::uint64_t seed = 0;  ///< of the order of the data and of dropout
  text::prompt_template prompt_template = text::prompt_template::alpaca;  ///< for rows of Alpaca
  std::string chat_template;  ///< a name of text::chat_template; empty: that of the model
  text::learnt_turns learn = text::learnt_turns::all;  ///< turns of the assistant, in conversations
  bool mask_prompt = true;                             ///< learn the response alone, where a row has a prompt
  bool append_eos = true;                     ///< end-of-text after every row but conversations and ids
  data::pad_to padding = data::pad_to::none;  ///< how far each sequence is padded
  bool learn_padding = false;                 ///< labels for the padding, as DeepSpeed's example has them
  bool packing = false;                       ///< several rows in one sequence, which do not see each other
  bool shuffle = true;                        ///< a new order in every epoch
  std::string rope_scaling;  ///< instead of the model's, as model::rope_fields; empty: its own
  gemm_format gemms = gemm_format::element;  ///< of the linear layers in blocks
  std::int64_t tiled_mlp = 0;                ///< rows that a dense MLP computes at a time; 0: all
  recompute::choice recompute = recompute::choice::automatic;  ///< automatic: as the memory requires
  offload::settings offload;                                   ///< of state, weights and gradients

  std::filesystem::path eval_dataset;  ///< empty: no evaluation
  std::int64_t eval_steps = 0;         ///< 0: before the first step and after the last only
  std::int64_t log_interval = 10;      ///< steps between two lines of a log, at least 1
  std::filesystem::path metrics;       ///< empty: none
  report_choice report_to;             ///< written to `output`
  wandb_names wandb;                   ///< of the report for Weights & Biases
  bool wall_clock_breakdown = false;   ///< report where the time of each step went
  std::filesystem::path trace;         ///< file for a timeline of the first steps; empty: none
  std::int64_t trace_steps = 5;        ///< how many, from 1 to 1000
  std::int64_t save_steps = 0;         ///< 0: checkpoints on a signal only
  bool save_at_end = false;            ///< a checkpoint after the last step
  int save_total_limit = 0;            ///< 0: all are kept
  bool save_on_each_node = false;      ///< each host has an `output` of its own, for its part of checkpoints
  std::string resume;                  ///< empty, "auto" or a checkpoint's directory
  bool exports = true;                 ///< a model after the last step
  bool export_every_save = false;      ///< a model beside every checkpoint
  bool export_best = false;            ///< a model when the held-out loss is the lowest so far
  bool eval_only = false;              ///< evaluate `eval_dataset`, and write nothing to `output`
  bool dry_run = false;                ///< plan only, and write nothing to `output`

  /// The number of this process, from 0.
  int rank = 0, ranks = 1;  ///< the number of processes that share every step
  int sequence_ranks = 1;   ///< so many neighbours share each micro-batch: engine_options::sequence_ranks

  /// Where all files of the model are read, its config.json with the rope scaling of these options.
  /// \throws error(bad_input) as model::rope_fields
  [[nodiscard]] io::model_directory model_source() const;
  /// The number of groups of ranks with micro-batches of their own.
  [[nodiscard]] int groups() const noexcept { return ranks / sequence_ranks; }
  /// The next larger number of ranks that form groups; 0 after the last.
  [[nodiscard]] int next_sequence_ranks(int than) const noexcept {
    do { ++than; } while (than <= ranks && ranks % than != 0);
    return than <= ranks ? than : 0;
  }
  static constexpr std::int64_t usual_tile = 16384;  ///< large enough for GEMMs at their full rate
  /// Has a micro-batch more rows of a rank than a usual tile, and no tiles?
  [[nodiscard]] bool may_tile() const noexcept {
    return tiled_mlp == 0 && max_length / sequence_ranks > usual_tile;
  }
  /// The number of parts of a step's batch: micro-batches of all groups.
  [[nodiscard]] std::int64_t parts() const noexcept { return accumulation * groups(); }
  /// The most micro-batches that a step may have.
  [[nodiscard]] std::int64_t most_accumulation() const noexcept {
    return tokens_per_batch > 0 ? std::max<std::int64_t>(1, tokens_per_batch / max_length) : batch_size;
  }
};

namespace detail {
/// What `asks` returns of options; false for options that contradict each other or the model.
template <class Asks>
bool may_be_asked(Asks&& asks) {
  try {
    return asks();
  } catch (error const& e) {
    if (e.code() != exit_code::bad_input) {
      throw;
    }
    return false;
  }
}
}  // namespace detail

/// Names and values of the options that must be the same on all ranks.
std::vector<std::pair<std::string, std::string>> shared_settings(training_options const& options);

/// The options of a run by flag, for its reports.
std::vector<std::pair<std::string, std::string>> reported_settings(training_options const& options);

/// \throws error(bad_input) that names the flag, for a value out of range or a contradiction.
void check(training_options const& options);

/// The learning rate of step k, from 0, in a run of `steps`.
double learning_rate(training_options const& options, std::int64_t k, std::int64_t steps);

/// The tensors that --freeze does not freeze.
tensor_choice trained_by(training_options const& options);

/// The configuration of the model that the options name. `own`: as in model::read_config, whose errors it
/// throws. \throws error(bad_input) for sequences longer than the model's positions, too
model::config config_of(training_options const& options, model::family const* own = nullptr);

/// Does a shell pattern (*, ?, [...]) match the whole name?
bool matches(std::string const& pattern, std::string const& name);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/impl/options_inl.hpp>
#endif
