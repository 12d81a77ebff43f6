// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/examples.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/io/checksum.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/train/run/run_data.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE data::example_set encoded(std::filesystem::path const& file, double percentage,
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

SUPEROFFLOAD_INLINE std::string text_of(data::fingerprint const& file) {
  return concat(file.bytes, " bytes, FNV-1a ", file.fnv1a);
}

inline constexpr std::array<std::string_view, 11> optimization_flags{
    "--batch_size",      "--lr",         "--lr_scheduler", "the schedule of --deepspeed_config",
    "--lr_warmup_steps", "--adam_beta1", "--adam_beta2",   "--adam_eps",
    "--weight_decay",    "--no_decay",   "--max_grad_norm"};
inline constexpr std::array<std::string_view, 3> tokenizer_files{"tokenizer.json", "tokenizer_config.json",
                                                                 "special_tokens_map.json"};
/// Fields of config.json that do not change what the model computes.
inline constexpr std::array<std::string_view, 7> descriptive_fields{
    "_name_or_path", "architectures",        "auto_map", "dtype",
    "torch_dtype",   "transformers_version", "use_cache"};

template <std::size_t N>
bool is_one_of(std::array<std::string_view, N> const& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::int64_t count_rows(training_options const& o) {
  return static_cast<std::int64_t>(
      data::rows_of_percentage(data::read_instructions(o.dataset).size(), o.dataset_percentage));
}

SUPEROFFLOAD_INLINE std::int64_t most_rows(training_options const& o) {
  return o.sequences_per_part() * o.max_length;
}

SUPEROFFLOAD_INLINE data::loader_options run_data::loader_options(training_options const& o) const {
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

SUPEROFFLOAD_INLINE data::loader_options run_data::evaluation_options(training_options const& o) const {
  auto options = loader_options(o);
  options.batch_size = o.sequences_per_part() * o.ranks;
  options.micro_batches = 1;
  options.shuffle = false;
  return options;
}

SUPEROFFLOAD_INLINE void expect_length(training_options const& o, model::config const& config) {
  expect(o.max_length <= config.max_positions, exit_code::bad_input, "--max_length is ", o.max_length,
         ", but the model's max_position_embeddings is ", config.max_positions);
}

SUPEROFFLOAD_INLINE run_data load_data(training_options const& o, model::config const& config) {
  auto const tokenizer = text::tokenizer::load(o.model);
  run_data data;
  data.file = data::fingerprint_of(o.dataset);
  data.training = detail::encoded(o.dataset, o.dataset_percentage, tokenizer, o, config);
  if (!o.eval_dataset.empty()) {
    data.held_out_file = data::fingerprint_of(o.eval_dataset);
    data.held_out = detail::encoded(o.eval_dataset, 100.0, tokenizer, o, config);
  }
  data.pad_id = tokenizer.pad_id().value_or(tokenizer.eos_id().value_or(0));
  expect(data.pad_id < config.vocabulary, exit_code::bad_input, o.model.string(), ": the padding id ",
         data.pad_id, " is beyond the model's vocab_size ", config.vocabulary);
  return data;
}

SUPEROFFLOAD_INLINE named_values identity_of(training_options const& o, model::config const& config,
                                             run_data const& data, std::string const& element_type) {
  auto const flag = [](bool on) { return std::string{on ? "on" : "off"}; };
  auto freeze = std::string{};
  for (auto const& pattern : o.freeze) { freeze += (freeze.empty() ? "" : " ") + pattern; }
  return {{"model", concat(config.model_type, " ", config.layers, "x", config.hidden, "/",
                           config.intermediate, " heads ", config.heads, "/", config.kv_heads, "x",
                           config.head_dim, " vocabulary ", config.vocabulary)},
          {"dtype", element_type},
          {"freeze", freeze},
          {"dataset", detail::text_of(data.file)},
          {"dataset_percentage", concat(o.dataset_percentage)},
          {"template", concat(static_cast<int>(o.prompt_template))},
          {"label_mask", o.mask_prompt ? "prompt" : "none"},
          {"append_eos", flag(o.append_eos)},
          {"max_length", concat(o.max_length)},
          {"packing", flag(o.packing)},
          {"shuffle", flag(o.shuffle)},
          {"seed", concat(o.seed)}};
}

SUPEROFFLOAD_INLINE named_values settings_of(training_options const& o, io::model_files const& model,
                                             run_data const& data) {
  named_values settings;
  for (auto const& entry : shared_settings(o)) {
    if (detail::is_one_of(detail::optimization_flags, entry.first)) {
      settings.push_back(entry);
    }
  }
  settings.emplace_back("--eval_dataset",
                        o.eval_dataset.empty() ? "none" : detail::text_of(data.held_out_file));
  auto const config = io::parse_json(model.config, io::shown(model.directory / "config.json"));
  for (auto const& field : config.items()) {
    if (!detail::is_one_of(detail::descriptive_fields, field.key())) {
      settings.emplace_back(concat("config.json's ", field.key()), field.value().dump());
    }
  }
  for (auto const& [name, content] : model.others) {
    if (detail::is_one_of(detail::tokenizer_files, name)) {
      settings.emplace_back(name, concat("SHA-256 ", io::sha256_hex(std::as_bytes(std::span{content}))));
    }
  }
  return settings;
}

}  // namespace superoffload::train
