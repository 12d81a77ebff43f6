// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/deepspeed/options.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace superoffload;
using optim::deepspeed_schedule;

using flags = std::vector<std::string_view>;

/// Applies a file to `options`, which hold the `given` flags. \returns the result.
train::training_options with(std::string const& text, flags const& given = {},
                             train::training_options options = {}, std::int64_t ranks = 1) {
  train::apply(
      train::parse_deepspeed_config(text, "ds.json"),
      [&](std::string_view flag) { return std::ranges::find(given, flag) != given.end(); }, ranks, options);
  return options;
}

std::string complaint(std::string const& text, flags const& given = {}, train::training_options options = {},
                      std::int64_t ranks = 1) {
  try {
    with(text, given, std::move(options), ranks);
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    return e.what();
  }
  return "no complaint";
}

TEST_CASE("values that the file leaves out stay as in the flags") {
  train::training_options const usual;
  auto const o = with("{}");
  CHECK(o.batch_size == usual.batch_size);
  CHECK(o.accumulation == usual.accumulation);
  CHECK(o.max_grad_norm == usual.max_grad_norm);
  CHECK(o.lr == usual.lr);
  CHECK_FALSE(o.deepspeed_schedule);
  CHECK_FALSE(o.offload.ratio);
  CHECK(o.offload.offload_weights == offload::choice::automatic);
  CHECK(o.offload.how == offload::mode::none);  // DeepSpeed does not offload by default
  CHECK_NOTHROW(train::check([&] {
    auto complete = o;
    complete.model = "model";
    complete.dry_run = true;
    return complete;
  }()));
}

TEST_CASE("the three batch sizes are solved as DeepSpeed does") {
  struct {
    char const* members;
    std::int64_t ranks, batch, accumulation;
  } const cases[] = {
      {R"("train_batch_size": 32)", 1, 32, 1},
      {R"("train_batch_size": 32, "gradient_accumulation_steps": 4)", 1, 32, 4},
      {R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 4)", 1, 32, 8},
      {R"("train_micro_batch_size_per_gpu": 4)", 1, 4, 1},
      {R"("train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3)", 1, 12, 3},
      {R"("train_batch_size": 12, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3)", 1,
       12, 3},
      {R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 4)", 2, 32, 4},
      {R"("train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 3)", 2, 24, 3},
      {R"("gradient_accumulation_steps": 4)", 1, 8, 4},
      {R"("train_micro_batch_size_per_gpu": 4, "sequence_parallel_size": 2)", 4, 8, 1},
      {R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "sequence_parallel_size": 4)", 4, 32,
       8},
  };
  for (auto const& c : cases) {
    CAPTURE(c.members);
    auto const o = with(concat("{", c.members, "}"), {}, {}, c.ranks);
    CHECK(o.batch_size == c.batch);
    CHECK(o.accumulation == c.accumulation);
  }
}

TEST_CASE("ranks that share sequences are those of the file or of the flag") {
  CHECK(with("{}", {}, {}, 4).sequence_ranks == 1);
  CHECK(with(R"({"sequence_parallel_size": 2})", {}, {}, 4).sequence_ranks == 2);
  train::training_options o;
  o.sequence_ranks = 2;
  CHECK(with(R"({"sequence_parallel_size": 2})", {"--sequence_parallel"}, o, 4).sequence_ranks == 2);
}

TEST_CASE("ranks that keep a copy of the weights are those of the file or of the flag") {
  auto const file = [](int ranks) {
    return concat(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": )", ranks, "}}");
  };
  CHECK(with(file(2), {}, {}, 4).offload.weight_ranks == 2);
  CHECK_FALSE(with(file(2), {}, {}, 4).offload.sums_in_copies);  // as DeepSpeed does
  CHECK_FALSE(with(file(1), {}, {}, 4).offload.weight_ranks);
  train::training_options o;
  o.offload.weight_ranks = 2;
  CHECK(with(file(2), {"--hybrid_sharding"}, o, 4).offload.weight_ranks == 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(with(file(4), {"--hybrid_sharding"}, o, 4)),
                       doctest::Contains("zero_hpz_partition_size: 4, but --hybrid_sharding is 2"), error);
  CHECK(complaint(file(3), {}, {}, 4).find("zero_hpz_partition_size: 3 does not divide the 4 ranks") !=
        std::string::npos);
}

