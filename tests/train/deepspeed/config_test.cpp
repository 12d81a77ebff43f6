// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/deepspeed/config.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;
using schedule = optim::deepspeed_schedule;

train::deepspeed_config parsed(std::string const& text) {
  return train::parse_deepspeed_config(text, "ds.json");
}

train::deepspeed_config read(char const* name) {
  return train::read_deepspeed_config(fs::path{SUPEROFFLOAD_TEST_DATA} / "deepspeed" / name);
}

std::string complaint(std::string const& text) {
  try {
    parsed(text);
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    std::string const what = e.what();
    CHECK(what.starts_with("ds.json: "));
    CHECK(what.find('\n') == std::string::npos);
    CHECK(what.size() < 1000);
    return what;
  }
  return "no complaint";
}

/// A section of zero_optimization with the given contents.
std::string zero(std::string const& members) { return R"({"zero_optimization": {)" + members + "}}"; }
std::string offload(std::string const& members) {
  return zero(R"("stage": 3, "offload_optimizer": {)" + members + "}");
}
std::string optimizer(std::string const& params) {
  return R"({"optimizer": {"type": "AdamW", "params": {)" + params + "}}}";
}
std::string scheduler(std::string const& type, std::string const& params) {
  return R"({"scheduler": {"type": ")" + type + R"(", "params": {)" + params + "}}}";
}

TEST_CASE("the configurations of DeepSpeed's SuperOffload examples are read as they are") {
  struct {
    char const* name;
    std::int64_t batch;
    offload::mode mode;
    double ratio;  // 0: not said
  } const cases[] = {{"llama_8b_super.json", 4, offload::mode::super, 0.8},
                     {"qwen3_14b_super.json", 4, offload::mode::super, 0.9},
                     {"gpt_oss_20b_super.json", 4, offload::mode::super, 0.9},
                     {"llama_70b_super.json", 16, offload::mode::super, 0.9},
                     {"qwen3_14b_zero.json", 4, offload::mode::zero, 0.0}};
  for (auto const& expected : cases) {
    CAPTURE(expected.name);
    auto const c = read(expected.name);
    CHECK(c.train_batch_size.value == expected.batch);
    CHECK(c.accumulation.value == 1);
    CHECK_FALSE(c.micro_batch_size);
    CHECK_FALSE(c.gradient_clipping);
    CHECK_FALSE(c.lr);
    CHECK_FALSE(c.schedule);
    CHECK_FALSE(c.offload_weights);
    CHECK(c.bf16.value == true);
    CHECK(c.wall_clock_breakdown.value == true);
    CHECK(c.offload.value == expected.mode);
    CHECK(c.ratio.value.value_or(0.0) == expected.ratio);
    CHECK(c.cpuadam_cores_perc.value.value_or(0.0) == (expected.ratio > 0.0 ? 0.9 : 0.0));
    CHECK(
        c.note.ends_with(": without effect here: zero_optimization.offload_optimizer.pin_memory, "
                         "zero_optimization.overlap_comm, zero_optimization.reduce_bucket_size, "
                         "zero_optimization.sub_group_size"));
  }
}

TEST_CASE("optimizer, scheduler, clipping, weights and numbers in strings are read") {
  auto const c = read("long_sequence.json");
  CHECK(c.train_batch_size.value == 8);
  CHECK(c.micro_batch_size.value == 1);
  CHECK_FALSE(c.accumulation);
  CHECK(c.gradient_clipping.value == 1.0);
  CHECK(c.gradient_clipping.where.ends_with("long_sequence.json: gradient_clipping"));
  CHECK(c.lr.value == 5e-5);
  CHECK(c.beta1.value == 0.9);
  CHECK(c.beta2.value == 0.95);
  CHECK(c.beta2.where.ends_with(": optimizer.params.betas[1]"));
  CHECK(c.epsilon.value == 1e-8);
  CHECK(c.weight_decay.value == 0.1);
  REQUIRE(c.schedule);
  CHECK(c.schedule.value->kind == schedule::rule::warmup_cosine);
  CHECK(c.schedule.value->warmup == schedule::rise::linear);
  CHECK(c.schedule.value->end == 0.2);
  CHECK(c.warmup_steps.value == 50);
  CHECK(c.total_steps.value == 1000);
  CHECK(c.ratio.value == 0.99);
  CHECK(c.offload_weights.value == offload::choice::on);
  CHECK(c.note.find("bf16.check_grad_overflow") != std::string::npos);
  CHECK(c.note.find("activation_checkpointing") != std::string::npos);
  CHECK(c.note.find("steps_per_print") != std::string::npos);
  CHECK(c.note.find('\n') == std::string::npos);
}

