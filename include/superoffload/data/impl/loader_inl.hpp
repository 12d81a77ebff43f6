// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/data/row_sizes.hpp>
#include <superoffload/data/shuffle.hpp>
#include <superoffload/data/split.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace superoffload::data {

SUPEROFFLOAD_INLINE loader::loader(example_set const& examples, loader_options const& options)
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
  auto const width = options.packing || options.padding == pad_to::max_length ? options.max_length : longest;
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

SUPEROFFLOAD_INLINE global_step loader::next() {
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

SUPEROFFLOAD_INLINE loader::shared_rows loader::shared(std::span<sequence const> sequences) const {
  return options_.padding == pad_to::none
             ? share_out(*examples_, sequences, parts(), most_tokens_, options_.cost)
             : shared_rows{};
}

SUPEROFFLOAD_INLINE batch loader::batch_of(std::int64_t part, std::span<sequence const> sequences,
                                           shared_rows const& rows) const {
  collation const how{options_.padding, options_.packing, options_.max_length, options_.pad_id,
                      options_.learn_padding};
  if (options_.padding != pad_to::none) {
    auto const mine = part_of(static_cast<std::int64_t>(sequences.size()), parts(), part);
    return collate(
        *examples_,
        sequences.subspan(static_cast<std::size_t>(mine.begin), static_cast<std::size_t>(mine.size())), how);
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

}  // namespace superoffload::data
