// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/data/batch.hpp>
#include <superoffload/data/collate.hpp>
#include <superoffload/data/example_set.hpp>
#include <superoffload/data/sampler.hpp>
#include <superoffload/data/shuffle.hpp>
#include <superoffload/data/split.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace superoffload::data {

struct loader_options {
  std::int64_t batch_size = 1;     ///< sequences a step, over all ranks and micro-batches
  std::int64_t micro_batches = 1;  ///< a step's batch is cut into these, and each of them over the ranks
  std::int64_t rank = 0;
  std::int64_t world = 1;
  std::uint64_t seed = 0;
  bool shuffle = true;
  bool packing = false;
  pad_to padding = pad_to::longest;
  std::int64_t max_length = 0;  ///< required for packing and for pad_to::max_length
  std::int32_t pad_id =
      0;  ///< the padding token, else end-of-text, else 0: never a target, and no real token attends to it
};

/// The data of one optimizer step. The numbers are those of the whole step, over all ranks.
struct global_step {
  std::vector<batch> micro_batches;   ///< this rank's; one without rows has no documents
  std::int64_t label_tokens = 0;      ///< the loss's divisor; 0 = nothing to learn from
  std::int64_t tokens = 0;            ///< without padding
  std::vector<std::int64_t> lengths;  ///< of the documents, without padding
  std::int64_t sequences = 0;
  double epoch = 0.0;  ///< position in the data after this step
};

/// The data of a run, step by step, for one rank. The sequences of a step depend neither on the number of
/// ranks nor on the number of micro-batches. These only cut the step's sequences into contiguous pieces,
/// whose sizes differ by at most one: first into micro-batches, then each micro-batch into ranks. With
/// `shuffle` off, steps_per_epoch() steps from position {} are an evaluation of all examples in file order.
/// Refers to the examples: they outlive it and do not change.
class loader {
public:
  /// \throws error(bad_input) for options that contradict each other or the examples
  loader(example_set const& examples, loader_options const& options)
      : examples_{&examples},
        options_{options},
        sampler_{examples,
                 {options.batch_size, options.seed, options.shuffle, options.packing, options.max_length}} {
    expect(1 <= options.micro_batches && options.micro_batches <= 1'000'000, exit_code::bad_input,
           "micro-batches: ", options.micro_batches, ", expected from 1 to 1000000");
    expect(options.world <= 1'000'000 && 0 <= options.rank && options.rank < options.world,
           exit_code::bad_input, "rank ", options.rank, " of ", options.world,
           " ranks; expected a rank from 0 and below the number of ranks");
    auto const longest = examples.longest();
    expect(options.padding == pad_to::longest || options.max_length >= longest, exit_code::bad_input,
           "padding to max_length: max_length is ", options.max_length,
           ", expected at least the longest example's ", longest, " tokens");
    auto const width =
        options.packing || options.padding == pad_to::max_length ? options.max_length : longest;
    // A batch counts its rows in 32 bits.
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    auto const lines = std::min(options.batch_size, examples.size());
    expect(lines <= most / std::max<std::int64_t>(width, 1), exit_code::bad_input, "batch size: ", lines,
           " sequences of up to ", width, " tokens; expected at most ", most, " tokens a step");
  }
  loader(example_set&&, loader_options const&) = delete;

  [[nodiscard]] global_step next() {
    auto const at = sampler_.where();
    auto const sequences = sampler_.next();
    global_step step;
    step.sequences = static_cast<std::int64_t>(sequences.size());
    step.epoch = sampler_.epochs();
    for (auto const& rows : sequences) {
      for (auto const row : rows) {
        step.label_tokens += (*examples_)[row].label_tokens();
        auto const length = (*examples_)[row].length();
        step.tokens += length;
        step.lengths.push_back(length);
      }
    }
    collation const how{options_.padding, options_.packing, options_.max_length, options_.pad_id};
    step.micro_batches.reserve(static_cast<std::size_t>(options_.micro_batches));
    for (std::int64_t i = 0; i < options_.micro_batches; ++i) {
      auto const mine = part_of(step.sequences, options_.micro_batches * options_.world,
                                i * options_.world + options_.rank);
      step.micro_batches.push_back(
          collate(*examples_,
                  std::span{sequences}.subspan(static_cast<std::size_t>(mine.begin),
                                               static_cast<std::size_t>(mine.size())),
                  how));
      step.micro_batches.back().noise = random_bits(~options_.seed, static_cast<std::uint64_t>(at.epoch),
                                                    static_cast<std::uint64_t>(at.sequence + mine.begin));
    }
    return step;
  }

  /// The position of the next step. A loader with the same examples, seed, shuffle, packing and max_length
  /// that seeks it continues exactly; batch size, ranks and micro-batches may differ.
  [[nodiscard]] position where() const noexcept { return sampler_.where(); }
  /// \throws error(bad_input) when there is no such position in these data
  void seek(position to) { sampler_.seek(to); }

  /// The steps of the first epoch. With packing and shuffling the epochs may differ a little: see steps_in.
  [[nodiscard]] std::int64_t steps_per_epoch() const { return sampler_.steps_in_epoch(0); }
  /// The number of steps of `epochs` epochs; a part of an epoch is rounded up to whole steps.
  [[nodiscard]] std::int64_t steps_in(double epochs) const { return sampler_.steps_in(epochs); }

private:
  example_set const* examples_;
  loader_options options_;
  sampler sampler_;
};

}  // namespace superoffload::data