TEST_CASE("auto and null leave a value to the flags") {
  auto const c = read("auto.json");
  for (auto const* value :
       {&c.train_batch_size, &c.micro_batch_size, &c.accumulation, &c.warmup_steps, &c.total_steps}) {
    CHECK_FALSE(*value);
  }
  for (auto const* value : {&c.gradient_clipping, &c.lr, &c.beta1, &c.beta2, &c.epsilon, &c.weight_decay,
                            &c.ratio, &c.cpuadam_cores_perc}) {
    CHECK_FALSE(*value);
  }
  CHECK_FALSE(c.bf16);
  REQUIRE(c.schedule);
  CHECK(c.schedule.value->kind == schedule::rule::warmup_decay);
  CHECK(c.schedule.value->warmup_steps == 0);
  CHECK(c.offload.value == offload::mode::none);
  CHECK(c.note.find("zero_optimization.stage 2 (one rank holds everything at every stage)") !=
        std::string::npos);
  CHECK(c.note.find("steps_per_print") == std::string::npos);
}

TEST_CASE("the devices of optimizer and parameters decide where state and weights live") {
  using offload::choice;
  using offload::mode;
  struct {
    std::string text;
    std::optional<mode> how;
    bool open;
    std::optional<choice> stream;
  } const cases[] = {
      {"{}", {}, false, {}},
      {zero(""), {}, false, {}},
      {offload(""), {}, false, {}},
      {offload(R"("device": "none", "ratio": 0.5)"), mode::none, false, {}},
      {offload(R"("device": "cpu")"), mode::zero, false, {}},
      {offload(R"("device": "cpu", "super_offload": false)"), mode::zero, false, {}},
      {offload(R"("device": "cpu", "super_offload": true)"), mode::super, false, {}},
      {offload(R"("device": "cpu", "super_offload": "auto")"), {}, true, {}},
      {offload(R"("device": "auto")"), {}, true, {}},
      {zero(R"("stage": 1, "offload_optimizer": {"device": "cpu", "ratio": 1.0})"), mode::zero, false, {}},
      {zero(R"("stage": 3, "offload_param": {"device": "cpu"})"), {}, false, choice::on},
      {zero(R"("stage": 3, "offload_param": {"device": "none"})"), {}, false, choice::off},
      {zero(R"("stage": 3, "offload_param": {"device": "auto"})"), {}, false, {}},
      {zero(R"("stage": 3, "offload_param": {})"), {}, false, {}},
  };
  for (auto const& expected : cases) {
    CAPTURE(expected.text);
    auto const c = parsed(expected.text);
    CHECK(c.offload.value == expected.how);
    CHECK(c.offload_is_open == expected.open);
    CHECK(c.offload_weights.value == expected.stream);
  }
  // Keys without effect if the optimizer is not offloaded.
  auto const idle = parsed(offload(R"("device": "none", "ratio": 0.5)"));
  CHECK_FALSE(idle.ratio);
  CHECK(idle.note == "ds.json: without effect here: zero_optimization.offload_optimizer.ratio");
}

TEST_CASE("precision is bf16 or float32") {
  CHECK_FALSE(parsed("{}").bf16);
  CHECK_FALSE(parsed(R"({"bf16": {}})").bf16);
  CHECK(parsed(R"({"bf16": {"enabled": false}})").bf16.value == false);
  CHECK(parsed(R"({"bf16": {"enabled": true}, "fp16": {"enabled": false}})").bf16.value == true);
  CHECK(parsed(R"({"bfloat16": {"enabled": true}})").bf16.value == true);
}

TEST_CASE("optimizer states in bf16 are read, and masters stay float32") {
  CHECK_FALSE(parsed(R"({"bf16": {"enabled": true}})").state);
  CHECK(parsed(R"({"bf16": {"bf16_optimizer_states": false}})").state.value == state_format::float32);
  auto const both = parsed(R"({"bf16": {"enabled": true, "bf16_master_weights_and_grads": true,
                                        "bf16_optimizer_states": true}})");
  CHECK(both.state.value == state_format::bf16);
  CHECK(both.note == "ds.json: without effect here: bf16.bf16_master_weights_and_grads");
}

