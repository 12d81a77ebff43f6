// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/collate.hpp>
#include <superoffload/data/example_set.hpp>
#include <superoffload/data/mixture.hpp>

#include <cstdint>
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
  sampler(example_set const& examples, sampling const& options);
  sampler(example_set&&, sampling const&) = delete;

  /// The sequences of the next step; advances the position. The spans are valid until the next change.
  std::vector<sequence> next();

  /// The position of the next step: at the end of an epoch, the beginning of the next one.
  [[nodiscard]] position where() const noexcept { return at_; }

  /// Continues at `to`. \throws error(bad_input) when there is no such position in these data
  void seek(position to);

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
  [[nodiscard]] std::int64_t steps_in(double epochs) const;

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
  [[nodiscard]] std::int64_t end_of_step(epoch_plan const& plan, std::int64_t begin) const;
  [[nodiscard]] std::int64_t steps_in(epoch_plan const& plan) const;
  [[nodiscard]] epoch_plan planned(std::int64_t epoch) const;

  example_set const* examples_;
  sampling options_;
  position at_;
  epoch_plan plan_;
};

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/sampler_inl.hpp>
#endif
