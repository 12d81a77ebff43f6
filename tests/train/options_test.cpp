// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/options.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

using namespace superoffload;

train::training_options usual() {
  train::training_options o;
  o.model = "model";
  o.dataset = {{"data.json", {}}};
  o.output = "out";
  return o;
}

TEST_CASE("the defaults need model, data and output only") {
  CHECK_NOTHROW(train::check(usual()));
  train::training_options dry;
  dry.model = "model";
  dry.dry_run = true;
  CHECK_NOTHROW(train::check(dry));
}

TEST_CASE("each wrong value is refused by the name of its flag") {
  struct {
    char const* flag;
    void (*break_it)(train::training_options&);
  } const cases[] = {
      {"--model", [](auto& o) { o.model.clear(); }},
      {"--dataset", [](auto& o) { o.dataset.clear(); }},
      {"--output_dir", [](auto& o) { o.output.clear(); }},
      {"--dataset_percentage", [](auto& o) { o.dataset_percentage = 0.0; }},
      {"--max_length", [](auto& o) { o.max_length = 1; }},
      {"--batch_size", [](auto& o) { o.batch_size = 0; }},
      {"--gradient_accumulation_steps", [](auto& o) { o.accumulation = 9; }},
      {"--tokens_per_batch is 1023", [](auto& o) { o.tokens_per_batch = 1023; }},
      {"--tokens_per_batch is -1", [](auto& o) { o.tokens_per_batch = -1; }},
      {"--tokens_per_batch is 4096, which counts tokens without padding",
       [](auto& o) {
         o.tokens_per_batch = 4096;
         o.padding = data::pad_to::longest;
       }},
      {"--gradient_accumulation_steps is 5, expected 1 to 4",
       [](auto& o) {
         o.tokens_per_batch = 4096;
         o.accumulation = 5;
       }},
      {"--num_train_epochs", [](auto& o) { o.epochs = -1.0; }},
      {"--max_steps", [](auto& o) { o.max_steps = -1; }},
      {"--lr is", [](auto& o) { o.lr = -1e-5; }},
      {"--lr_warmup_steps", [](auto& o) { o.warmup_steps = -1; }},
      {"--lr_warmup_ratio is 1.5", [](auto& o) { o.warmup_ratio = 1.5; }},
      {"--lr_warmup_ratio is 0.1, but --lr_warmup_steps is 5",
       [](auto& o) {
         o.warmup_ratio = 0.1;
         o.warmup_steps = 5;
       }},
      {"--min_lr is 1,", [](auto& o) { o.min_lr = 1.0; }},
      {"--min_lr is 1e-06, but --lr_scheduler is constant",
       [](auto& o) {
         o.min_lr = 1e-6;
         o.scheduler = optim::schedule::shape::constant;
       }},
      {"--lr_num_cycles is 2, but --lr_scheduler is linear", [](auto& o) { o.lr_cycles = 2.0; }},
      {"--lr_power is 2, but --lr_scheduler is linear", [](auto& o) { o.lr_power = 2.0; }},
      {"--lr_power is 0", [](auto& o) { o.lr_power = 0.0; }},
      {"schedule of --deepspeed_config",
       [](auto& o) {
         o.deepspeed_schedule.emplace();
         o.min_lr = 1e-6;
       }},
      {"--adam_beta2", [](auto& o) { o.adamw.beta2 = 1.0; }},
      {"--max_grad_norm", [](auto& o) { o.max_grad_norm = -1.0; }},
      {"--eval_steps", [](auto& o) { o.eval_steps = 5; }},
      {"--export_best", [](auto& o) { o.export_best = true; }},
      {"--save_total_limit", [](auto& o) { o.save_total_limit = -2; }},
      {"--ratio is 1.5", [](auto& o) { o.offload.ratio = 1.5; }},
      {"--ratio is -0.1", [](auto& o) { o.offload.ratio = -0.1; }},
      {"--ratio is nan", [](auto& o) { o.offload.ratio = std::nan(""); }},
      {"--ratio is 0.5, but --offload is none",
       [](auto& o) {
         o.offload.how = offload::mode::none;
         o.offload.ratio = 0.5;
       }},
      {"--device_updated_share is 2", [](auto& o) { o.offload.device_updated_share = 2.0; }},
      {"--offload_weights is on, but --offload is none",
       [](auto& o) {
         o.offload.how = offload::mode::none;
         o.offload.offload_weights = offload::choice::on;
       }},
      {"--cpuadam_cores_perc is 0,", [](auto& o) { o.offload.cpuadam_cores_perc = 0.0; }},
      {"--cpuadam_cores_perc is 1.1", [](auto& o) { o.offload.cpuadam_cores_perc = 1.1; }},
      {"--bucket_mib is 0", [](auto& o) { o.offload.bucket_bytes = 1; }},
      {"--device_memory is 0", [](auto& o) { o.offload.device_memory = 0; }},
      {"--host_memory is 0", [](auto& o) { o.offload.host_memory = 0; }},
      {"--trace_steps is 0", [](auto& o) { o.trace_steps = 0; }},
      {"--bucket_mib is 5000", [](auto& o) { o.offload.bucket_bytes = std::int64_t{5000} << 20; }},
  };
  for (auto const& [flag, break_it] : cases) {
    auto o = usual();
    break_it(o);
    CHECK_THROWS_WITH_AS(train::check(o), doctest::Contains(flag), error);
  }
}

