// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/examples.hpp>
#include <superoffload/data/source.hpp>
#include <superoffload/io/checksum.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/train/run/run_data.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::train {
namespace detail {

/// Appends the rows of a data set. \returns what identifies them.
SUPEROFFLOAD_INLINE data_set read_set(std::filesystem::path const& path, bool follow_links,
                                      data::reading_options how, data::row_encoder const& encoder,
                                      data::example_set& examples, std::vector<std::string>& notes) {
  auto const files = data::files_of(path, follow_links);
  data_set read{.content = data::fingerprint_of(files), .format = data::format_of(files, how)};
  how.format = read.format;
  auto rows = data::read_examples(files, how, encoder, &notes);
  auto const vocabulary = encoder.options().vocabulary;
  expect(rows.largest_id() < vocabulary, exit_code::bad_input, path.string(), ": the tokenizer makes id ",
         rows.largest_id(), ", but the model's vocab_size is ", vocabulary,
         "; expected the tokenizer that belongs to the model");
  read.rows = rows.size();
  read.tokens = rows.tokens();
  if (examples.empty()) {
    examples = std::move(rows);
  } else {
    examples.append(rows);
  }
  return read;
}

/// What identifies a data set. Alpaca without renamed columns is not named: earlier versions knew no other.
SUPEROFFLOAD_INLINE std::string text_of(data_set const& set, run_data const& data,
                                        training_options const& o) {
  auto text = concat(set.content.bytes, " bytes, FNV-1a ", set.content.fnv1a);
  if (set.format != data::row_format::alpaca) {
    text += concat(", format ", data::name_of(set.format));
  }
  if (set.weight) {
    text += concat(", weight ", *set.weight);
  }
  if (data::has_conversations(set.format)) {
    text += concat(", chat template ", data.chat_template, ", learn ", text::name_of(o.learn));
  }
  return o.columns.empty() ? text : concat(text, ", columns ", data::to_text(o.columns));
}
SUPEROFFLOAD_INLINE std::string text_of(std::vector<data_set> const& sets, run_data const& data,
                                        training_options const& o) {
  std::string text;
  for (auto const& set : sets) { text += concat(text.empty() ? "" : " + ", text_of(set, data, o)); }
  return text;
}

/// An epoch has rows of every data set.
SUPEROFFLOAD_INLINE void expect_shares(training_options const& o, run_data const& data) {
  auto const mixture = data.mixture();
  auto const shares = data::shares_of(mixture);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    expect(shares[i] > 0, exit_code::bad_input, "--dataset: a weight of ", mixture.weights[i],
           " leaves no row of ", io::shown(o.dataset[i].path), " in an epoch of ", data.training.size(),
           " rows; expected a larger one");
  }
}

inline constexpr std::array<std::string_view, 11> optimization_flags{
    "--batch_size",      "--lr",         "--lr_scheduler",  "the schedule of --deepspeed_config",
    "--lr_warmup_steps", "--adam_beta1", "--adam_beta2",    "--adam_eps",
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
  std::size_t rows = 0;
  for (auto const& set : o.dataset) {
    rows += data::count_rows(data::files_of(set.path, o.follow_links), reading_of(o));
  }
  return static_cast<std::int64_t>(rows);
}

SUPEROFFLOAD_INLINE data::reading_options reading_of(training_options const& o) {
  return {.format = o.format, .columns = o.columns, .percentage = o.dataset_percentage, .limits = {}};
}

SUPEROFFLOAD_INLINE data::encoding_options encoding_of(training_options const& o,
                                                       text::tokenizer const& tokenizer,
                                                       std::vector<data::row_format> const& formats) {
  data::encoding_options encoding{.prompt_template = o.prompt_template,
                                  .mask_prompt = o.mask_prompt,
                                  .append_eos = o.append_eos,
                                  .max_length = o.max_length,
                                  .learn = o.learn};
  if (std::ranges::any_of(formats, data::has_conversations)) {
    encoding.chat = text::chat_template::of_model(o.model_source(), tokenizer, o.chat_template);
  }
  return encoding;
}

SUPEROFFLOAD_INLINE std::vector<std::string> notes_on(data::encoding_options const& encoding,
                                                      text::tokenizer const& tokenizer) {
  std::string missing;
  if (encoding.chat) {
    for (auto const mark : encoding.chat->marks_missing_in(tokenizer)) {
      missing += concat(missing.empty() ? "" : ", ", mark);
    }
  }
  if (missing.empty()) {
    return {};
  }
  return {concat("chat template ", encoding.chat->name(), ": the tokenizer has no token for ", missing,
                 ", so they become text; is it the template of this model?")};
}

SUPEROFFLOAD_INLINE std::int64_t most_rows(training_options const& o) {
  return o.tokens_per_batch > 0
             ? data::most_tokens_of_part_within(o.tokens_per_batch, o.max_length, o.parts())
             : data::most_tokens_of_part(o.batch_size, o.max_length, o.parts());
}

