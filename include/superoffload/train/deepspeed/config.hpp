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

/// What a DeepSpeed configuration says, in the terms of this library.
struct deepspeed_config {
  /// A value, and where it stands for messages. No value where the file has none, null or "auto": then it is
  /// for the flags to say.
  template <class T>
  struct said {
    std::optional<T> value;
    std::string where{};  ///< file and JSON path

    explicit operator bool() const noexcept { return value.has_value(); }
  };

  said<std::int64_t> train_batch_size;  ///< of a step, over all ranks
  said<std::int64_t> micro_batch_size;  ///< of a micro-batch on one rank
  said<std::int64_t> accumulation;      ///< micro-batches of a step
  said<double> gradient_clipping;       ///< 0: none
  said<bool> bf16;                      ///< false: float32
  said<double> lr, beta1, beta2, epsilon, weight_decay;

  /// The scheduler's rule but for the two after it and the peak, which is `lr`. Where it has 0 warm-up steps,
  /// they are for the flags to say.
  said<optim::deepspeed_schedule> schedule;
  said<std::int64_t> warmup_steps, total_steps;

  said<offload::mode> offload;
  bool offload_is_open = false;  ///< "auto"; else no value means that the file does not offload
  said<double> ratio, cpuadam_cores_perc;
  said<offload::choice> offload_weights;
  said<bool> wall_clock_breakdown;

  /// One line that names the keys which change nothing here; empty: there are none.
  std::string note;
};

/// Reads a DeepSpeed configuration: JSON, with numbers also as 4e8, and inside of zero_optimization also as
/// strings.
/// \throws error(bad_input) naming file and JSON path for what is unknown, malformed, contradictory or would
/// change the training in a way that this library does not have.
deepspeed_config read_deepspeed_config(std::filesystem::path const& file);

/// The same of a text; `origin` names it in messages.
deepspeed_config parse_deepspeed_config(std::string_view text, std::string const& origin);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/deepspeed/impl/config_inl.hpp>
#endif
