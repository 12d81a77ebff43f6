// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/example_set.hpp>
#include <superoffload/data/examples.hpp>
#include <superoffload/data/fingerprint.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/data/mixture.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/run/run_state.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace superoffload::train {

/// What was read of a data set.
struct data_set {
  data::fingerprint content;                           ///< of its files
  data::row_format format = data::row_format::alpaca;  ///< of its rows; never automatic
  std::optional<double> weight{};                      ///< of its data::source
  std::int64_t rows = 0;                               ///< that were read
  std::int64_t tokens = 0;                             ///< of these rows, as they were cut
};

/// The data of a run, tokenised and checked against the model before anything large is allocated.
struct run_data {
  data::example_set training;      ///< the rows of all data sets, one after the other
  data::example_set held_out;      ///< empty: no evaluation
  std::vector<data_set> sets;      ///< in the order of their rows
  data_set held_out_set;           ///< what was read for `held_out`
  std::string chat_template;       ///< of the data sets with conversations; empty if there are none
  std::int32_t pad_id = 0;         ///< the padding token, else end-of-text, else 0
  std::vector<std::string> notes;  ///< what the user should know of the data, one sentence each

  /// Empty unless several data sets have weights.
  [[nodiscard]] data::mixture mixture() const;
  /// Of an epoch; with weights on average.
  [[nodiscard]] std::int64_t epoch_tokens() const;
  /// The formats of the data sets, each once.
  [[nodiscard]] std::string formats() const;
  /// Batches for training. The trainer adds the cost of documents.
  [[nodiscard]] data::loader_options loader_options(training_options const& o) const;
  /// Batches for an evaluation, in file order. On every rank, each has at most the rows of a training
  /// micro-batch.
  [[nodiscard]] data::loader_options evaluation_options(training_options const& o) const;
};

/// How the options have a data set read, and its rows turned into ids.
data::reading_options reading_of(training_options const& o);
/// For rows of `formats`: the chat template is looked for only if some are conversations.
data::encoding_options encoding_of(training_options const& o, text::tokenizer const& tokenizer,
                                   std::vector<data::row_format> const& formats);
/// What the user should know of a chat template that hardly belongs to the tokenizer's model.
std::vector<std::string> notes_on(data::encoding_options const& encoding, text::tokenizer const& tokenizer);

/// \throws error(bad_input) for anything wrong with tokenizer or data, such as ids beyond the model's
/// vocabulary.
run_data load_data(training_options const& o, model::config const& config);

/// Rows of the data set that the options use; nothing is tokenised.
std::int64_t count_rows(training_options const& o);

/// Tokens of a rank's largest micro-batch that the options allow, padding included.
std::int64_t most_rows(training_options const& o);

/// The settings that a resumed run must share with the saved one: run_state::identity.
named_values identity_of(training_options const& o, model::config const& config, run_data const& data,
                         std::string const& element_type);

/// The settings that make it another run if they differ: run_state::settings.
/// \throws error(bad_input) if config.json is not JSON.
named_values settings_of(training_options const& o, io::model_files const& model, run_data const& data);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/run_data_inl.hpp>
#endif