TEST_CASE("schedulers have DeepSpeed's defaults for missing keys") {
  auto const plain = parsed(R"({"scheduler": {"type": "WarmupLR"}})");
  CHECK(plain.schedule.value->warmup_steps == 1000);
  CHECK(plain.schedule.value->warmup == schedule::rise::logarithmic);
  CHECK(plain.schedule.value->begin == 0.0);
  CHECK_FALSE(plain.lr);  // the optimizer's

  auto const decay = parsed(scheduler("WarmupDecayLR", R"("warmup_num_steps": 10, "warmup_min_lr": 1e-6)"));
  CHECK(decay.lr.value == 1e-3);
  CHECK(decay.lr.where == "ds.json: scheduler.params.warmup_max_lr");
  CHECK(decay.schedule.value->begin == 1e-6);
  CHECK(decay.warmup_steps.value == 10);
  CHECK_FALSE(decay.total_steps);

  auto const cosine = parsed(scheduler("WarmupCosineLR", R"("warmup_min_ratio": 0.1, "warmup_type": "log")"));
  CHECK(cosine.schedule.value->begin == 0.1);
  CHECK(cosine.schedule.value->end == 1e-4);
  CHECK_FALSE(cosine.lr);

  auto const both = parsed(R"({"optimizer": {"type": "Adam", "params": {"lr": 3e-5}},
                               "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 3e-5}}})");
  CHECK(both.lr.value == 3e-5);
}

TEST_CASE("numbers may have exponents, and inside zero_optimization be strings") {
  CHECK(parsed(R"({"train_batch_size": 1.6e1})").train_batch_size.value == 16);
  CHECK(parsed(R"({"gradient_clipping": 0})").gradient_clipping.value == 0.0);
  CHECK(parsed(offload(R"("device": "cpu", "ratio": "9e-1")")).ratio.value == 0.9);
  CHECK_NOTHROW(parsed(zero(R"("stage": "3", "reduce_bucket_size": "4e8", "sub_group_size": 4e8)")));
  CHECK(parsed(offload(R"("device": "cpu", "ratio": -0.0)")).ratio.value == 0.0);
}

TEST_CASE("keys without effect are named once each, with their path") {
  CHECK(parsed(R"({"train_batch_size": 4})").note.empty());
  CHECK(parsed(R"({"steps_per_print": 5, "zero_optimization": {"stage": 3, "overlap_comm": true,
                   "stage3_max_live_parameters": 1e9}, "amp": {"enabled": false}})")
            .note ==
        "ds.json: without effect here: zero_optimization.overlap_comm, "
        "zero_optimization.stage3_max_live_parameters, amp, steps_per_print");
  CHECK(parsed(zero(R"("stage": 0)")).note ==
        "ds.json: without effect here: zero_optimization.stage 0 (one rank holds everything at every stage)");
}

