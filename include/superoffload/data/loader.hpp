// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/data/batch.hpp>
#include <superoffload/data/collate.hpp>
#include <superoffload/data/example_set.hpp>
#include <superoffload/data/row_sizes.hpp>
#include <superoffload/data/sampler.hpp>
#include <superoffload/data/share_out.hpp>
#include <superoffload/data/shuffle.hpp>
#include <superoffload/data/split.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace superoffload::data {

/// What the steps of a run are made of, and the rank that they are for.
struct loader_options {
  std::int64_t batch_size = 1;        ///< sequences a step, over all ranks and micro-batches
  std::int64_t tokens_per_batch = 0;  ///< tokens a step in place of sequences; without padding only
  std::int64_t micro_batches = 1;  ///< a step's batch is shared out to these, and each of them to the ranks
  std::int64_t rank = 0;           ///< of the loader, from 0 and below `world`
  std::int64_t world = 1;          ///< the number of ranks
  std::uint64_t seed = 0;          ///< of the order of rows, and of dropout
  bool shuffle = true;             ///< a new order in every epoch; otherwise the order of the file
  bool packing = false;            ///< sequences of several rows, up to `max_length` tokens
  pad_to padding = pad_to::none;   ///< how far each sequence is padded
  std::int64_t max_length = 0;     ///< required for packing and for pad_to::max_length
  mixture mixed{};                 ///< with `shuffle` only
  std::int32_t pad_id = 0;     ///< the padding token, else end-of-text, else 0; no real token attends to it
  bool learn_padding = false;  ///< padding is a target, too; with pad_to::max_length and without packing only
  /// Rows of the largest batch, if rows are rounded up (data/row_sizes.hpp) where nothing else is padded; 0:
  /// not.
  std::int64_t most_rows = 0;
  document_cost cost{};  ///< of which ranks and micro-batches get equal parts, where nothing is padded
};

/// The data of one optimizer step. The numbers are those of the whole step, over all ranks.
struct global_step {
  std::vector<batch> micro_batches;   ///< this rank's; one without rows has no documents
  std::int64_t label_tokens = 0;      ///< the loss's divisor; 0 = nothing to learn from
  std::int64_t tokens = 0;            ///< without padding
  std::vector<std::int64_t> lengths;  ///< of the documents, without padding
  std::int64_t sequences = 0;         ///< one of packed rows counts once
  double epoch = 0.0;                 ///< position in the data after this step
};

/// The data of a run, step by step, for one rank. The rows of a step depend neither on the number of ranks
/// nor on the number of micro-batches. Without padding, these get parts of the step's rows of nearly equal
/// cost: see share_out(). With padding they cut the step's sequences into contiguous pieces, whose sizes
/// differ by at most one: first into micro-batches, then each micro-batch into ranks. With `shuffle` off,
/// steps_per_epoch() steps from position {} are an evaluation of all examples.
/// Refers to the examples: they outlive it and do not change.
class loader {
public:
  /// \throws error(bad_input) for options that contradict each other or the examples
  loader(example_set const& examples, loader_options const& options)
      : examples_{&examples},
        options_{options},
        sampler_{examples,
                 {options.batch_size, options.seed, options.shuffle, options.packing, options.max_length,
                  options.tokens_per_batch, options.mixed}} {
    expect(1 <= options.micro_batches && options.micro_batches <= 1'000'000, exit_code::bad_input,
           "micro-batches: ", options.micro_batches, ", expected from 1 to 1000000");
    expect(options.world <= 1'000'000 && 0 <= options.rank && options.rank < options.world,
           exit_code::bad_input, "rank ", options.rank, " of ", options.world,
           " ranks; expected a rank from 0 and below the number of ranks");
    auto const longest = examples.longest();
    expect(options.padding != pad_to::max_length || options.max_length >= longest, exit_code::bad_input,
           "padding to max_length: max_length is ", options.max_length,
           ", expected at least the longest example's ", longest, " tokens");
    expect(!options.learn_padding || (options.padding == pad_to::max_length && !options.packing),
           exit_code::bad_input, "padding is to be learnt; expected padding to max_length, and no packing");
    longest_ = longest;
    auto const width =
        options.packing || options.padding == pad_to::max_length ? options.max_length : longest;
    // A batch counts its rows in 32 bits.
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (options.tokens_per_batch > 0) {
      expect(options.padding == pad_to::none && options.tokens_per_batch <= most, exit_code::bad_input,
             "tokens per batch: ", options.tokens_per_batch, ", expected at most ", most, ", and no padding");
      most_tokens_ = most_tokens_of_part_within(options.tokens_per_batch, width, parts());
    } else {
      auto const lines = std::min(options.batch_size, examples.size());
      expect(lines <= most / std::max<std::int64_t>(width, 1), exit_code::bad_input, "batch size: ", lines,
             " sequences of up to ", width, " tokens; expected at most ", most, " tokens a step");
      most_tokens_ = most_tokens_of_part(lines, width, parts());
    }
  }
  loader(example_set&&, loader_options const&) = delete;

  /// The next step; advances the position. Every rank calls it for every step.
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
        if (options_.learn_padding) {
          step.label_tokens += options_.max_length - length;
        }
      }
    }
    auto const rows_of_parts = shared(sequences);
    auto const noise = random_bits(~options_.seed, static_cast<std::uint64_t>(at.epoch),
                                   static_cast<std::uint64_t>(at.sequence));
    step.micro_batches.reserve(static_cast<std::size_t>(options_.micro_batches));
    for (std::int64_t i = 0; i < options_.micro_batches; ++i) {
      auto const part = i * options_.world + options_.rank;
      step.micro_batches.push_back(batch_of(part, sequences, rows_of_parts));
      step.micro_batches.back().noise = random_bits(noise, 0, static_cast<std::uint64_t>(part));
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
  using shared_rows = std::vector<std::vector<std::int64_t>>;

  [[nodiscard]] std::int64_t parts() const noexcept { return options_.micro_batches * options_.world; }
  [[nodiscard]] shared_rows shared(std::span<sequence const> sequences) const {
    return options_.padding == pad_to::none
               ? share_out(*examples_, sequences, parts(), most_tokens_, options_.cost)
               : shared_rows{};
  }
  [[nodiscard]] batch batch_of(std::int64_t part, std::span<sequence const> sequences,
                               shared_rows const& rows) const {
    collation const how{options_.padding, options_.packing, options_.max_length, options_.pad_id,
                        options_.learn_padding};
    if (options_.padding != pad_to::none) {
      auto const mine = part_of(static_cast<std::int64_t>(sequences.size()), parts(), part);
      return collate(
          *examples_,
          sequences.subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size())),
          how);
    }
    std::vector<sequence> documents;
    if (auto const index = static_cast<std::size_t>(part); index < rows.size()) {
      for (auto const& row : rows[index]) { documents.emplace_back(&row, 1); }
    }
    auto made = collate(*examples_, documents, how);
    if (options_.most_rows > 0) {
      add_rows_without_targets(made, rounded_rows(made.rows(), options_.most_rows) - made.rows(),
                               std::min(short_document, longest_), options_.pad_id);
    }
    return made;
  }

  example_set const* examples_;
  loader_options options_;
  sampler sampler_;
  std::int64_t most_tokens_ = 0;  ///< of a part
  std::int64_t longest_ = 0;      ///< example
};

}  // namespace superoffload::data
