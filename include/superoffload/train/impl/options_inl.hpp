// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/model/rope_override.hpp>
#include <superoffload/train/impl/option_names_inl.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/run/outputs.hpp>

#include <algorithm>
#include <cmath>
#include <fnmatch.h>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE void in_range(char const* flag, std::int64_t value, std::int64_t least,
                                  std::int64_t most) {
  expect(least <= value && value <= most, exit_code::bad_input, flag, " is ", value, ", expected ", least,
         " to ", most);
}

SUPEROFFLOAD_INLINE void at_least_zero(char const* flag, double value) {
  expect(std::isfinite(value) && value >= 0.0, exit_code::bad_input, flag, " is ", value,
         ", expected 0 or more");
}

SUPEROFFLOAD_INLINE void check_schedule(training_options const& o) {
  using shape = optim::schedule::shape;
  in_range("--lr_warmup_steps", o.warmup_steps, 0, 1'000'000'000);
  expect(o.warmup_ratio >= 0.0 && o.warmup_ratio <= 1.0, exit_code::bad_input, "--lr_warmup_ratio is ",
         o.warmup_ratio, ", expected 0 to 1");
  expect(o.warmup_ratio == 0.0 || o.warmup_steps == 0, exit_code::bad_input, "--lr_warmup_ratio is ",
         o.warmup_ratio, ", but --lr_warmup_steps is ", o.warmup_steps, "; expected one of them");
  at_least_zero("--min_lr", o.min_lr);
  expect(o.min_lr <= o.lr, exit_code::bad_input, "--min_lr is ", o.min_lr,
         ", expected at most --lr, which is ", o.lr);
  expect(o.min_lr == 0.0 || o.scheduler != shape::constant, exit_code::bad_input, "--min_lr is ", o.min_lr,
         ", but --lr_scheduler is constant; expected one that falls");
  expect(o.lr_cycles >= 1.0 && o.lr_cycles <= 1e6, exit_code::bad_input, "--lr_num_cycles is ", o.lr_cycles,
         ", expected 1 to 1000000");
  expect(o.lr_cycles == 1.0 || o.scheduler == shape::cosine_with_restarts, exit_code::bad_input,
         "--lr_num_cycles is ", o.lr_cycles, ", but --lr_scheduler is ", name_of(o.scheduler),
         "; expected cosine_with_restarts");
  expect(o.lr_power > 0.0 && o.lr_power <= 100.0, exit_code::bad_input, "--lr_power is ", o.lr_power,
         ", expected above 0 and at most 100");
  expect(o.lr_power == 1.0 || o.scheduler == shape::polynomial, exit_code::bad_input, "--lr_power is ",
         o.lr_power, ", but --lr_scheduler is ", name_of(o.scheduler), "; expected polynomial");
  bool const shaped = o.warmup_ratio > 0.0 || o.min_lr > 0.0;
  expect(!o.deepspeed_schedule || !shaped, exit_code::bad_input,
         "--lr_warmup_ratio and --min_lr do not change the schedule of --deepspeed_config; expected them "
         "left out, "
         "or a file without scheduler");
}

/// The schedule in one word where its parameters are the usual ones.
SUPEROFFLOAD_INLINE std::string schedule_text(training_options const& o) {
  return concat(name_of(o.scheduler), o.min_lr > 0.0 ? concat(" to ", o.min_lr) : std::string{},
                o.lr_cycles != 1.0 ? concat(", ", o.lr_cycles, " cycles") : std::string{},
                o.lr_power != 1.0 ? concat(", power ", o.lr_power) : std::string{});
}

SUPEROFFLOAD_INLINE std::string dataset_of(training_options const& o) {
  std::string paths;
  for (auto const& set : o.dataset) { paths += concat(paths.empty() ? "" : " ", set.path.string()); }
  return paths;
}

SUPEROFFLOAD_INLINE std::string weights_of(training_options const& o) {
  std::string weights;
  for (auto const& set : o.dataset) {
    weights += concat(weights.empty() ? "" : " ", set.weight.value_or(1.0));
  }
  return weights;
}

/// An evaluation alone writes nothing.
SUPEROFFLOAD_INLINE void check_eval_only(training_options const& o) {
  expect(!o.eval_only || o.resume.empty(), exit_code::bad_input,
         "--eval_only evaluates --model, but --resume is given; expected an exported model as --model");
  for (auto const& [flag, given] : {std::pair{"--metrics", !o.metrics.empty()},
                                    {"--trace", !o.trace.empty()},
                                    {"--report_to", o.report_to.any()},
                                    {"--save_checkpoint", o.save_at_end},
                                    {"--overwrite_output_dir", o.overwrite_output}}) {
    expect(!o.eval_only || !given, exit_code::bad_input, flag,
           " is given, but --eval_only writes nothing; "
           "expected one of them");
  }
}

/// Of shared_settings(): what is evaluated, saved and exported when.
SUPEROFFLOAD_INLINE std::vector<std::pair<std::string, std::string>> output_settings(
    training_options const& o) {
  return {{"--eval_steps", concat(o.eval_steps)},
          {"--save_steps", concat(o.save_steps)},
          {"--save_checkpoint", concat(o.save_at_end)},
          {"--save_total_limit", concat(o.save_total_limit)},
          {"--save_on_each_node", concat(o.save_on_each_node)},
          {"--resume", o.resume},
          {"--overwrite_output_dir", concat(o.overwrite_output)},
          {"--export", concat(o.exports)},
          {"--export_every_save", concat(o.export_every_save)},
          {"--export_best", concat(o.export_best)},
          {"--eval_only", concat(o.eval_only)},
          {"--dry_run", concat(o.dry_run)}};
}

}  // namespace detail