TEST_CASE("batch sizes of flags take part in it") {
  train::training_options o;
  o.batch_size = 24;
  o.accumulation = 3;
  CHECK(with(R"({"train_micro_batch_size_per_gpu": 4})", {"--batch_size"}, o).accumulation == 6);
  CHECK(with(R"({"train_micro_batch_size_per_gpu": 4})", {"--gradient_accumulation_steps"}, o).batch_size ==
        12);
  CHECK(with(R"({"train_batch_size": "auto", "gradient_accumulation_steps": 12})", {"--batch_size"}, o)
            .accumulation == 12);
  CHECK(with(R"({"train_batch_size": 24})", {"--batch_size", "--gradient_accumulation_steps"}, o)
            .accumulation == 3);
  // Flags alone may split a batch unevenly, as without a file.
  o.accumulation = 5;
  CHECK(with("{}", {"--batch_size", "--gradient_accumulation_steps"}, o).accumulation == 5);
}

TEST_CASE("batch sizes that contradict each other are refused") {
  struct {
    char const *members, *says;
    std::int64_t ranks = 1;
  } const cases[] = {
      {R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 5)",
       "train_micro_batch_size_per_gpu: 5 on 1 rank, expected a divisor of the batch of 32"},
      {R"("sequence_parallel_size": 3)", "sequence_parallel_size: 3 does not divide the 4 ranks", 4},
      {R"("train_batch_size": 2, "train_micro_batch_size_per_gpu": 4)",
       "expected a divisor of the batch of 2"},
      {R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4)",
       "train_micro_batch_size_per_gpu: 4 on 1 rank in 4 micro-batches makes 16, expected the batch of 32"},
      {R"("train_batch_size": 32, "gradient_accumulation_steps": 5)",
       "gradient_accumulation_steps: 32 sequences (train_batch_size, --batch_size) in 5 micro-batches"},
      {R"("gradient_accumulation_steps": 16)", "gradient_accumulation_steps: 8 sequences"},
      {R"("train_batch_size": 5)", "train_batch_size: 5 sequences", 2},
      {R"("train_batch_size": 32, "train_micro_batch_size_per_gpu": 32)", "32 on 2 ranks, expected a divisor",
       2},
  };
  for (auto const& c : cases) {
    CAPTURE(c.members);
    auto const said = complaint(concat("{", c.members, "}"), {}, {}, c.ranks);
    CAPTURE(said);
    CHECK(said.starts_with("ds.json: "));
    CHECK(said.find(c.says) != std::string::npos);
  }
}

TEST_CASE("each value of the file reaches its option") {
  auto const o = with(R"({
    "gradient_clipping": 0.5,
    "optimizer": {"type": "AdamW",
                  "params": {"lr": 3e-5, "betas": [0.8, 0.95], "eps": 1e-7, "weight_decay": 0.01}},
    "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"},
      "offload_optimizer": {"device": "cpu", "super_offload": true, "ratio": 0.8, "cpuadam_cores_perc": 0.7}}})");
  CHECK(o.max_grad_norm == 0.5);
  CHECK(o.lr == 3e-5);
  CHECK(o.adamw.beta1 == 0.8);
  CHECK(o.adamw.beta2 == 0.95);
  CHECK(o.adamw.epsilon == 1e-7);
  CHECK(o.adamw.weight_decay == 0.01);
  CHECK(o.offload.how == offload::mode::super);
  CHECK(o.offload.ratio == 0.8);
  CHECK(o.offload.cpuadam_cores_perc == 0.7);
  CHECK(o.offload.offload_weights == offload::choice::on);
}

