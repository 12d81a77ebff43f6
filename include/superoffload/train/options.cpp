// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/options.hpp>

#include <cmath>
#include <fnmatch.h>

namespace superoffload::train {
namespace {

void in_range(char const* flag, std::int64_t value, std::int64_t least, std::int64_t most) {
  expect(least <= value && value <= most, exit_code::bad_input, flag, " is ", value, ", expected ", least,
         " to ", most);
}

void at_least_zero(char const* flag, double value) {
  expect(std::isfinite(value) && value >= 0.0, exit_code::bad_input, flag, " is ", value,
         ", expected 0 or more");
}

}  // namespace

void check(training_options const& o) {
  constexpr std::int64_t many = 1'000'000'000;
  expect(!o.model.empty(), exit_code::bad_input,
         "--model is missing, expected the directory of a checkpoint");
  expect(o.dry_run || !o.dataset.empty(), exit_code::bad_input,
         "--dataset is missing, expected an Alpaca JSON or JSONL file");
  expect(o.dry_run || !o.output.empty(), exit_code::bad_input,
         "--output_dir is missing, expected a directory to write to");
  expect(o.dataset_percentage > 0.0 && o.dataset_percentage <= 100.0, exit_code::bad_input,
         "--dataset_percentage is ", o.dataset_percentage, ", expected above 0 and at most 100");
  in_range("--max_length", o.max_length, 2, std::int64_t{1} << 24);
  in_range("--batch_size", o.batch_size, 1, 1'000'000);
  in_range("--gradient_accumulation_steps", o.accumulation, 1, o.batch_size);
  expect(o.epochs > 0.0 && o.epochs <= 1e6, exit_code::bad_input, "--num_train_epochs is ", o.epochs,
         ", expected above 0 and at most 1000000");
  in_range("--max_steps", o.max_steps, 0, many);
  at_least_zero("--lr", o.lr);
  in_range("--lr_warmup_steps", o.warmup_steps, 0, many);
  optim::check(o.adamw);
  at_least_zero("--max_grad_norm", o.max_grad_norm);
  in_range("--eval_steps", o.eval_steps, 0, many);
  in_range("--log_interval", o.log_interval, 1, many);
  in_range("--trace_steps", o.trace_steps, 1, 1000);
  in_range("--save_steps", o.save_steps, 0, many);
  in_range("--save_total_limit", o.save_total_limit, 0, 1'000'000);
  expect(o.eval_steps == 0 || !o.eval_dataset.empty(), exit_code::bad_input,
         "--eval_steps needs --eval_dataset FILE to evaluate on");
  expect(!o.export_best || !o.eval_dataset.empty(), exit_code::bad_input,
         "--export_best needs --eval_dataset FILE to judge by");
  offload::check(o.offload);
}

double learning_rate(training_options const& o, std::int64_t k, std::int64_t steps) {
  if (o.deepspeed_schedule) {
    auto schedule = *o.deepspeed_schedule;
    if (schedule.total_steps == 0) {
      schedule.total_steps = steps;
    }
    return schedule(k);
  }
  return optim::schedule{
      .kind = o.scheduler, .peak = o.lr, .warmup_steps = o.warmup_steps, .total_steps = steps}(k);
}

tensor_choice trained_by(training_options const& o) {
  if (o.freeze.empty()) {
    return {};
  }
  return [patterns = o.freeze](autograd::tensor_entry const& tensor) {
    return std::none_of(patterns.begin(), patterns.end(),
                        [&](auto const& pattern) { return matches(pattern, tensor.name); });
  };
}

bool matches(std::string const& pattern, std::string const& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

}  // namespace superoffload::train