TEST_CASE("wrong values and keys are refused by file and JSON path") {
  struct {
    std::string text, says;
  } const cases[] = {
      // Values
      {R"({"train_batch_size": 0})", "train_batch_size: 0, expected an integer from 1 to 1000000"},
      {R"({"train_batch_size": -4})", "train_batch_size: -4, expected an integer from 1"},
      {R"({"train_batch_size": 4.5})", "train_batch_size: 4.5, expected an integer"},
      {R"({"train_batch_size": "4"})", R"(train_batch_size: "4", expected an integer)"},
      {R"({"train_batch_size": [4]})", "train_batch_size: array, expected an integer"},
      {R"({"train_batch_size": true})", "train_batch_size: true, expected an integer"},
      {R"({"train_batch_size": 18446744073709551616})", "train_batch_size: 1.8446744073709552e+19, expected"},
      {R"({"train_batch_size": 99999999999999999999999999999999999})",
       "train_batch_size: 1e+35, expected an"},
      {R"({"train_micro_batch_size_per_gpu": 0})", "train_micro_batch_size_per_gpu: 0, expected an integer"},
      {R"({"gradient_accumulation_steps": 1e7})", "gradient_accumulation_steps: 10000000.0, expected an"},
      {R"({"gradient_clipping": -1})", "gradient_clipping: -1, expected a number of at least 0"},
      {R"({"gradient_clipping": "1.0"})", R"(gradient_clipping: "1.0", expected a number of at least 0)"},
      {R"({"gradient_clipping": true})", "gradient_clipping: true, expected a number"},
      {R"({"wall_clock_breakdown": 1})", "wall_clock_breakdown: 1, expected true or false"},
      {R"({"dataloader_drop_last": true})", "dataloader_drop_last: true is not supported"},
      {zero(R"("stage": 4)"), "zero_optimization.stage: 4, expected an integer from 0 to 3"},
      {zero(R"("stage": 2.5)"), "zero_optimization.stage: 2.5, expected an integer from 0 to 3"},
      {zero(R"("overlap_comm": "yes")"), R"(zero_optimization.overlap_comm: "yes", expected true or false)"},
      {zero(R"("reduce_bucket_size": -1)"), "zero_optimization.reduce_bucket_size: -1, expected an integer"},
      {zero(R"("reduce_bucket_size": "4e8x")"), R"(reduce_bucket_size: "4e8x", expected an integer)"},
      {zero(R"("reduce_bucket_size": "")"), R"(reduce_bucket_size: "", expected an integer)"},
      {zero(R"("sub_group_size": "Infinity")"), R"(sub_group_size: "Infinity", expected an integer)"},
      {zero(R"("sub_group_size": 1e300)"), "sub_group_size: 1e+300, expected an integer"},
      {zero(R"("cpu_offload": true)"),
       "zero_optimization.cpu_offload: true is not supported: use offload_optimizer.device"},
      {zero(R"("cpu_offload_param": true)"), "cpu_offload_param: true is not supported: use offload_param"},
      {zero(R"("zero_quantized_weights": true)"), "zero_quantized_weights: true is not supported"},
      {zero(R"("zenflow": {"topk_ratio": 0.1})"), "zero_optimization.zenflow: not supported"},
      {offload(R"("device": "nvme")"),
       R"(offload_optimizer.device: "nvme", expected one of: none, cpu, auto)"},
      {offload(R"("device": 1)"), "offload_optimizer.device: 1, expected one of: none, cpu, auto"},
      {offload(R"("device": "cpu", "ratio": 1.5)"),
       "zero_optimization.offload_optimizer.ratio: 1.5, expected a number in [0, 1]"},
      {offload(R"("device": "cpu", "ratio": -0.1)"), "offload_optimizer.ratio: -0.1, expected a number in"},
      {offload(R"("device": "cpu", "ratio": "nan")"), R"(offload_optimizer.ratio: "nan", expected a number)"},
      {offload(R"("device": "cpu", "ratio": "half")"),
       R"(offload_optimizer.ratio: "half", expected a number)"},
      {offload(R"("device": "cpu", "ratio": {})"), "offload_optimizer.ratio: object, expected a number"},
      {offload(R"("device": "cpu", "cpuadam_cores_perc": 0)"),
       "cpuadam_cores_perc: 0, expected a number above"},
      {offload(R"("device": "cpu", "cpuadam_cores_perc": 90)"),
       "cpuadam_cores_perc: 90, expected a number in"},
      {offload(R"("device": "cpu", "pin_memory": "true")"), R"(pin_memory: "true", expected true or false)"},
      {offload(R"("device": "cpu", "super_offload": 1)"), "super_offload: 1, expected true or false"},
      {zero(R"("stage": 3, "offload_param": {"device": "nvme"})"),
       R"(offload_param.device: "nvme", expected)"},
      {R"({"bf16": true})", "bf16: true, expected an object"},
      {R"({"bf16": {"enabled": "yes"}})", R"(bf16.enabled: "yes", expected true or false)"},
      {R"({"bf16": {"enabled": true, "bf16_optimizer_states": 1}})",
       "bf16.bf16_optimizer_states: 1, expected true or false"},
      {R"({"fp16": {"enabled": true}})",
       "fp16.enabled: true, but fp16 is not supported; expected bf16.enabled"},
      {R"({"bf16": {"enabled": false}, "fp16": {"enabled": true}})", "fp16.enabled: true, but fp16 is not"},
      {optimizer(R"("lr": -1e-5)"), "optimizer.params.lr: -1e-05, expected a number of at least 0"},
      {optimizer(R"("lr": "1e-5")"), R"(optimizer.params.lr: "1e-5", expected a number)"},
      {optimizer(R"("lr": [1e-5])"), "optimizer.params.lr: array, expected a number"},
      {optimizer(R"("betas": 0.9)"), "optimizer.params.betas: 0.9, expected two numbers"},
      {optimizer(R"("betas": [0.9])"), "optimizer.params.betas: array, expected two numbers"},
      {optimizer(R"("betas": [0.9, 1.0])"), "optimizer.params.betas[1]: 1, expected a number below 1"},
      {optimizer(R"("betas": [-0.1, 0.9])"), "optimizer.params.betas[0]: -0.1, expected a number in [0, 1]"},
      {optimizer(R"("betas": ["0.9", 0.9])"), R"(optimizer.params.betas[0]: "0.9", expected a number)"},
      {optimizer(R"("eps": 0)"), "optimizer.params.eps: 0, expected a number above 0"},
      {optimizer(R"("eps": 1e-60)"), "optimizer.params.eps: 1e-60, expected a number above 0"},
      {optimizer(R"("weight_decay": -0.1)"), "optimizer.params.weight_decay: -0.1, expected a number"},
      {optimizer(R"("amsgrad": true)"), "optimizer.params.amsgrad: true is not supported"},
      {optimizer(R"("bias_correction": false)"), "optimizer.params.bias_correction: false is not supported"},
      {R"({"optimizer": {"type": "Lion"}})", R"(optimizer.type: "Lion", expected one of: adamw, adam)"},
      {R"({"optimizer": {"type": null}})", "optimizer.type is missing"},
      {R"({"optimizer": {"params": {}}})", "optimizer.type is missing, expected AdamW"},
      {R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false, "weight_decay": 0.1}}})",
       "optimizer.params.adam_w_mode: false, but decay is AdamW's here"},
      {R"({"optimizer": []})", "optimizer: array, expected an object"},
      {R"({"scheduler": {"type": "OneCycle"}})",
       R"(scheduler.type: "OneCycle", expected one of: WarmupLR, WarmupDecayLR, WarmupCosineLR)"},
      {R"({"scheduler": {}})", "scheduler.type is missing"},
      {scheduler("WarmupLR", R"("warmup_num_steps": 0)"), "warmup_num_steps: 0, expected an integer from 1"},
      {scheduler("WarmupLR", R"("warmup_num_steps": 1.5)"), "warmup_num_steps: 1.5, expected an integer"},
      {scheduler("WarmupLR", R"("warmup_type": "cosine")"), R"(warmup_type: "cosine", expected one of: log)"},
      {scheduler("WarmupLR", R"("warmup_min_lr": [0, 0])"),
       "scheduler.params.warmup_min_lr: array, expected"},
      {scheduler("WarmupLR", R"("last_batch_iteration": 5)"), "last_batch_iteration: 5, expected -1"},
      {scheduler("WarmupDecayLR", R"("total_num_steps": 0)"),
       "total_num_steps: 0, expected an integer from 1"},
      {scheduler("WarmupCosineLR", R"("cos_min_ratio": 2)"), "cos_min_ratio: 2, expected a number in [0, 1]"},
      {scheduler("WarmupCosineLR", R"("warmup_min_ratio": -1)"),
       "warmup_min_ratio: -1, expected a number in"},
      {R"({"torch_autocast": {"enabled": true}})", "torch_autocast: not supported"},
      {R"({"compression_training": {"layer_reduction": {"enabled": true}}})",
       "compression_training: not supp"},
      {R"({"elasticity": {"enabled": "auto"}})", "elasticity: not supported"},
      {R"({"amp": true})", "amp: not supported"},
      // Contradictions
      {R"({"bf16": {"enabled": true}, "fp16": {"enabled": true}})",
       "fp16.enabled: true, but bf16.enabled is true as well"},
      {R"({"bf16": {"enabled": true}, "bfloat16": {"enabled": true}})", "bfloat16: bf16 is given as well"},
      {offload(R"("device": "none", "super_offload": true)"),
       "super_offload: true, but offload_optimizer.device is not cpu"},
      {offload(R"("super_offload": true)"), "super_offload: true, but offload_optimizer.device is not cpu"},
      {zero(R"("stage": 0, "offload_optimizer": {"device": "cpu"})"),
       "offload_optimizer.device: cpu, but zero_optimization.stage is 0"},
      {zero(R"("offload_optimizer": {"device": "cpu"})"), "device: cpu, but zero_optimization.stage is 0"},
      {zero(R"("stage": 2, "offload_optimizer": {"device": "cpu", "super_offload": true})"),
       "super_offload: true, but zero_optimization.stage is 2; expected stage 3"},
      {zero(R"("stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.5})"),
       "ratio: 0.5, but zero_optimization.stage is 2"},
      {zero(R"("stage": 2, "offload_param": {"device": "cpu"})"),
       "offload_param.device: cpu, but zero_optimization.stage is 2"},
      {R"({"optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
           "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-4}}})",
       "scheduler.params.warmup_max_lr: 1e-04, but optimizer.params.lr is 1e-05; DeepSpeed takes the "
       "scheduler's"},
      {R"({"optimizer": {"type": "AdamW", "params": {"lr": 1e-5}}, "scheduler": {"type": "WarmupDecayLR"}})",
       "scheduler.params.warmup_max_lr: 0.001, but optimizer.params.lr is 1e-05"},
      // Unknown keys
      {R"({"train_batchsize": 4})", "train_batchsize: unknown, expected a key of DeepSpeed's configuration"},
      {R"({"": 4})", ": unknown"},
      {R"({"bf16": {"enable": true}})", "bf16.enable: unknown"},
      {R"({"fp16": {"scale": 1}})", "fp16.scale: unknown"},
      {zero(R"("offload_optimiser": {})"), "zero_optimization.offload_optimiser: unknown"},
      {offload(R"("superoffload": true)"), "zero_optimization.offload_optimizer.superoffload: unknown"},
      {zero(R"("offload_param": {"ratio": 1})"), "zero_optimization.offload_param.ratio: unknown"},
      {optimizer(R"("learning_rate": 1)"), "optimizer.params.learning_rate: unknown"},
      {optimizer(R"("max_grad_norm": 1)"), "optimizer.params.max_grad_norm: unknown"},
      {R"({"optimizer": {"type": "AdamW", "lr": 1}})", "optimizer.lr: unknown"},
      {scheduler("WarmupLR", R"("total_num_steps": 10)"), "scheduler.params.total_num_steps: unknown"},
      {scheduler("WarmupCosineLR", R"("warmup_max_lr": 1)"), "scheduler.params.warmup_max_lr: unknown"},
      {R"({"scheduler": {"type": "WarmupLR", "steps": 1}})", "scheduler.steps: unknown"},
      {"{\"\\u001b[31m\\n\": 1}", R"(\x1b[31m\x0a: unknown)"},
      {"{\"" + std::string(5000, 'k') + "\": 1}", "...: unknown"},
      // No JSON, or JSON of another kind
      {"", "expected valid JSON"},
      {"[]", "ds.json: array, expected an object"},
      {"null", "ds.json: null, expected an object"},
      {"{\"a\": 1,}", "expected valid JSON"},
      {"{\"train_batch_size\": 4} // four", "expected valid JSON"},
      {"{\"gradient_clipping\": NaN}", "expected valid JSON"},
      {"{\"gradient_clipping\": Infinity}", "expected valid JSON"},
      {"{\"gradient_clipping\": 1e999}", "expected valid JSON"},
      {"{\"train_batch_size\": 08}", "expected valid JSON"},
      {"{\"wandb\": \"\xff\"}", "expected valid JSON in UTF-8"},
      {std::string{"{}\0", 3}, "zero byte"},
      {R"({"train_batch_size": 4, "train_batch_size": 8})", "field 'train_batch_size' appears twice"},
      {R"({"wandb": {"a": 1, "a": 1}})", "field 'a' appears twice"},
      {R"({"wandb": )" + std::string(16, '[') + std::string(16, ']') + "}", "nested deeper than 16"},
      {std::string(100'000, '['), "nested deeper than 16"},
      {R"({"wandb": [0)" +
           [] {
             std::string zeros;
             for (int i = 0; i < 100'001; ++i) { zeros += ",0"; }
             return zeros;
           }() +
           "]}",
       "100001 commas, expected at most"},
      {"{\"wandb\": \"" + std::string(std::size_t{1} << 20, 'x') + "\"}", "expected at most 1048576"},
  };
  for (auto const& c : cases) {
    CAPTURE(c.text.substr(0, 200));
    auto const said = complaint(c.text);
    CAPTURE(said);
    CHECK(said.find(c.says) != std::string::npos);
  }
}

TEST_CASE("a missing or too large file is refused by its name") {
  test::scratch_directory const directory;
  auto const file = directory.path() / "ds.json";
  CHECK_THROWS_WITH_AS(train::read_deepspeed_config(file), doctest::Contains("ds.json"), error);
  CHECK_THROWS_WITH_AS(train::read_deepspeed_config(directory.path()), doctest::Contains("regular"), error);
  std::ofstream{file} << "{}" << std::string(std::size_t{1} << 20, ' ');
  CHECK_THROWS_WITH_AS(train::read_deepspeed_config(file), doctest::Contains("ds.json"), error);
}

}  // namespace