TEST_CASE("a given flag must agree with the file, and may set what the file leaves open") {
  std::string const offloads = R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "none"},
      "offload_optimizer": {"device": "cpu", "ratio": 0.8, "cpuadam_cores_perc": 0.7}}})";
  std::string const optimizes = R"({"optimizer": {"type": "AdamW",
      "params": {"lr": 3e-5, "betas": [0.8, 0.95], "eps": 1e-7, "weight_decay": 0.01}}})";
  struct {
    std::string file, flag, says;
  } const cases[] = {
      {R"({"train_batch_size": 4})", "--batch_size", "train_batch_size: 4, but --batch_size is 8;"},
      {R"({"gradient_accumulation_steps": 2})", "--gradient_accumulation_steps",
       "gradient_accumulation_steps: 2, but --gradient_accumulation_steps is 1;"},
      {R"({"gradient_clipping": 0.5})", "--max_grad_norm",
       "gradient_clipping: 0.5, but --max_grad_norm is 1;"},
      {optimizes, "--lr", "optimizer.params.lr: 3e-05, but --lr is 1e-05;"},
      {optimizes, "--adam_beta1", "optimizer.params.betas[0]: 0.8, but --adam_beta1 is 0.9;"},
      {optimizes, "--adam_beta2", "optimizer.params.betas[1]: 0.95, but --adam_beta2 is 0.999;"},
      {optimizes, "--adam_eps", "optimizer.params.eps: 1e-07, but --adam_eps is 1e-08;"},
      {optimizes, "--weight_decay", "optimizer.params.weight_decay: 0.01, but --weight_decay is 0;"},
      {R"({"scheduler": {"type": "WarmupLR"}})", "--lr_scheduler",
       "scheduler.type: constant, but --lr_scheduler is linear;"},
      {R"({"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 9}}})", "--lr_warmup_steps",
       "scheduler.params.warmup_num_steps: 9, but --lr_warmup_steps is 0;"},
      {R"({"scheduler": {"type": "WarmupDecayLR"}})", "--lr",
       "scheduler.params.warmup_max_lr: 0.001, but --lr is 1e-05;"},
      {offloads, "--offload", "offload_optimizer.device: zero, but --offload is auto;"},
      {R"({"bf16": {"enabled": true, "bf16_optimizer_states": true}})", "--state",
       "bf16.bf16_optimizer_states: bf16, but --state is float32;"},
      {offloads, "--ratio", "offload_optimizer.ratio: 0.8, but --ratio is 0.5;"},
      {offloads, "--cpuadam_cores_perc", "cpuadam_cores_perc: 0.7, but --cpuadam_cores_perc is 0.9;"},
      {offloads, "--offload_weights", "offload_param.device: off, but --offload_weights is auto;"},
  };
  for (auto const& c : cases) {
    CAPTURE(c.flag);
    train::training_options o;
    o.offload.ratio = c.flag == "--ratio" ? std::optional{0.5} : std::nullopt;
    auto const said = complaint(c.file, {c.flag}, o);
    CAPTURE(said);
    CHECK(said.starts_with("ds.json: "));
    CHECK(said.find(c.says) != std::string::npos);
    CHECK(said.ends_with("expected the same in both, or one of them left out"));
    // The same flag with the file's value, and beside a file without it.
    auto const agreed = with(c.file, {}, {});
    CHECK_NOTHROW(with(c.file, {c.flag}, agreed));
    CHECK_NOTHROW(with("{}", {c.flag}, o));
  }
}

TEST_CASE("node-local storage of checkpoints is an output directory on each host") {
  std::string const local = R"({"checkpoint": {"use_node_local_storage": true, "tag_validation": "Warn"}})";
  CHECK(with(local).save_on_each_node);
  CHECK_FALSE(with("{}").save_on_each_node);
  CHECK(train::parse_deepspeed_config(local, "ds.json").note.ends_with("checkpoint.tag_validation"));
  auto const shared =
      complaint(R"({"checkpoint": {"use_node_local_storage": false}})", {"--save_on_each_node"}, with(local));
  CHECK(shared.find("checkpoint.use_node_local_storage") != std::string::npos);
  CHECK(complaint(R"({"checkpoint": {"node_local": true}})").find("node_local") != std::string::npos);
}

TEST_CASE("a flag decides about offloading if the file does not") {
  train::training_options o;
  o.offload.how = offload::mode::super;
  CHECK(with("{}", {"--offload"}, o).offload.how == offload::mode::super);
  std::string const open = R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "auto"}}})";
  CHECK(with(open, {"--offload"}, o).offload.how == offload::mode::super);
  CHECK(with(open).offload.how == offload::mode::automatic);
  std::string const none = R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "none"}}})";
  CHECK(complaint(none, {"--offload"}, o).find("device: none, but --offload is super") != std::string::npos);
}

TEST_CASE("a scheduler in the file sets the rates") {
  train::training_options flags_say;
  flags_say.lr = 2e-3;
  flags_say.warmup_steps = 4;
  auto const rates = [](train::training_options const& o, std::int64_t steps) {
    return std::vector<double>{train::learning_rate(o, 0, steps), train::learning_rate(o, 3, steps),
                               train::learning_rate(o, steps, steps)};
  };
  std::string const decay = R"({"scheduler": {"type": "WarmupDecayLR", "params": {
      "warmup_max_lr": "auto", "warmup_num_steps": "auto", "total_num_steps": "auto",
      "warmup_type": "linear"}}})";
  auto const automatic = with(decay, {"--lr", "--lr_warmup_steps"}, flags_say);
  CHECK(automatic.scheduler == optim::schedule::shape::linear);
  CHECK(rates(automatic, 10)[0] == 0.0);
  CHECK(rates(automatic, 10)[1] == doctest::Approx(1e-3));
  CHECK(rates(automatic, 10)[2] == doctest::Approx(2e-3 / 6.0));  // one step late

  std::string const fixed = R"({"scheduler": {"type": "WarmupDecayLR", "params": {
      "warmup_max_lr": 1e-3, "warmup_num_steps": 4, "total_num_steps": 20, "warmup_type": "linear"}}})";
  CHECK(rates(with(fixed), 10)[1] == doctest::Approx(5e-4));
  CHECK(rates(with(fixed), 10)[2] == doctest::Approx(1e-3 * 11.0 / 16.0));

  // DeepSpeed's number of warm-up steps, unless a flag sets it.
  std::string const plain = R"({"scheduler": {"type": "WarmupLR"}})";
  CHECK(with(plain).deepspeed_schedule->warmup_steps == 1000);
  CHECK(with(plain, {"--lr_warmup_steps"}, flags_say).deepspeed_schedule->warmup_steps == 4);
  CHECK(with(plain, {}, flags_say).deepspeed_schedule->peak == 2e-3);

  CHECK(train::learning_rate(flags_say, 2, 10) == doctest::Approx(1e-3));
}

