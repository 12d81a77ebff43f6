// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/data/examples.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/train/run_data.hpp>

#include <algorithm>
#include <span>

namespace superoffload::train {
namespace {

data::example_set encoded(std::filesystem::path const& file, double percentage,
                          text::tokenizer const& tokenizer, training_options const& o,
                          model::config const& config) {
  auto const rows = data::read_instructions(file);
  auto const used = std::span{rows}.first(data::rows_of_percentage(rows.size(), percentage));
  auto examples = data::encode_examples(used, tokenizer,
                                        {.prompt_template = o.prompt_template,
                                         .mask_prompt = o.mask_prompt,
                                         .append_eos = o.append_eos,
                                         .max_length = o.max_length});
  expect(examples.largest_id() < config.vocabulary, exit_code::bad_input, file.string(),
         ": the tokenizer makes id ", examples.largest_id(), ", but the model's vocab_size is ",
         config.vocabulary, "; expected the tokenizer that belongs to the model");
  return examples;
}

}  // namespace

std::int64_t count_rows(training_options const& o) {
  return static_cast<std::int64_t>(
      data::rows_of_percentage(data::read_instructions(o.dataset).size(), o.dataset_percentage));
}

std::int64_t most_rows(training_options const& o) { return o.sequences_per_part() * o.max_length; }

data::loader_options run_data::loader_options(training_options const& o) const {
  return {.batch_size = o.batch_size,
          .micro_batches = o.accumulation,
          .rank = o.rank,
          .world = o.ranks,
          .seed = o.seed,
          .shuffle = o.shuffle,
          .packing = o.packing,
          .padding = o.padding,
          .max_length = o.max_length,
          .pad_id = pad_id};
}

data::loader_options run_data::evaluation_options(training_options const& o) const {
  auto options = loader_options(o);
  options.batch_size = o.sequences_per_part() * o.ranks;
  options.micro_batches = 1;
  options.shuffle = false;
  return options;
}

void expect_length(training_options const& o, model::config const& config) {
  expect(o.max_length <= config.max_positions, exit_code::bad_input, "--max_length is ", o.max_length,
         ", but the model's max_position_embeddings is ", config.max_positions);
}

run_data load_data(training_options const& o, model::config const& config) {
  auto const tokenizer = text::tokenizer::load(o.model);
  run_data data;
  data.file = data::fingerprint_of(o.dataset);
  data.training = encoded(o.dataset, o.dataset_percentage, tokenizer, o, config);
  if (!o.eval_dataset.empty()) {
    data.held_out = encoded(o.eval_dataset, 100.0, tokenizer, o, config);
  }
  data.pad_id = tokenizer.pad_id().value_or(tokenizer.eos_id().value_or(0));
  expect(data.pad_id < config.vocabulary, exit_code::bad_input, o.model.string(), ": the padding id ",
         data.pad_id, " is beyond the model's vocab_size ", config.vocabulary);
  return data;
}

std::vector<std::pair<std::string, std::string>> identity_of(training_options const& o,
                                                             model::config const& config,
                                                             run_data const& data,
                                                             std::string const& element_type) {
  auto const flag = [](bool on) { return std::string{on ? "on" : "off"}; };
  auto freeze = std::string{};
  for (auto const& pattern : o.freeze) { freeze += (freeze.empty() ? "" : " ") + pattern; }
  return {{"model", concat(config.model_type, " ", config.layers, "x", config.hidden, "/",
                           config.intermediate, " heads ", config.heads, "/", config.kv_heads, "x",
                           config.head_dim, " vocabulary ", config.vocabulary)},
          {"dtype", element_type},
          {"freeze", freeze},
          {"dataset", concat(data.file.bytes, " bytes, FNV-1a ", data.file.fnv1a)},
          {"dataset_percentage", concat(o.dataset_percentage)},
          {"template", concat(static_cast<int>(o.prompt_template))},
          {"label_mask", o.mask_prompt ? "prompt" : "none"},
          {"append_eos", flag(o.append_eos)},
          {"max_length", concat(o.max_length)},
          {"packing", flag(o.packing)},
          {"shuffle", flag(o.shuffle)},
          {"seed", concat(o.seed)}};
}

}  // namespace superoffload::train
