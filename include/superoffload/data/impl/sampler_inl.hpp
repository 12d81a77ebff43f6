// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/packing.hpp>
#include <superoffload/data/sampler.hpp>
#include <superoffload/data/shuffle.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace superoffload::data {

SUPEROFFLOAD_INLINE sampler::sampler(example_set const& examples, sampling const& options)
    : examples_{&examples}, options_{options} {
  expect(!examples.empty(), exit_code::bad_input, "data set: no examples; expected at least one");
  expect(options.batch_size >= 1, exit_code::bad_input, "batch size: ", options.batch_size,
         ", expected at least 1");
  if (options.packing) {
    expect(options.max_length >= examples.longest(), exit_code::bad_input, "packing: max_length is ",
           options.max_length, ", expected at least the longest example's ", examples.longest(), " tokens");
  }
  auto const longest = options.packing ? options.max_length : examples.longest();
  expect(options.tokens_per_batch == 0 || options.tokens_per_batch >= longest, exit_code::bad_input,
         "tokens per batch: ", options.tokens_per_batch, ", expected at least a sequence's ", longest);
  plan_ = planned(0);
}

SUPEROFFLOAD_INLINE std::vector<sequence> sampler::next() {
  if (plan_.epoch != at_.epoch) {
    plan_ = planned(at_.epoch);
  }
  auto const end = end_of_step(plan_, at_.sequence);
  std::vector<sequence> chosen;
  chosen.reserve(static_cast<std::size_t>(end - at_.sequence));
  for (auto i = at_.sequence; i < end; ++i) { chosen.push_back(plan_[i]); }
  at_ = end < plan_.sequences() ? position{at_.epoch, end} : position{at_.epoch + 1, 0};
  return chosen;
}

SUPEROFFLOAD_INLINE void sampler::seek(position to) {
  expect(to.epoch >= 0 && to.sequence >= 0, exit_code::bad_input, "data position: epoch ", to.epoch,
         ", sequence ", to.sequence, "; expected no negative number");
  auto plan = plan_.epoch == to.epoch ? plan_ : planned(to.epoch);
  expect(to.sequence < plan.sequences(), exit_code::bad_input, "data position: sequence ", to.sequence,
         " of epoch ", to.epoch, ", which has ", plan.sequences(),
         "; expected the data set and the options of the run that saved it");
  plan_ = std::move(plan);
  at_ = to;
}

SUPEROFFLOAD_INLINE std::int64_t sampler::steps_in(double epochs) const {
  expect(epochs > 0.0 && epochs <= 1e6, exit_code::bad_input, "number of epochs: ", epochs,
         ", expected more than 0 and at most 1000000");
  auto const whole = static_cast<std::int64_t>(epochs);
  std::int64_t steps = 0;
  if (epochs_differ()) {
    for (std::int64_t epoch = 0; epoch < whole; ++epoch) { steps += steps_in_epoch(epoch); }
  } else {
    steps = whole * steps_in_epoch(0);
  }
  double const rest = epochs - static_cast<double>(whole);
  if (rest > 0.0) {
    // 1.1 epochs of 10 steps are 11 steps, although 1.1 in binary is a little more.
    steps += static_cast<std::int64_t>(std::ceil(rest * static_cast<double>(steps_in_epoch(whole)) - 1e-6));
  }
  return std::max<std::int64_t>(steps, 1);
}

SUPEROFFLOAD_INLINE std::int64_t sampler::end_of_step(epoch_plan const& plan, std::int64_t begin) const {
  if (options_.tokens_per_batch == 0) {
    return begin + std::min(options_.batch_size, plan.sequences() - begin);
  }
  auto end = begin;
  for (std::int64_t tokens = 0; end < plan.sequences(); ++end) {
    for (auto const row : plan[end]) { tokens += (*examples_)[row].length(); }
    if (tokens > options_.tokens_per_batch) {
      break;
    }
  }
  return end;
}

SUPEROFFLOAD_INLINE std::int64_t sampler::steps_in(epoch_plan const& plan) const {
  if (options_.tokens_per_batch == 0) {
    return (plan.sequences() - 1) / options_.batch_size + 1;
  }
  std::int64_t steps = 0;
  for (std::int64_t at = 0; at < plan.sequences(); at = end_of_step(plan, at)) { ++steps; }
  return steps;
}

SUPEROFFLOAD_INLINE sampler::epoch_plan sampler::planned(std::int64_t epoch) const {
  epoch_plan plan{epoch, {}, {}};
  if (!options_.mixed.empty()) {
    plan.order = mixed_rows(options_.mixed, options_.seed, epoch);
  } else if (options_.shuffle) {
    plan.order = shuffled_rows(examples_->size(), options_.seed, epoch);
  } else {
    plan.order.resize(static_cast<std::size_t>(examples_->size()));
    std::iota(plan.order.begin(), plan.order.end(), std::int64_t{0});
  }
  if (options_.packing) {
    auto packed = options_.shuffle ? pack(*examples_, plan.order, options_.max_length)
                                   : pack_in_order(*examples_, plan.order, options_.max_length);
    plan.order = std::move(packed.order);
    plan.starts = std::move(packed.starts);
  }
  return plan;
}

}  // namespace superoffload::data