SUPEROFFLOAD_INLINE void check(training_options const& o) {
  constexpr std::int64_t many = 1'000'000'000;
  expect(!o.model.empty(), exit_code::bad_input,
         "--model is missing, expected the directory of a checkpoint");
  expect(!o.eval_only || !o.eval_dataset.empty(), exit_code::bad_input,
         "--eval_only needs --eval_dataset FILE to evaluate on");
  expect(o.dry_run || !o.dataset.empty(), exit_code::bad_input,
         "--dataset is missing, expected a file of JSON or JSON lines");
  expect(o.dry_run || o.eval_only || !o.output.empty(), exit_code::bad_input,
         "--output_dir is missing, expected a directory to write to");
  auto const weighted =
      std::ranges::count_if(o.dataset, [](auto const& set) { return set.weight.has_value(); });
  expect(weighted == 0 || weighted == std::ssize(o.dataset), exit_code::bad_input, "--dataset: ", weighted,
         " of ", o.dataset.size(), " data sets have a weight, expected all of them or none");
  expect(weighted < 2 || o.shuffle, exit_code::bad_input,
         "--shuffle is off, but the data sets have weights, expected on: they are mixed at random");
  expect(o.dataset_percentage > 0.0 && o.dataset_percentage <= 100.0, exit_code::bad_input,
         "--dataset_percentage is ", o.dataset_percentage, ", expected above 0 and at most 100");
  detail::in_range("--max_length", o.max_length, 2, std::int64_t{1} << 24);
  detail::in_range("--batch_size", o.batch_size, 1, 1'000'000);
  if (o.tokens_per_batch != 0) {
    detail::in_range("--tokens_per_batch", o.tokens_per_batch, o.max_length, (std::int64_t{1} << 31) - 1);
    expect(o.padding == data::pad_to::none, exit_code::bad_input, "--tokens_per_batch is ",
           o.tokens_per_batch, ", which counts tokens without padding: expected --padding none");
  }
  expect(!o.learn_padding || (o.padding == data::pad_to::max_length && !o.packing), exit_code::bad_input,
         "--learn_padding is on; expected --padding max_length and --packing off with it");
  detail::in_range("--gradient_accumulation_steps", o.accumulation, 1, o.most_accumulation());
  expect(o.epochs > 0.0 && o.epochs <= 1e6, exit_code::bad_input, "--num_train_epochs is ", o.epochs,
         ", expected above 0 and at most 1000000");
  detail::in_range("--max_steps", o.max_steps, 0, many);
  detail::in_range("--tiled_mlp", o.tiled_mlp, 0, std::int64_t{1} << 31);
  detail::at_least_zero("--lr", o.lr);
  detail::check_schedule(o);
  optim::check(o.adamw);
  detail::at_least_zero("--max_grad_norm", o.max_grad_norm);
  detail::in_range("--eval_steps", o.eval_steps, 0, many);
  detail::in_range("--log_interval", o.log_interval, 1, many);
  detail::in_range("--trace_steps", o.trace_steps, 1, 1000);
  detail::in_range("--save_steps", o.save_steps, 0, many);
  detail::in_range("--save_total_limit", o.save_total_limit, 0, 1'000'000);
  expect(o.eval_steps == 0 || !o.eval_dataset.empty(), exit_code::bad_input,
         "--eval_steps needs --eval_dataset FILE to evaluate on");
  expect(!o.export_best || !o.eval_dataset.empty(), exit_code::bad_input,
         "--export_best needs --eval_dataset FILE to compare by");
  detail::check_eval_only(o);
  expect(o.resume != "auto" || !o.overwrite_output, exit_code::bad_input,
         "--resume is auto, but --overwrite_output_dir would remove the checkpoints that it continues from; "
         "expected one of them");
  expect_outputs_apart(o);
  offload::check(o.offload);
  expect_groups("--sequence_parallel", o.sequence_ranks, o.ranks);
  expect_copies(o.offload.weight_ranks.value_or(0), o.ranks);
  expect(o.ranks == 1 || o.offload.offload_weights != offload::choice::on, exit_code::bad_input,
         "--offload_weights is on, but ", o.ranks,
         " ranks train together: expected auto or off, since each of them has only a shard of the weights "
         "and keeps it "
         "on its device");
}

