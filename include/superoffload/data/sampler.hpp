// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/data/collate.hpp>
#include <superoffload/data/example_set.hpp>
#include <superoffload/data/mixture.hpp>
#include <superoffload/data/packing.hpp>
#include <superoffload/data/shuffle.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::data {

/// How far a run has come in its data: all that must be saved to continue exactly there.
struct position {
  std::int64_t epoch = 0;     ///< from 0
  std::int64_t sequence = 0;  ///< the next one's index in its epoch

  friend bool operator==(position const&, position const&) = default;  ///< of both numbers
};

/// How the sequences of steps are chosen.
struct sampling {
  std::int64_t batch_size = 1;  ///< sequences a step, over all ranks and micro-batches
  std::uint64_t seed = 0;       ///< of the order of rows; the epoch's number goes into it as well
  bool shuffle = true;          ///< a new order in every epoch; otherwise the order of the file
  bool packing = false;         ///< sequences of several rows, up to `max_length` tokens
  std::int64_t max_length = 0;  ///< for packing
  std::int64_t tokens_per_batch =
      0;            ///< instead of `batch_size`: a step takes sequences up to so many tokens
  mixture mixed{};  ///< with `shuffle` only
};

/// Chooses the sequences of each step. The choice depends on examples, options and position alone: not on
/// ranks, accumulation or earlier calls. A step never crosses the end of an epoch; an epoch's last step may
/// be smaller. Packing rearranges the epoch's order, and epochs may differ in their number of sequences.
/// Without shuffling it keeps the order of the file, at the price of sequences that are less full.
/// Refers to the examples: they outlive it and do not change.
class sampler {
public:
  /// \throws error(bad_input) for options that do not suit the examples
  sampler(example_set const& examples, sampling const& options) : examples_{&examples}, options_{options} {
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
  sampler(example_set&&, sampling const&) = delete;

  /// The sequences of the next step; advances the position. The spans are valid until the next change.
  std::vector<sequence> next() {
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

  /// The position of the next step: at the end of an epoch, the beginning of the next one.
  [[nodiscard]] position where() const noexcept { return at_; }

  /// Continues at `to`. \throws error(bad_input) when there is no such position in these data
  void seek(position to) {
    expect(to.epoch >= 0 && to.sequence >= 0, exit_code::bad_input, "data position: epoch ", to.epoch,
           ", sequence ", to.sequence, "; expected no negative number");
    auto plan = plan_.epoch == to.epoch ? plan_ : planned(to.epoch);
    expect(to.sequence < plan.sequences(), exit_code::bad_input, "data position: sequence ", to.sequence,
           " of epoch ", to.epoch, ", which has ", plan.sequences(),
           "; expected the data set and the options of the run that saved it");
    plan_ = std::move(plan);
    at_ = to;
  }

  /// The position in epochs.
  [[nodiscard]] double epochs() const {
    return static_cast<double>(at_.epoch) +
           (at_.sequence == 0 ? 0.0
                              : static_cast<double>(at_.sequence) / static_cast<double>(plan_.sequences()));
  }

  /// With packing or tokens_per_batch, and shuffled, epochs may differ: then this plans the whole epoch.
  [[nodiscard]] std::int64_t steps_in_epoch(std::int64_t epoch) const {
    return epoch == plan_.epoch || !epochs_differ() ? steps_in(plan_) : steps_in(planned(epoch));
  }

  /// The number of steps of `epochs` epochs from the beginning; a part of an epoch is rounded up to whole
  /// steps.
  /// \throws error(bad_input) unless 0 < epochs <= 1e6
  [[nodiscard]] std::int64_t steps_in(double epochs) const {
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

private:
  struct epoch_plan {
    std::int64_t epoch = 0;
    std::vector<std::int64_t> order;   ///< rows
    std::vector<std::int64_t> starts;  ///< [sequences + 1] in order; empty when every row is a sequence

    [[nodiscard]] std::int64_t sequences() const noexcept {
      return static_cast<std::int64_t>(starts.empty() ? order.size() : starts.size() - 1);
    }
    [[nodiscard]] sequence operator[](std::int64_t index) const noexcept {
      auto const i = static_cast<std::size_t>(index);
      if (starts.empty()) {
        return sequence{order}.subspan(i, 1);
      }
      auto const begin = static_cast<std::size_t>(starts[i]);
      return sequence{order}.subspan(begin, static_cast<std::size_t>(starts[i + 1]) - begin);
    }
  };

  /// May epochs differ in their number of steps?
  [[nodiscard]] bool epochs_differ() const noexcept {
    return options_.shuffle && (options_.packing || options_.tokens_per_batch > 0);
  }
  /// Where the step ends that begins with sequence `begin`.
  [[nodiscard]] std::int64_t end_of_step(epoch_plan const& plan, std::int64_t begin) const {
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
  [[nodiscard]] std::int64_t steps_in(epoch_plan const& plan) const {
    if (options_.tokens_per_batch == 0) {
      return (plan.sequences() - 1) / options_.batch_size + 1;
    }
    std::int64_t steps = 0;
    for (std::int64_t at = 0; at < plan.sequences(); at = end_of_step(plan, at)) { ++steps; }
    return steps;
  }
  [[nodiscard]] epoch_plan planned(std::int64_t epoch) const {
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

  example_set const* examples_;
  sampling options_;
  position at_;
  epoch_plan plan_;
};

}  // namespace superoffload::data
