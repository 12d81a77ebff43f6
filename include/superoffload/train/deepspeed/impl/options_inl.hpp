// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/train/deepspeed/options.hpp>
#include <superoffload/train/impl/option_names_inl.hpp>

#include <optional>
#include <string>
#include <vector>

namespace superoffload::train {
namespace detail {

template <class Number>
std::string shown(Number value) {
  return concat(value);
}
template <class T>
std::string shown(std::optional<T> const& value) {
  return value ? shown(*value) : std::string{};
}

class settlement {
public:
  explicit settlement(given_flags const& given) : given_{&given} {}

  [[nodiscard]] bool given(char const* flag) const { return (*given_)(flag); }

  /// Sets `option` to the file's value. \throws error(bad_input) if a given flag has another one.
  template <class T, class Option>
  void operator()(deepspeed_config::said<T> const& file, char const* flag, Option& option) const {
    if (file) {
      expect(!given(flag) || option == *file.value, exit_code::bad_input, file.where, ": ",
             shown(*file.value), ", but ", flag, " is ", shown(option),
             "; expected the same in both, or one of them left out");
      option = static_cast<Option>(*file.value);
    }
  }

private:
  given_flags const* given_;
};

SUPEROFFLOAD_INLINE void expect_divides(std::string const& where, std::int64_t number, std::int64_t ranks) {
  expect(number >= 1 && ranks % number == 0, exit_code::bad_input, where, ": ", number,
         " does not divide the ", ranks, ranks == 1 ? " rank" : " ranks", ", expected a number that does");
}

/// train_batch_size = train_micro_batch_size_per_gpu * gradient_accumulation_steps * ranks, of which those
/// that share a micro-batch count as one.
SUPEROFFLOAD_INLINE void settle_batch(deepspeed_config const& file, settlement const& settle,
                                      std::int64_t ranks, training_options& o) {
  settle(file.sequence_parallel, "--sequence_parallel", o.sequence_ranks);
  expect_divides(file.sequence_parallel ? file.sequence_parallel.where : "--sequence_parallel",
                 o.sequence_ranks, ranks);
  ranks /= o.sequence_ranks;
  for (auto const* const batch : {&file.train_batch_size, &file.micro_batch_size}) {
    expect(!*batch || !settle.given("--tokens_per_batch"), exit_code::bad_input, batch->where, ": ",
           batch->value.value_or(0), " sequences, but --tokens_per_batch is ", o.tokens_per_batch,
           "; expected one of them left out");
  }
  settle(file.train_batch_size, "--batch_size", o.batch_size);
  settle(file.accumulation, "--gradient_accumulation_steps", o.accumulation);
  bool const batch_known = file.train_batch_size || settle.given("--batch_size");
  bool const accumulation_known = file.accumulation || settle.given("--gradient_accumulation_steps");
  if (file.micro_batch_size) {
    auto const at_once = *file.micro_batch_size.value * ranks;
    if (!batch_known) {
      o.batch_size = at_once * o.accumulation;
    } else if (!accumulation_known) {
      o.accumulation = o.batch_size / at_once;
    }
    expect(o.batch_size == at_once * o.accumulation, exit_code::bad_input, file.micro_batch_size.where, ": ",
           *file.micro_batch_size.value, " on ", ranks, ranks == 1 ? " rank" : " ranks",
           accumulation_known ? concat(" in ", o.accumulation, " micro-batches makes ",
                                       at_once * o.accumulation, ", expected the batch of ")
                              : std::string{", expected a divisor of the batch of "},
           o.batch_size, " (train_batch_size, --batch_size)");
  } else if (o.tokens_per_batch == 0 && (file.train_batch_size || file.accumulation)) {
    expect(o.batch_size % (o.accumulation * ranks) == 0, exit_code::bad_input,
           file.accumulation ? file.accumulation.where : file.train_batch_size.where, ": ", o.batch_size,
           " sequences (train_batch_size, --batch_size) in ", o.accumulation,
           " micro-batches (gradient_accumulation_steps) on ", ranks, ranks == 1 ? " rank" : " ranks",
           ": expected all of one size");
  }
}

SUPEROFFLOAD_INLINE void settle_schedule(deepspeed_config const& file, settlement const& settle,
                                         training_options& o) {
  settle(file.lr, "--lr", o.lr);
  if (!file.schedule) {
    return;
  }
  using shape = optim::schedule::shape;
  constexpr shape shapes[] = {shape::constant, shape::linear, shape::cosine};  // of deepspeed_schedule::rule
  auto schedule = *file.schedule.value;
  settle(deepspeed_config::said<shape>{shapes[static_cast<int>(schedule.kind)], file.schedule.where},
         "--lr_scheduler", o.scheduler);
  settle(file.warmup_steps, "--lr_warmup_steps", o.warmup_steps);
  if (schedule.warmup_steps > 0 && !settle.given("--lr_warmup_steps")) {
    o.warmup_steps = schedule.warmup_steps;
  }
  schedule.peak = o.lr;
  schedule.warmup_steps = o.warmup_steps;
  schedule.total_steps = file.total_steps.value.value_or(0);
  o.deepspeed_schedule = schedule;
}

SUPEROFFLOAD_INLINE void settle_offload(deepspeed_config const& file, settlement const& settle,
                                        std::int64_t ranks, offload::settings& s) {
  settle(file.offload, "--offload", s.how);
  if (!file.offload && !file.offload_is_open && !settle.given("--offload")) {
    s.how = offload::mode::none;
  }
  settle(file.state, "--state", s.state);
  settle(file.ratio, "--ratio", s.ratio);
  settle(file.cpuadam_cores_perc, "--cpuadam_cores_perc", s.cpuadam_cores_perc);
  settle(file.offload_weights, "--offload_weights", s.offload_weights);
  settle(file.weight_ranks, "--hybrid_sharding", s.weight_ranks);
  if (file.weight_ranks) {
    expect_divides(file.weight_ranks.where, *file.weight_ranks.value, ranks);
  }
}

/// What DeepSpeed does where its file is silent.
SUPEROFFLOAD_INLINE void settle_silence(deepspeed_config const& file, settlement const& settle,
                                        training_options& o, std::vector<std::string>& notes) {
  if (!file.schedule && !settle.given("--lr_scheduler")) {
    o.scheduler = optim::schedule::shape::constant;
    notes.push_back(concat(
        file.origin, ": no scheduler: the rate is constant, as in DeepSpeed; --lr_scheduler lets it fall"));
  }
  if (!settle.given("--export")) {
    o.exports = false;
    notes.push_back(concat(file.origin,
                           ": no model is exported at the end, as DeepSpeed exports none; --export on does"));
  }
  bool const offloads = file.offload && *file.offload.value != offload::mode::none;
  if (offloads && !o.offload.ratio) {
    notes.push_back(
        concat(file.origin,
               ": no ratio: as much of the state as has to leaves the device, where DeepSpeed offloads "
               "all; --ratio 1 does"));
  }
}

/// Several ranks have sharded weights, which stay on their devices. Otherwise, state of weights on the host
/// is there, too.
SUPEROFFLOAD_INLINE void settle_offloaded_weights(deepspeed_config const& file, settlement const& settle,
                                                  std::int64_t ranks, offload::settings& s,
                                                  std::vector<std::string>& notes) {
  bool const asked = file.offload_weights && *file.offload_weights.value == offload::choice::on;
  if (!asked || settle.given("--offload_weights")) {
    return;
  }
  if (ranks > 1) {
    s.offload_weights = offload::choice::automatic;
    notes.push_back(concat(file.offload_weights.where, ": cpu, but each of the ", ranks,
                           " ranks keeps its shard of the weights on its device"));
  } else if (s.how == offload::mode::none && !settle.given("--offload")) {
    s.how = offload::mode::automatic;
    notes.push_back(
        concat(file.offload_weights.where,
               ": cpu, so the CPU also updates these weights, where DeepSpeed has the GPU update them"));
  }
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::vector<std::string> apply(deepspeed_config const& file, given_flags const& given,
                                                   std::int64_t ranks, training_options& o) {
  std::vector<std::string> notes;
  detail::settlement const settle{given};
  detail::settle_batch(file, settle, ranks, o);
  settle(file.gradient_clipping, "--max_grad_norm", o.max_grad_norm);
  settle(file.beta1, "--adam_beta1", o.adamw.beta1);
  settle(file.beta2, "--adam_beta2", o.adamw.beta2);
  settle(file.epsilon, "--adam_eps", o.adamw.epsilon);
  settle(file.weight_decay, "--weight_decay", o.adamw.weight_decay);
  detail::settle_schedule(file, settle, o);
  detail::settle_offload(file, settle, ranks, o.offload);
  settle(file.wall_clock_breakdown, "--wall_clock_breakdown", o.wall_clock_breakdown);
  settle(file.save_on_each_node, "--save_on_each_node", o.save_on_each_node);
  detail::settle_silence(file, settle, o, notes);
  detail::settle_offloaded_weights(file, settle, ranks, o.offload, notes);
  return notes;
}

}  // namespace superoffload::train