// one piece: the list of settings.
SUPEROFFLOAD_INLINE std::vector<std::pair<std::string, std::string>> shared_settings(
    training_options const& o) {
  std::string schedule;
  if (auto const& d = o.deepspeed_schedule) {
    schedule = concat(static_cast<int>(d->kind), " ", static_cast<int>(d->warmup), " from ", d->begin, " to ",
                      d->peak, " in ", d->warmup_steps, ", to ", d->end, " in ", d->total_steps);
  }
  std::string freeze;
  for (auto const& pattern : o.freeze) { freeze += (freeze.empty() ? "" : " ") + pattern; }
  auto const share = [](std::optional<double> const& value) { return value ? concat(*value) : "auto"; };
  auto const budget = [](std::optional<std::size_t> bytes) {
    return bytes ? concat(static_cast<double>(*bytes) * 0x1p-30) : "all";
  };
  auto const& s = o.offload;
  auto const batch = o.tokens_per_batch > 0 ? concat(o.tokens_per_batch, " tokens") : concat(o.batch_size);
  std::vector<std::pair<std::string, std::string>> all{
      {"--output_dir", o.output.string()},
      {"the weights of --dataset", detail::weights_of(o)},
      {"--follow_links", concat(o.follow_links)},
      {"--format", std::string{data::name_of(o.format)}},
      {"--columns", data::to_text(o.columns)},
      {"--dataset_percentage", concat(o.dataset_percentage)},
      {"--max_length", concat(o.max_length)},
      {"--batch_size", batch},
      {"--gradient_accumulation_steps", concat(o.accumulation)},
      {"--sequence_parallel", concat(o.sequence_ranks)},
      {"--hybrid_sharding", s.weight_ranks ? concat(*s.weight_ranks) : "auto"},
      {"--num_train_epochs", concat(o.epochs)},
      {"--max_steps", concat(o.max_steps)},
      {"--lr", concat(o.lr)},
      {"--lr_scheduler", detail::schedule_text(o)},
      {"--lr_warmup_steps",
       o.warmup_ratio > 0.0 ? concat(o.warmup_ratio, " of all") : concat(o.warmup_steps)},
      {"the schedule of --deepspeed_config", schedule},
      {"--adam_beta1", concat(o.adamw.beta1)},
      {"--adam_beta2", concat(o.adamw.beta2)},
      {"--adam_eps", concat(o.adamw.epsilon)},
      {"--weight_decay", concat(o.adamw.weight_decay)},
      {"--no_decay", o.undecayed == no_decay::none ? "none" : "norms_and_biases"},
      {"--freeze", freeze},
      {"--max_grad_norm", concat(o.max_grad_norm)},
      {"--on_nonfinite", detail::shown(o.nonfinite)},
      {"the steps that may be skipped in a row", concat(o.most_skips)},
      {"--seed", concat(o.seed)},
      {"--template", detail::shown(o.prompt_template)},
      {"--chat_template", o.chat_template.empty() ? "auto" : o.chat_template},
      {"--learn", detail::shown(o.learn)},
      {"--label_mask", o.mask_prompt ? "prompt" : "none"},
      {"--learn_padding", concat(o.learn_padding)},
      {"--append_eos", concat(o.append_eos)},
      {"--padding", detail::shown(o.padding)},
      {"--packing", concat(o.packing)},
      {"--shuffle", concat(o.shuffle)},
      {"--activation_checkpointing", detail::shown(o.recompute)},
      {"--rope_scaling", o.rope_scaling.empty() ? "the model's" : o.rope_scaling},
      {"--tiled_mlp", concat(o.tiled_mlp)},
      {"--state", detail::shown(s.state)},
      {"--offload", detail::shown(s.how)},
      {"--ratio", share(s.ratio)},
      {"--device_updated_share", share(s.device_updated_share)},
      {"--offload_weights", detail::shown(s.offload_weights)},
      {"--cpuadam_cores_perc", concat(s.cpuadam_cores_perc)},
      {"--bucket_mib", concat(s.bucket_bytes >> 20)},
      {"--device_memory", budget(s.device_memory)},
      {"--host_memory", budget(s.host_memory)}};
  auto const of_output = detail::output_settings(o);
  all.insert(all.end(), of_output.begin(), of_output.end());
  return all;
}