TEST_CASE("consistent flags of offloading are valid, values out of range are not") {
  auto o = usual();
  o.offload.how = offload::mode::none;
  o.offload.ratio = 0.0;
  o.offload.offload_weights = offload::choice::off;
  CHECK_NOTHROW(train::check(o));

  o.offload.ratio = 1.5;
  CHECK_THROWS_WITH_AS(train::check(o), doctest::Contains("--ratio is 1.5"), error);
}

TEST_CASE("the warm-up may be a share of the steps, rounded up as in transformers") {
  auto o = usual();
  o.lr = 1.0;
  o.warmup_ratio = 0.05;
  CHECK(train::learning_rate(o, 0, 41) == 0.0);  // 2.05 steps are 3
  CHECK(train::learning_rate(o, 2, 41) == doctest::Approx(2.0 / 3.0));
  CHECK(train::learning_rate(o, 3, 41) == 1.0);
  CHECK(train::learning_rate(o, 22, 41) == doctest::Approx(0.5));
}

TEST_CASE("reports name the choices of a run, and leave out what is not set") {
  train::training_options o;
  o.model = "a/model";
  o.nonfinite = train::on_nonfinite::stop;
  o.offload.how = offload::mode::super;
  auto const settings = train::reported_settings(o);
  auto const value_of = [&](std::string const& name) {
    auto const found =
        std::find_if(settings.begin(), settings.end(), [&](auto const& s) { return s.first == name; });
    return found == settings.end() ? std::string{"absent"} : found->second;
  };
  CHECK(value_of("--model") == "a/model");
  CHECK(value_of("--eval_dataset") == "absent");
  CHECK(value_of("--on_nonfinite") == "stop");
  CHECK(value_of("--offload") == "super");
  CHECK(value_of("--activation_checkpointing") == "auto");
  CHECK(value_of("--template") == "alpaca");
  CHECK(value_of("--learn") == "all");
  CHECK(value_of("--padding") == "none");
  CHECK(value_of("--batch_size") == "8");
}

TEST_CASE("freezing uses shell patterns over the whole name") {
  CHECK(train::matches("model.layers.0.*", "model.layers.0.mlp.up_proj.weight"));
  CHECK_FALSE(train::matches("model.layers.0.*", "model.layers.10.mlp.up_proj.weight"));
  CHECK(train::matches("*norm.weight", "model.norm.weight"));
  CHECK_FALSE(train::matches("norm", "model.norm.weight"));
}

}  // namespace
