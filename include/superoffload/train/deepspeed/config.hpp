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

  /// The scheduler's rule, without its peak, which is `lr`, and without the two members below. If it has 0
  /// warm-up steps, the flags decide them.
  said<optim::deepspeed_schedule> schedule;
  said<std::int64_t> warmup_steps, total_steps;

  said<offload::mode> offload;
  bool offload_is_open = false;  ///< it is "auto"; if not, no value means: does not offload
  said<double> ratio, cpuadam_cores_perc;
  said<offload::choice> offload_weights;
  said<bool> wall_clock_breakdown;

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
