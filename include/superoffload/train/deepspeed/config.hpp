// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/offload/settings.hpp>
#include <superoffload/optim/deepspeed_schedule.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace superoffload::train {

/// The contents of a DeepSpeed configuration, in the terms of this library.
struct deepspeed_config {
  /// A value and, for messages, its position in the file. No value if the file has none, null or "auto": the
  /// flags decide then.
  template <class T>
  struct said {
    std::optional<T> value;  ///< none: the flags decide
    std::string where{};     ///< file and JSON path

    /// Does the file say it?
    explicit operator bool() const noexcept { return value.has_value(); }
  };

  said<std::int64_t> train_batch_size;   ///< of a step, over all ranks
  said<std::int64_t> micro_batch_size;   ///< of a micro-batch on one rank, or on those that share it
  said<std::int64_t> accumulation;       ///< micro-batches of a step
  said<std::int64_t> sequence_parallel;  ///< ranks that share a micro-batch
  said<std::int64_t> weight_ranks;       ///< ranks that keep a copy of the weights
  said<double> gradient_clipping;        ///< 0: none
  said<bool> bf16;                       ///< false: float32
  said<state_format> state;              ///< of the optimizer
  /// @{
  /// Of AdamW. `lr` is the peak; the scheduler may say it, too.
  said<double> lr, beta1, beta2, epsilon, weight_decay;
  /// @}

  /// The scheduler's rule, without its peak, which is `lr`, and without the two members below. If it has 0
  /// warm-up steps, the flags decide them.
  said<optim::deepspeed_schedule> schedule;
  /// The steps of the warm-up.
  said<std::int64_t> warmup_steps, total_steps;  ///< the step at which the decay ends

  said<offload::mode> offload;   ///< what offload_optimizer says
  bool offload_is_open = false;  ///< it is "auto"; if not, no value means: does not offload
  /// The share of parameters whose state is off the device.
  said<double> ratio, cpuadam_cores_perc;  ///< the share of cores for CPU Adam
  said<offload::choice> offload_weights;   ///< on or off, as offload_param says
  said<bool> wall_clock_breakdown;         ///< also report where the time of each step went
  said<bool> save_on_each_node;            ///< each host has its own directory for checkpoints

  std::string origin;  ///< the file, for messages
  /// One line with the keys that have no effect here; empty: none.
  std::string note;
};

/// Reads a DeepSpeed configuration: JSON, with integers also as 4e8, and inside zero_optimization also as
/// strings.
/// \throws error(bad_input) that names file and JSON path, for a key or value that is unknown, malformed,
/// contradictory, or that would change the training in a way that this library does not support.
deepspeed_config read_deepspeed_config(std::filesystem::path const& file);

/// The same for a text; `origin` names it in messages.
deepspeed_config parse_deepspeed_config(std::string_view text, std::string const& origin);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/deepspeed/impl/config_inl.hpp>
#endif