SUPEROFFLOAD_INLINE data::mixture run_data::mixture() const {
  data::mixture mixed;
  for (auto const& set : sets) {
    if (set.weight) {
      mixed.rows.push_back(set.rows);
      mixed.weights.push_back(*set.weight);
    }
  }
  return mixed;
}

SUPEROFFLOAD_INLINE std::int64_t run_data::epoch_tokens() const {
  auto const shares = data::shares_of(mixture());
  double tokens = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    tokens += static_cast<double>(sets[i].tokens) * static_cast<double>(shares[i]) /
              static_cast<double>(sets[i].rows);
  }
  return shares.empty() ? training.tokens() : static_cast<std::int64_t>(tokens);
}

SUPEROFFLOAD_INLINE std::string run_data::formats() const {
  std::string text;
  for (auto set = sets.begin(); set != sets.end(); ++set) {
    auto const same = [&](data_set const& other) { return other.format == set->format; };
    if (std::none_of(sets.begin(), set, same)) {
      text += concat(text.empty() ? "" : ", ", data::name_of(set->format));
    }
  }
  return text;
}

SUPEROFFLOAD_INLINE data::loader_options run_data::loader_options(training_options const& o) const {
  return {.batch_size = o.batch_size,
          .tokens_per_batch = o.tokens_per_batch,
          .micro_batches = o.accumulation,
          .rank = o.rank / o.sequence_ranks,
          .world = o.groups(),
          .seed = o.seed,
          .shuffle = o.shuffle,
          .packing = o.packing,
          .padding = o.padding,
          .max_length = o.max_length,
          .mixed = mixture(),
          .pad_id = pad_id,
          .learn_padding = o.learn_padding};
}

SUPEROFFLOAD_INLINE data::loader_options run_data::evaluation_options(training_options const& o) const {
  auto options = loader_options(o);
  options.batch_size = most_rows(o) / o.max_length * o.groups();
  options.tokens_per_batch = 0;
  options.micro_batches = 1;
  options.shuffle = false;
  options.mixed = {};
  return options;
}

SUPEROFFLOAD_INLINE run_data load_data(training_options const& o, model::config const& config) {
  auto const tokenizer = text::tokenizer::load(o.model_source());
  run_data data;
  auto reading = reading_of(o);
  std::vector<data::row_format> formats;
  for (auto const& set : o.dataset) {
    formats.push_back(data::format_of(data::files_of(set.path, o.follow_links), reading));
  }
  if (!o.eval_dataset.empty()) {
    formats.push_back(data::format_of(data::files_of(o.eval_dataset, o.follow_links), reading));
  }
  auto encoding = encoding_of(o, tokenizer, formats);
  encoding.vocabulary = config.vocabulary;
  data.chat_template = encoding.chat ? encoding.chat->name() : std::string_view{};
  data.notes = notes_on(encoding, tokenizer);
  data::row_encoder const encoder{tokenizer, encoding};
  for (auto const& set : o.dataset) {
    data.sets.push_back(
        detail::read_set(set.path, o.follow_links, reading, encoder, data.training, data.notes));
    data.sets.back().weight = o.dataset.size() > 1 ? set.weight : std::nullopt;
  }
  detail::expect_shares(o, data);
  if (!o.eval_dataset.empty()) {
    reading.percentage = 100.0;
    std::vector<std::string> told;  // of an evaluation alone, whose rows are those of the data set
    data.held_out_set = detail::read_set(o.eval_dataset, o.follow_links, reading, encoder, data.held_out,
                                         o.eval_only ? told : data.notes);
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
  return {
      {"model",
       concat(config.model_type, " ", config.layers, "x", config.hidden, "/", config.intermediate, " heads ",
              config.heads, "/", config.kv_heads, "x", config.head_dim, " vocabulary ", config.vocabulary,
              config.load_balancing_weight > 0.0
                  ? concat(" load-balancing loss times ", config.load_balancing_weight)
                  : std::string{})},
      {"dtype", element_type},
      {"freeze", freeze},
      {"dataset", detail::text_of(data.sets, data, o)},
      {"dataset_percentage", concat(o.dataset_percentage)},
      {"template", concat(static_cast<int>(o.prompt_template))},
      {"label_mask", concat(o.mask_prompt ? "prompt" : "none", o.learn_padding ? ", padding learnt" : "")},
      {"append_eos", flag(o.append_eos)},
      {"max_length", concat(o.max_length)},
      {"packing", !o.packing  ? "off"
                  : o.shuffle ? "best fit"
                              : "on"},
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
  if (o.offload.state != state_format::float32) {  // checkpoints without the name have float32
    settings.emplace_back("--state", name_of(o.offload.state));
  }
  if (o.tiled_mlp > 0) {  // checkpoints without the name have none
    settings.emplace_back("--tiled_mlp", concat(o.tiled_mlp));
  }
  settings.emplace_back("--eval_dataset",
                        o.eval_dataset.empty() ? "none" : detail::text_of(data.held_out_set, data, o));
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