SUPEROFFLOAD_INLINE std::vector<std::pair<std::string, std::string>> reported_settings(
    training_options const& o) {
  auto all = shared_settings(o);
  all.insert(all.begin(), {{"--model", o.model.string()},
                           {"--dataset", detail::dataset_of(o)},
                           {"--eval_dataset", o.eval_dataset.string()},
                           {"--deepspeed_config", o.deepspeed_config.string()},
                           {"--ranks", concat(o.ranks)}});
  std::erase_if(all, [](auto const& setting) { return setting.second.empty(); });
  return all;
}

SUPEROFFLOAD_INLINE double learning_rate(training_options const& o, std::int64_t k, std::int64_t steps) {
  if (o.deepspeed_schedule) {
    auto schedule = *o.deepspeed_schedule;
    if (schedule.total_steps == 0) {
      schedule.total_steps = steps;
    }
    return schedule(k);
  }
  auto const warmup = o.warmup_ratio > 0.0
                          ? static_cast<std::int64_t>(std::ceil(o.warmup_ratio * static_cast<double>(steps)))
                          : o.warmup_steps;
  return optim::schedule{.kind = o.scheduler,
                         .peak = o.lr,
                         .warmup_steps = warmup,
                         .total_steps = steps,
                         .minimum = o.min_lr,
                         .cycles = o.lr_cycles,
                         .power = o.lr_power}(k);
}

SUPEROFFLOAD_INLINE io::model_directory training_options::model_source() const {
  io::model_directory const plain{model, follow_links};
  return rope_scaling.empty()
             ? plain
             : io::model_directory{model, follow_links, model::rope_fields(plain, rope_scaling, max_length)};
}

SUPEROFFLOAD_INLINE model::config config_of(training_options const& o, model::family const* own) {
  auto config = model::read_config(o.model_source(), own);
  expect(o.max_length <= config.max_positions, exit_code::bad_input, "--max_length is ", o.max_length,
         ", but the model's max_position_embeddings is ", config.max_positions,
         "; expected at most that, or --rope_scaling, which extends it");
  config.gemms = o.gemms;
  config.tiled_mlp = o.tiled_mlp;
  return config;
}

SUPEROFFLOAD_INLINE tensor_choice trained_by(training_options const& o) {
  if (o.freeze.empty()) {
    return {};
  }
  return [patterns = o.freeze](autograd::tensor_entry const& tensor) {
    return std::none_of(patterns.begin(), patterns.end(),
                        [&](auto const& pattern) { return matches(pattern, tensor.name); });
  };
}

SUPEROFFLOAD_INLINE bool matches(std::string const& pattern, std::string const& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace superoffload::train
