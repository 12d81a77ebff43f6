// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/unknown_flags.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <utility>

namespace superoffload::cli {
namespace detail {

/// Levenshtein's distance, by rows of its table.
SUPEROFFLOAD_INLINE std::size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      auto const replaced = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// Flags of other trainers whose name is not near to ours, and what is written here instead.
struct name_elsewhere {
  std::string_view flag, here;
};
inline constexpr auto names_elsewhere = std::to_array<name_elsewhere>({
    {"--assistant_only_loss", "--label_mask"},
    {"--bf16", "--dtype bf16"},
    {"--completion_only_loss", "--label_mask"},
    {"--context_parallel_size", "--sequence_parallel"},
    {"--cutoff_len", "--max_length"},
    {"--data_path", "--dataset"},
    {"--dataset_text_field", "--columns text=NAME"},
    {"--epochs", "--num_train_epochs"},
    {"--evaluation_strategy", "--eval_steps"},
    {"--fp16", "--dtype bf16"},
    {"--global_batch_size", "--batch_size"},
    {"--max_seq_len", "--max_length"},
    {"--micro_batch_size", "--batch_size with --gradient_accumulation_steps"},
    {"--model_max_length", "--max_length"},
    {"--nproc_per_node", "--gpus"},
    {"--num_epochs", "--num_train_epochs"},
    {"--num_gpus", "--gpus"},
    {"--num_processes", "--gpus"},
    {"--offload_optimizer", "--offload"},
    {"--output", "--output_dir"},
    {"--per_device_train_batch_size", "--batch_size with --gradient_accumulation_steps"},
    {"--run_name", "--wandb_run_name"},
    {"--seq_len", "--max_length"},
    {"--sequence_parallel_size", "--sequence_parallel"},
    {"--tiled_mlp_num_shards", "--tiled_mlp"},
    {"--torch_dtype", "--dtype"},
    {"--train_file", "--dataset"},
    {"--train_on_inputs", "--label_mask"},
    {"--validation_file", "--eval_dataset"},
    {"--zero_hpz_partition_size", "--hybrid_sharding"},
    {"--zero_stage", "--deepspeed_config"},
});

/// What may be meant by a flag that is not among `names`; empty: unknown.
SUPEROFFLOAD_INLINE std::string meant_by(std::string_view flag, std::vector<std::string> const& names) {
  auto const other = std::ranges::find(names_elsewhere, flag, &name_elsewhere::flag);
  return other != names_elsewhere.end() ? std::string{other->here} : nearest_name(flag, names);
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string nearest_name(std::string_view word, std::vector<std::string> const& names) {
  constexpr std::size_t longest = 64;  // the table's size is the product of two lengths
  std::string nearest;
  auto least = word.size() / 3 + 1;
  for (auto const& name : names) {
    if (word.size() > longest || name.size() > longest) {
      continue;
    }
    if (auto const distance = detail::edits(word, name); distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

namespace detail {

/// Of a value that is no number, or of a switch, which CLI11 calls "Could not convert: --FLAG = VALUE".
SUPEROFFLOAD_INLINE std::string number_refusal(CLI::App const& app, std::string_view what) {
  auto const begin = std::min(what.find("--"), what.size());
  auto const middle = what.find(" = ", begin);
  if (middle == what.npos) {
    return printable(what, 400);
  }
  auto const flag = what.substr(begin, middle - begin);
  auto const* const option = app.get_option_no_throw(std::string{flag});
  bool const is_switch = option != nullptr && option->get_expected_max() == 0;
  auto const kind = option == nullptr ? std::string{} : option->get_type_name();
  bool const is_whole = kind == "INT" || kind == "UINT" || kind == "N";
  return concat(printable(flag, 80), " is '", printable(what.substr(middle + 3), 80), "', expected ",
                is_switch  ? "no value"
                : is_whole ? "a whole number"
                           : "a number",
                flag == "--deepspeed" ? "; --deepspeed_config FILE names a configuration" : "");
}

SUPEROFFLOAD_INLINE std::vector<std::string> flags_of(CLI::App const& app) {
  std::vector<std::string> names;
  for (auto const* option : app.get_options()) {
    for (auto const& name : option->get_lnames()) { names.push_back("--" + name); }
  }
  return names;
}

SUPEROFFLOAD_INLINE std::string no_flag(CLI::App const& app, std::string_view flag) {
  auto const meant = meant_by(flag, flags_of(app));
  return concat("there is no flag ", printable(flag, 80), meant.empty() ? "" : " (did you mean ", meant,
                meant.empty() ? "" : "?)");
}

/// Of a line of the file of --config, which CLI11 calls "INI was not able to parse NAME".
SUPEROFFLOAD_INLINE std::string file_refusal(CLI::App const& app, std::string_view what) {
  constexpr std::string_view begin = "INI was not able to parse ";
  if (!what.starts_with(begin)) {
    return printable(what, 400);
  }
  auto const name = what.substr(begin.size());
  return concat("--config: ", no_flag(app, concat("--", name)), "; expected lines FLAG = VALUE");
}

/// Of a value out of its range, which CLI11 calls "--FLAG: Value X not in range A to B".
SUPEROFFLOAD_INLINE std::string range_refusal(std::string what) {
  constexpr std::string_view before = ": Value ", between = " not in range ";
  auto const first = what.find(before);
  auto const second = what.find(between, std::min(first, what.size()));
  if (first != what.npos && second != what.npos) {
    what.replace(second, between.size(), ", expected ");
    what.replace(first, before.size(), " is ");
  }
  return printable(what, 400);
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string refusal_of(CLI::App const& app, CLI::ParseError const& error) {
  auto const help = "; --help lists the flags";
  if (dynamic_cast<CLI::ConversionError const*>(&error) != nullptr) {
    return concat(detail::number_refusal(app, error.what()), help);
  }
  if (dynamic_cast<CLI::FileError const*>(&error) != nullptr) {
    return concat("--config: ", printable(error.what(), 400), help);
  }
  if (dynamic_cast<CLI::ConfigError const*>(&error) != nullptr) {
    return concat(detail::file_refusal(app, error.what()), help);
  }
  if (dynamic_cast<CLI::ExtrasError const*>(&error) == nullptr) {
    return concat(detail::range_refusal(error.what()), help);
  }
  auto const extras = app.remaining();
  auto const flag = std::ranges::find_if(extras, [](auto const& extra) { return extra.starts_with("-"); });
  if (flag == extras.end()) {
    return concat("'", printable(extras.empty() ? "" : extras.front(), 80), "' belongs to no flag", help);
  }
  return concat(detail::no_flag(app, flag->substr(0, flag->find('='))), help);
}

}  // namespace superoffload::cli