TEST_CASE("where the file is silent, DeepSpeed's own defaults hold, and lines say so") {
  using shape = optim::schedule::shape;
  auto const notes = [](std::string const& text, flags const& given, std::int64_t ranks,
                        train::training_options& o) {
    return train::apply(
        train::parse_deepspeed_config(text, "ds.json"),
        [&](std::string_view flag) { return std::ranges::find(given, flag) != given.end(); }, ranks, o);
  };
  train::training_options o;
  auto const silent = notes("{}", {}, 1, o);
  CHECK(o.scheduler == shape::constant);
  CHECK_FALSE(o.exports);
  CHECK(o.max_grad_norm == 1.0);  // as in DeepSpeed 0.19.8, which clips unless the file says 0
  CHECK(o.adamw.weight_decay == 0.0);
  REQUIRE(silent.size() == 2);
  CHECK(silent[0].starts_with("ds.json: no scheduler: the rate is constant"));
  CHECK(silent[1].starts_with("ds.json: no model is exported"));

  o = {};
  CHECK(notes("{}", {"--lr_scheduler", "--export"}, 1, o).empty());
  CHECK(o.scheduler == shape::linear);
  CHECK(o.exports);

  o = {};
  auto const scheduled = notes(R"({"scheduler": {"type": "WarmupDecayLR"}})", {"--export"}, 1, o);
  CHECK(scheduled.empty());
  CHECK(o.scheduler == shape::linear);

  std::string const offloads = R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"},
      "offload_param": {"device": "cpu"}}})";
  flags const quiet{"--lr_scheduler", "--export"};
  o = {};
  auto const one = notes(offloads, quiet, 1, o);
  REQUIRE(one.size() == 1);
  CHECK(one[0].starts_with("ds.json: no ratio: "));
  CHECK(o.offload.offload_weights == offload::choice::on);
  o = {};
  o.offload.ratio = 1.0;
  auto const two = notes(offloads, {"--lr_scheduler", "--export", "--ratio"}, 2, o);
  REQUIRE(two.size() == 1);
  CHECK(
      two[0] ==
      "ds.json: zero_optimization.offload_param.device: cpu, but each of the 2 ranks keeps its shard of the "
      "weights on its device");
  CHECK(o.offload.offload_weights == offload::choice::automatic);

  for (char const* const optimizer : {"", R"("offload_optimizer": {"device": "none"}, )"}) {
    auto const weights_alone = concat(R"({"zero_optimization": {"stage": 3, )", optimizer,
                                      R"("offload_param": {"device": "cpu"}}})");
    CAPTURE(weights_alone);
    o = {};
    auto const three = notes(weights_alone, quiet, 1, o);
    REQUIRE(three.size() == 1);
    CHECK(three[0] ==
          "ds.json: zero_optimization.offload_param.device: cpu, so the CPU also updates these weights, "
          "where DeepSpeed has the GPU update them");
    CHECK(o.offload.how == offload::mode::automatic);
    CHECK(o.offload.offload_weights == offload::choice::on);
    offload::check(o.offload);
    o = {};
    notes(weights_alone, quiet, 2, o);
    CHECK(o.offload.how == offload::mode::none);
    offload::check(o.offload);
  }
}

TEST_CASE("a token budget replaces the batch, and the file may not have one, too") {
  train::training_options budget;
  budget.tokens_per_batch = 8192;
  flags const given{"--tokens_per_batch"};
  CHECK(with(R"({"gradient_accumulation_steps": 3})", given, budget).accumulation == 3);
  CHECK(complaint(R"({"train_batch_size": 8})", given, budget) ==
        "ds.json: train_batch_size: 8 sequences, but --tokens_per_batch is 8192; expected one of them left "
        "out");
  CHECK(complaint(R"({"train_micro_batch_size_per_gpu": 8})", given, budget)
            .starts_with("ds.json: train_micro_batch_size_per_gpu: 8 sequences, but --tokens_per_batch"));
}

}  // namespace
