// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/batch.hpp>
#include <superoffload/data/collate.hpp>
#include <superoffload/data/example_set.hpp>
#include <superoffload/data/sampler.hpp>
#include <superoffload/data/share_out.hpp>

#include <cstdint>
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
  loader(example_set const& examples, loader_options const& options);
  loader(example_set&&, loader_options const&) = delete;

  /// The next step; advances the position. Every rank calls it for every step.
  [[nodiscard]] global_step next();

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
  [[nodiscard]] shared_rows shared(std::span<sequence const> sequences) const;
  [[nodiscard]] batch batch_of(std::int64_t part, std::span<sequence const> sequences,
                               shared_rows const& rows) const;

  example_set const* examples_;
  loader_options options_;
  sampler sampler_;
  std::int64_t most_tokens_ = 0;  ///< of a part
  std::int64_t longest_ = 0;      ///< example
};

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/loader_inl.hpp>
#endif
