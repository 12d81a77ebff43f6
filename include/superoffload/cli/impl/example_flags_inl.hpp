// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/hub_cache.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

/// The flags of DeepSpeed's SuperOffload example (finetune_zero3.py) that are no flags of a fine-tuner. They
/// are accepted, so that its command lines work, and a line says what becomes of each.
namespace superoffload::cli::detail {

struct example_flags {
  std::optional<int> local_rank;  ///< what DeepSpeed's launcher adds to a command
  std::optional<std::int64_t> bench_steps, warmup_steps;
  std::optional<double> warmup;
  std::string leaf_module, dataset_name;
  bool deepspeed = false, deterministic = false, use_wandb = false;
};

SUPEROFFLOAD_INLINE void add_example_flags(CLI::App& app, example_flags& f) {
  constexpr char const* hidden = "";
  app.add_option("--local_rank", f.local_rank)->group(hidden);
  app.add_flag("--deepspeed", f.deepspeed)->group(hidden);
  app.add_option("--leaf_module", f.leaf_module)->group(hidden);
  app.add_flag("--deterministic", f.deterministic)->group(hidden);
  app.add_option("--bench_steps", f.bench_steps)->group(hidden);
  app.add_option("--warmup_steps", f.warmup_steps)->group(hidden);  // beside --bench_steps only
  app.add_option("--warmup", f.warmup)->group(hidden);
  app.add_flag("--use_wandb", f.use_wandb)->group(hidden);
  app.add_option("--dataset_name", f.dataset_name)->group(hidden);
}

/// A model may be named as on the hub, if the hub's tools have downloaded it. A file is refused.
SUPEROFFLOAD_INLINE void settle_model(command_line& c) {
  auto const name = c.training.model.string();
  auto const status = std::filesystem::status(c.training.model);
  expect(!std::filesystem::is_regular_file(status), exit_code::bad_input, "--model is ",
         io::shown(c.training.model), ", a file; expected the directory of a checkpoint");
  if (std::filesystem::exists(status) || !io::is_hub_name(name)) {
    return;
  }
  auto const cache = io::hub_cache_directory();
  auto const found = io::cached_snapshot(cache, "models", name);
  expect(found.has_value(), exit_code::bad_input, "--model is ", printable(name, 120),
         ", which is no directory here and not in the hub's cache, ", io::shown(cache),
         "; download it: huggingface-cli download ", printable(name, 120));
  c.training.model = *found;
  c.notes.push_back(concat("--model ", name, " is ", io::shown(*found)));
}

SUPEROFFLOAD_INLINE void settle_data(example_flags const& f, command_line& c) {
  if (f.dataset_name.empty()) {
    return;
  }
  auto const name = printable(f.dataset_name, 120);
  if (!c.training.dataset.empty()) {
    c.notes.push_back(concat("--dataset_name ", name, " has no effect: the rows are those of --dataset"));
    return;
  }
  expect(std::filesystem::exists(f.dataset_name), exit_code::bad_input, "--dataset_name is ", name,
         ", which is no file or directory here, and nothing is downloaded; expected --dataset FILE, with the "
         "rows as "
         "JSON lines: python -c \"import datasets; datasets.load_dataset('",
         name, "', split='train').to_json('rows.jsonl')\"");
  c.training.dataset = {data::source{f.dataset_name, std::nullopt}};
}

/// --bench_steps N is --max_steps N, if that is not less.
SUPEROFFLOAD_INLINE void settle_benchmark(example_flags const& f, command_line& c) {
  if (!f.bench_steps) {
    return;
  }
  expect(*f.bench_steps >= 1 && *f.bench_steps <= 1'000'000'000, exit_code::bad_input, "--bench_steps is ",
         *f.bench_steps, ", expected 1 to 1000000000");
  auto& steps = c.training.max_steps;
  steps = steps > 0 ? std::min(steps, *f.bench_steps) : *f.bench_steps;
  c.notes.push_back(concat("--bench_steps ", *f.bench_steps, ": the run ends after ", steps,
                           steps == 1 ? " step" : " steps", ", and the rate's schedule with it"));
  if (f.warmup_steps) {
    c.notes.push_back(concat("--warmup_steps ", *f.warmup_steps,
                             " beside --bench_steps has no effect: the time of a step is told as a median; "
                             "--lr_warmup_steps lets the rate rise"));
  }
}

SUPEROFFLOAD_INLINE void settle_example_flags(CLI::App const& app, example_flags const& f, command_line& c) {
  settle_model(c);
  settle_data(f, c);
  settle_benchmark(f, c);
  if (f.deepspeed) {
    c.notes.emplace_back("--deepspeed has no effect: --deepspeed_config FILE has the settings");
  }
  if (!f.leaf_module.empty()) {
    c.notes.push_back(concat("--leaf_module ", printable(f.leaf_module, 80),
                             " has no effect: all experts of a layer are one unit"));
  }
  if (f.deterministic) {
    c.notes.emplace_back("--deterministic has no effect: the same command gives the same bits anyway");
  }
  if (f.warmup) {
    c.notes.push_back(concat("--warmup ", *f.warmup,
                             " has no effect, nor has it in DeepSpeed's example: --lr_warmup_ratio ",
                             *f.warmup, " lets the rate rise"));
  }
  auto const& attention = app.get_option("--attn_implementation")->results();
  if (!attention.empty() && (attention.back() == "eager" || attention.back() == "sdpa" ||
                             attention.back() == "flash_attention_2")) {
    c.notes.push_back(concat("--attn_implementation ", attention.back(),
                             " is auto: attention is never computed by PyTorch"));
  }
  if (f.use_wandb) {
    c.training.report_to.wandb = true;
    c.notes.emplace_back("--use_wandb is --report_to wandb: 'wandb sync' uploads what the run writes");
  }
  for (char const* const flag : {"--wandb_project", "--wandb_run_name", "--wandb_tags"}) {
    if (app.get_option(flag)->count() > 0 && !c.training.report_to.wandb) {
      c.notes.push_back(concat(flag, " has no effect without --report_to wandb"));
    }
  }
}

}  // namespace superoffload::cli::detail
