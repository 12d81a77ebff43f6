// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What is wrong on the command line is said in one line, before anything is trained or written.
#include <superoffload/core/version.hpp>

#include "examples/rejection.hpp"

#include <regex>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

struct command {
  scratch_directory root;
  fs::path output = root.path() / "output";

  [[nodiscard]] words arguments(words const& flags) const {
    return joined({"--model", (models / "llama").string(), "--dataset",
                   write_file(root.path() / "data.json", two_rows), "--output_dir", output.string(),
                   "--device", test_device(), "--max_length", "64", "--batch_size", "2", "--max_steps", "1"},
                  flags);
  }
  [[nodiscard]] outcome run(words const& flags) const {
    return run_on_one_thread(finetune_llama, arguments(flags));
  }
  void check(words const& flags, exit_code code, words const& says) const {
    check_rejected(run(flags), code, says);
    CHECK_FALSE(fs::exists(output));
  }
};

TEST_CASE("values that are unknown, out of range, missing or no numbers are rejected") {
  struct flag_case {
    words flags, says;
  };
  flag_case const cases[] = {
      {{"--learnrate", "1"}, {"--learnrate", "--help"}},
      {{"-x"}, {"-x", "--help"}},
      {{"stray"}, {"stray"}},
      {{"--max_steps"}, {"--max_steps"}},
      {{"--freeze", "--lr", "1"}, {"--freeze"}},
      {{"--resume", ""}, {"after --resume", "empty"}},
      {{"--resume="}, {"--resume"}},
      {{"--max_steps", "ten"}, {"--max_steps", "ten"}},
      {{"--max_steps", "1.5"}, {"--max_steps is '1.5', expected a whole number"}},
      {{"--max_steps", "-1"}, {"--max_steps", "-1", "expected 0 to"}},
      {{"--max_steps", "99999999999999999999"}, {"--max_steps", "below 2^63"}},
      {{"--max_steps", "5\n6"}, {"--max_steps", "5\\x0a6"}},
      {{"--batch_size", "0"}, {"--batch_size is 0", "expected 1 to"}},
      {{"--batch_size", "-4"}, {"--batch_size is -4"}},
      {{"--tokens_per_batch", "512"}, {"--batch_size excludes --tokens_per_batch"}},
      {{"--batch_size", "4x"}, {"--batch_size is '4x', expected a whole number; --help"}},
      {{"--gradient_accumulation_steps", "0"}, {"--gradient_accumulation_steps is 0", "expected 1 to 2"}},
      {{"--gradient_accumulation_steps", "3"}, {"--gradient_accumulation_steps is 3", "expected 1 to 2"}},
      {{"--max_length", "1"}, {"--max_length is 1", "expected 2 to"}},
      {{"--max_length", "4096"}, {"--max_length is 4096", "max_position_embeddings is 2048"}},
      {{"--max_length", "4096", "--dry_run"}, {"--max_length is 4096", "max_position_embeddings is 2048"}},
      {{"--num_train_epochs", "0"}, {"--num_train_epochs is 0", "expected above 0"}},
      {{"--num_train_epochs", "nan"}, {"--num_train_epochs is nan"}},
      {{"--dataset_percentage", "0"}, {"--dataset_percentage is 0", "at most 100"}},
      {{"--dataset_percentage", "101"}, {"--dataset_percentage is 101", "at most 100"}},
      {{"--dataset_percentage", "nan"}, {"--dataset_percentage is nan"}},
      {{"--lr", "-1"}, {"--lr is -1", "expected 0 or more"}},
      {{"--lr", "nan"}, {"--lr is nan"}},
      {{"--lr", "inf"}, {"--lr is inf"}},
      {{"--lr", "1e-5e"}, {"--lr", "1e-5e"}},
      {{"--lr_warmup_steps", "-1"}, {"--lr_warmup_steps is -1"}},
      {{"--weight_decay", "nan"}, {"weight_decay", "nan"}},
      {{"--weight_decay", "-0.1"}, {"weight_decay", "-0.1"}},
      {{"--adam_beta1", "1"}, {"beta1", "1"}},
      {{"--adam_beta2", "-0.5"}, {"beta2", "-0.5"}},
      {{"--adam_beta2", "nan"}, {"beta2", "nan"}},
      {{"--adam_eps", "inf"}, {"eps", "inf"}},
      {{"--max_grad_norm", "-1"}, {"--max_grad_norm is -1"}},
      {{"--max_grad_norm", "inf"}, {"--max_grad_norm is inf"}},
      {{"--eval_steps", "-2"}, {"--eval_steps is -2"}},
      {{"--eval_steps", "5"}, {"--eval_steps needs --eval_dataset"}},
      {{"--export_best", "on"}, {"--export_best needs --eval_dataset"}},
      {{"--eval_only"}, {"--eval_only needs --eval_dataset"}},
      {{"--learn_padding", "on"}, {"--learn_padding is on", "--padding max_length"}},
      {{"--learn_padding", "on", "--padding", "max_length", "--packing", "on"},
       {"--learn_padding is on", "--packing off"}},
      {{"--log_interval", "0"}, {"--log_interval is 0"}},
      {{"--save_steps", "-1"}, {"--save_steps is -1"}},
      {{"--save_total_limit", "-1"}, {"--save_total_limit is -1"}},
      {{"--seed", "-1"}, {"--seed is -1, expected 0 to 9223372036854775808"}},
      {{"--batch_size", "99999999999999999999"},
       {"--batch_size is 99999999999999999999, expected a whole number below 2^63"}},
      {{"--trace_steps", "3"}, {"--trace_steps is given, but neither --trace FILE nor --report_to html"}},
      {{"--seed", "x"}, {"--seed", "x"}},
      {{"--lr", "1e-3x"}, {"--lr is '1e-3x', expected a number"}},
      {{"--dataset", "nobody/nothing"}, {"nobody/nothing: cannot be opened", "nothing is downloaded"}},
      {{"--dry_run=abc"}, {"--dry_run is 'abc', expected no value"}},
      {{"--rope_scaling", "yarn"}, {"--rope_scaling is 'yarn', expected yarn:FACTOR"}},
      {{"--max_length", "4096"},
       {"--max_length is 4096", "max_position_embeddings is 2048", "--rope_scaling"}},
      {{"--lr_scheduler", "step"}, {"--lr_scheduler is 'step'", "constant|linear|cosine"}},
      {{"--no_decay", "all"}, {"--no_decay is 'all'", "none|norms_and_biases"}},
      {{"--on_nonfinite", "ignore"}, {"--on_nonfinite is 'ignore'", "skip|stop"}},
      {{"--dtype", "fp4"}, {"--dtype is 'fp4'", "float32|bf16|fp8"}},
      {{"--tiled_mlp", "-1"}, {"--tiled_mlp is -1", "expected 0 to"}},
      {{"--device", "tpu"}, {"--device is 'tpu'", "auto|cpu|cuda"}},
      {{"--template", "chatml"}, {"--template is 'chatml'", "deepspeed|alpaca"}},
      {{"--label_mask", "all"}, {"--label_mask is 'all'", "prompt|none"}},
      {{"--append_eos", "yes"}, {"--append_eos is 'yes'", "on|off"}},
      {{"--padding", "right"}, {"--padding is 'right'", "none|longest|max_length"}},
      {{"--packing", "1"}, {"--packing is '1'", "on|off"}},
      {{"--shuffle", "maybe"}, {"--shuffle is 'maybe'", "on|off"}},
      {{"--attn_implementation", "paged"}, {"--attn_implementation is 'paged'", "auto|flash|cudnn"}},
      {{"--local_rank", "1"}, {"--local_rank is 1", "alone", "RANK"}},
      {{"--bench_steps", "0"}, {"--bench_steps is 0", "expected 1 to"}},
      {{"--log_level", "loud"}, {"--log_level is 'loud'", "status|info"}},
      {{"--model", "nobody/nothing"},
       {"--model is nobody/nothing", "hub's cache", "huggingface-cli download"}},
      {{"--model", "../nothing"}, {"../nothing/config.json", "No such file"}},
      {{"--attn_implementation", "flash", "--device", "cpu"},
       {"--attn_implementation", "expected auto on the cpu", "--device cuda"}},
      {{"--activation_checkpointing", "some"},
       {"--activation_checkpointing is 'some'", "none|every_block|auto"}},
      {{"--offload", "cpu"}, {"--offload is 'cpu'", "auto|none|zero|super"}},
      {{"--ratio", "1.5"}, {"--ratio is 1.5", "expected 0 to 1"}},
      {{"--ratio", "nan"}, {"--ratio is nan"}},
      {{"--ratio", "half"}, {"--ratio is 'half', expected a number"}},
      {{"--offload", "none", "--ratio", "0.5"}, {"--ratio is 0.5", "--offload is none"}},
      {{"--device_memory", "0"}, {"--device_memory is 0", "expected 0 < GIB"}},
      {{"--host_memory", "nan"}, {"--host_memory is nan"}},
      {{"--device_updated_share", "-1"}, {"--device_updated_share is -1", "expected 0 to 1"}},
      {{"--offload_weights", "yes"}, {"--offload_weights is 'yes'", "auto|on|off"}},
      {{"--offload_weights", "on", "--offload", "none"}, {"--offload_weights is on", "--offload is none"}},
      {{"--cpuadam_cores_perc", "0"}, {"--cpuadam_cores_perc is 0", "at most 1"}},
      {{"--cpuadam_cores_perc", "90"}, {"--cpuadam_cores_perc is 90", "at most 1"}},
      {{"--bucket_mib", "0"}, {"--bucket_mib is 0", "expected 1 to 4096"}},
      {{"--bucket_mib", "9223372036854775807"},
       {"--bucket_mib is 9223372036854775807", "expected 1 to 4096"}},
      {{"--bucket_mib", "1.5"}, {"--bucket_mib", "1.5"}},
      {{"--hardware", "/absent.json"}, {"/absent.json", "cannot be opened"}},
      {{"--dry_run", "--hardware", "/absent.json"}, {"/absent.json", "cannot be opened"}},
      {{"--trace_steps", "0"}, {"--trace_steps is 0", "expected 1 to 1000"}},
      {{"--deepspeed_config", "/absent.json"}, {"/absent.json", "cannot be opened"}},
      {{"--freeze", "model.layers.7.*"}, {"--freeze 'model.layers.7.*'", "matches no tensor"}},
      {{"--freeze", "model.layers.7.*", "--dry_run"}, {"--freeze 'model.layers.7.*'", "matches no tensor"}},
      {{"--freeze", "*"}, {"--freeze leaves no tensor"}},
      {{"--model", "/absent"}, {"/absent/config.json", "No such file"}},
      {{"--dataset", "/absent.json"}, {"/absent.json", "cannot be opened"}},
      {{"--eval_dataset", "/absent.json"}, {"/absent.json", "cannot be opened"}},
      {{"--resume", "/absent"}, {"/absent", "No such file"}},
      {{"--datset", "rows.json"},
       {"there is no flag --datset (did you mean --dataset?); --help lists the flags"}},
      {{"--batch-siz=4"}, {"there is no flag --batch_siz (did you mean --batch_size?)"}},
      {{"--frobnicate"}, {"there is no flag --frobnicate; --help lists the flags"}},
  };
  command const c;
  for (auto const& one : cases) {
    CAPTURE(one.flags.front());
    CAPTURE(one.flags.back());
    c.check(one.flags, exit_code::bad_input, one.says);
  }
}

TEST_CASE("flags of other trainers are answered with flags that exist") {
  auto const help = run(finetune_llama, {"--help"}).out;
  for (std::string const flag : {"--assistant_only_loss",
                                 "--bf16",
                                 "--completion_only_loss",
                                 "--cutoff_len",
                                 "--data_path",
                                 "--dataset_text_field",
                                 "--epochs",
                                 "--eval_strategy",
                                 "--evaluation_strategy",
                                 "--fp16",
                                 "--global_batch_size",
                                 "--gradient-checkpointing",
                                 "--max_seq_len",
                                 "--max_seq_length",
                                 "--micro_batch_size",
                                 "--model_max_length",
                                 "--nproc-per-node",
                                 "--num_epochs",
                                 "--num_gpus",
                                 "--num_processes",
                                 "--offload_optimizer",
                                 "--output",
                                 "--per_device_train_batch_size",
                                 "--run_name",
                                 "--save_strategy",
                                 "--seq_len",
                                 "--torch_dtype",
                                 "--train_file",
                                 "--train_on_inputs",
                                 "--validation_file",
                                 "--zero_stage"}) {
    CAPTURE(flag);
    auto const said = run(finetune_llama, {flag, "1"}).err;
    std::string const asks = "(did you mean ";
    auto const begin = said.find(asks);
    REQUIRE(begin != said.npos);
    auto const meant =
        said.substr(begin + asks.size(), said.find_first_of(" ?", begin + asks.size()) - begin - asks.size());
    CHECK(help.find("\n  " + meant + " ") != help.npos);
  }
  check_rejected(run(finetune_llama, {"--epochs", "3"}), exit_code::bad_input,
                 {"there is no flag --epochs (did you mean --num_train_epochs?); --help lists the flags"});
}

TEST_CASE("what a run cannot do without is asked for") {
  command const c;
  check_rejected(run(finetune_llama, {}), exit_code::bad_input, {"--model is missing"});
  check_rejected(run(finetune_llama, {"--model", "m"}), exit_code::bad_input, {"--dataset is missing"});
  check_rejected(run(finetune_llama, {"--model", "m", "--dataset", "d"}), exit_code::bad_input,
                 {"--output_dir is missing"});
  check_rejected(run(finetune, {}), exit_code::bad_input, {"--model is missing"}, "finetune");
  auto const file = (c.root.path() / "model.gguf").string();
  write_file(file, "GGUF");
  for (auto const& program : {finetune, finetune_llama}) {
    check_rejected(run(program, {"--model", file, "--dry_run"}), exit_code::bad_input,
                   {"--model is " + file + ", a file; expected the directory of a checkpoint"},
                   program.filename().string());
  }
  check_rejected(run(finetune, {"--model", c.root.path(), "--dry_run"}), exit_code::bad_input,
                 {(c.root.path() / "config.json").string()}, "finetune");
}

TEST_CASE("finetune becomes the program for the model's type that is beside it") {
  command const c;
  auto const dry = [&](fs::path const& program, std::string const& type) {
    write_file(c.root.path() / "config.json", R"({"vocab_size": 0, "model_type": ")" + type + R"("})");
    return run(program, {"--model", c.root.path(), "--dry_run"});
  };
  // qwen3's own refusal of this file: its program read it.
  check_rejected(dry(finetune, "qwen3"), exit_code::bad_input, {"config.json", "vocab_size", "from 1 to"},
                 "finetune_qwen3");
  CHECK(dry(finetune, "qwen3").err == dry(finetune.parent_path() / "finetune_qwen3", "qwen3").err);
  for (std::string const type : {"gpt2", "", "../finetune_llama", "qwen3/"}) {
    CAPTURE(type);
    check_rejected(dry(finetune, type), exit_code::bad_input,
                   {"config.json", "model_type", "'" + type + "' is not supported, expected one of llama, "},
                   "finetune");
  }

  // Alone in a directory, it has no other program to become; then it has one for a type of a user's own.
  auto const alone = c.root.path() / "bin" / "finetune";
  fs::create_directory(alone.parent_path());
  fs::copy_file(finetune, alone);
  fs::create_directory(c.root.path() / "llama");
  fs::copy_file(models / "llama" / "config.json", c.root.path() / "llama" / "config.json");
  check_rejected(run(alone, {"--model", c.root.path() / "llama", "--dry_run"}), exit_code::bad_input,
                 {"'llama'", "finetune_llama, which is not in " + alone.parent_path().string()}, "finetune");
  auto const own = write_file(alone.parent_path() / "finetune_own", "#!/bin/sh\necho \"$0\" \"$@\"\n");
  check_rejected(dry(alone, "own"), exit_code::io_failure, {own.string(), "Permission denied"}, "finetune");
  fs::permissions(own, fs::perms::owner_all);
  auto const done = dry(alone, "own");
  CHECK(done.status == 0);
  CHECK(done.out == own.string() + " --model " + c.root.path().string() + " --dry_run\n");
}

TEST_CASE("flags that were renamed have their old name, too") {
  command const c;
  auto const plan = [&](words const& flags) {
    auto const done = c.run(joined({"--dry_run", "--ratio", "1", "--hardware",
                                    (fs::path{SUPEROFFLOAD_HARDWARE} / "gh200.json").string()},
                                   flags));
    CAPTURE(done.err);
    CHECK(done.status == 0);
    return done.out;
  };
  auto const with = plan({"--offload_weights", "on", "--device_updated_share", "0.5"});
  CHECK(with.find("50.0 % updated by the CPU, 50.0 %") != std::string::npos);
  CHECK(with.find("\n  --ratio .5 ") != std::string::npos);
  CHECK(plan({"--stream_weights", "on", "--streamed-share=0.5"}) == with);
  CHECK(plan({"--offload_weights", "off", "--device_updated_share", "0.5"}) != with);
  CHECK(plan({"--offload_weights", "on", "--device_updated_share", "0"}) != with);
  c.check({"--streamed_share", "2"}, exit_code::bad_input, {"--device_updated_share is 2"});
}

TEST_CASE("a flag that is given twice with different values is refused, under whatever names") {
  command const c;
  auto const refused = [&](words const& flags, words const& says) {
    check_rejected(run(finetune_llama, joined(c.arguments({"--dry_run"}), flags)), exit_code::bad_input,
                   says);
  };
  refused({"--lr", "1", "--lr=2e-5"}, {"--lr is given 2 times: 1 and 2e-5; expected one value"});
  refused({"--lr", "1", "--learning-rate", "2"}, {"--lr is given 2 times: 1 and 2"});
  refused({"--model_name", "elsewhere"}, {"--model is given 2 times", "elsewhere"});
  refused({"--shuffle", "on", "--shuffle", "off"}, {"--shuffle is given 2 times: on and off"});
  refused({"--bind_cores_to_rank", "--bind_cores_to_rank", "off"}, {"--bind_cores_to_rank is given 2 times"});
  auto const done =
      run(finetune_llama,
          joined(c.arguments({"--dry_run"}), {"--max_steps", "1", "--dry_run", "--freeze", "*norm.weight",
                                              "--freeze", "lm_head.weight", "--lr", "1e-3", "--lr", "1e-3"}));
  CHECK(done.status == 0);
  CHECK(done.err.empty());
}

TEST_CASE("flags may come from a file, and have the names that transformers gives them") {
  command const c;
  auto const file = write_file(c.root.path() / "run.toml",
                               "max_steps = 9\nbatch_size = 4\nlr_scheduler = \"cosine\"\nmin_lr = 1e-6\n"
                               "freeze = [\"model.norm.weight\", \"*layernorm.weight\"]\nlr = 0.5\n");
  words const base{"--model", (models / "llama").string(), "--dry_run", "--device", "cpu", "--max_length",
                   "64"};
  auto const done = run(finetune, joined(base, {"--config", file, "--max_steps", "7"}));
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(done.out.find("4 sequences of up to 64") != std::string::npos);
  CHECK(done.out.find("steps              7") != std::string::npos);
  CHECK(done.out.find("of them trained") != std::string::npos);
  auto const rejected = [&](std::string const& content, words const& flags, words const& says) {
    check_rejected(
        run(finetune_llama,
            joined(joined(base, {"--config", write_file(c.root.path() / "odd.toml", content)}), flags)),
        exit_code::bad_input, says);
  };
  rejected("learnrate = 1\n", {}, {"--config: there is no flag --learnrate"});
  rejected("max_step = 1\n", {}, {"there is no flag --max_step (did you mean --max_steps?)"});
  rejected("lr = much\n", {}, {"--lr", "much"});
  rejected("lr_scheduler = step\n", {}, {"--lr_scheduler is 'step'"});
  check_rejected(run(finetune_llama, joined(base, {"--config", "/absent.toml"})), exit_code::bad_input,
                 {"--config: /absent.toml was not readable"});
  rejected("lr = 0.5\n", {"--learning_rate", "1e-3", "--min_lr", "0.1"},
           {"--min_lr is 0.1", "which is 0.001"});
  rejected("learning-rate = 0.5\nwarmup_ratio = 0.1\nwarmup_steps = 2\n", {"--lr_scheduler_type", "cosine"},
           {"--lr_warmup_ratio is 0.1", "--lr_warmup_steps is 2"});
  rejected("lr = 0.5\nlearning_rate = 0.5\n", {}, {"--config: learning_rate is given twice, also as lr"});
  rejected("lr = 0.5\nlr = 0.6\n", {}, {"--lr is given 2 times: 0.5 and 0.6"});
  rejected("activation_checkpointing = true\nbind_cores_to_rank = false\nlr = -1\n", {}, {"--lr is -1"});
  rejected("", {"--warmup_ratio", "0.1", "--warmup-steps", "2"},
           {"--lr_warmup_ratio is 0.1", "--lr_warmup_steps is 2"});
  rejected("", {"--lr_scheduler_type", "polynomial", "--lr_power", "0"}, {"--lr_power is 0"});
}

TEST_CASE("what does not fit into memory says how much it needs and what to change") {
  command const c;
  c.check({"--max_length", "2048", "--batch_size", "1000000"}, exit_code::cannot_fit,
          {"the plan needs", "are available", "--gradient_accumulation_steps"});
  check_rejected(c.run({"--max_length", "2048", "--batch_size", "1000000", "--dry_run"}),
                 exit_code::cannot_fit, {"the plan needs", "--gradient_accumulation_steps"});
}

TEST_CASE("an output directory that cannot be written is found before training") {
  command const c;
  auto const file = write_file(c.root.path() / "file", "content").string();
  check_rejected(c.run({"--output_dir", file}), exit_code::io_failure, {file, "Not a directory"});
  check_rejected(c.run({"--output_dir", file + "/below"}), exit_code::io_failure, {file, "Not a directory"});
  check_rejected(c.run({"--output_dir", "/proc/below"}), exit_code::io_failure,
                 {"/proc/below", "No such file"});
  check_rejected(c.run({"--metrics", file + "/m.jsonl"}), exit_code::io_failure,
                 {file + "/m.jsonl", "Not a directory"});
  check_rejected(c.run({"--metrics", c.root.path().string()}), exit_code::bad_input,
                 {c.root.path().string(), "Is a directory"});
  CHECK(contents_of(file) == "content");
}

TEST_CASE("an export never replaces the model that was read, or what is no export") {
  command const c;
  fs::create_directory(c.output);
  fs::copy(models / "llama", c.output / "model");
  auto const before = snapshot_of(c.output);
  check_rejected(c.run({"--model", (c.output / "model").string()}), exit_code::bad_input,
                 {(c.output / "model").string(), "is the model that is read"});
  check_rejected(c.run({}), exit_code::bad_input, {"expected.json", "nothing that an export writes"});
  CHECK(snapshot_of(c.output) == before);
}

TEST_CASE("--version prints the program and the version of the headers") {
  for (auto const& program_file : {finetune_llama, finetune, fs::path{SUPEROFFLOAD_TOKENIZE}}) {
    auto const done = run(program_file, {"--version"});
    CHECK(done.status == 0);
    CHECK(done.err.empty());
    CHECK(done.out == concat(program_file.filename().string(), " (superoffload) ", SUPEROFFLOAD_VERSION_MAJOR,
                             '.', SUPEROFFLOAD_VERSION_MINOR, '.', SUPEROFFLOAD_VERSION_PATCH, '\n'));
  }
}

TEST_CASE("--help names every flag, in groups, with its default") {
  for (auto const& program_file : {finetune_llama, finetune}) {
    auto const done = run(program_file, {"--help"});
    CHECK(done.status == 0);
    CHECK(done.err.empty());
    for (std::string const flag : {"model",
                                   "dataset",
                                   "dataset_percentage",
                                   "follow_links",
                                   "format",
                                   "columns",
                                   "output_dir",
                                   "overwrite_output_dir",
                                   "max_length",
                                   "batch_size",
                                   "tokens_per_batch",
                                   "gradient_accumulation_steps",
                                   "num_train_epochs",
                                   "max_steps",
                                   "lr",
                                   "lr_scheduler",
                                   "lr_warmup_steps",
                                   "weight_decay",
                                   "adam_beta1",
                                   "adam_beta2",
                                   "adam_eps",
                                   "no_decay",
                                   "freeze",
                                   "on_nonfinite",
                                   "max_grad_norm",
                                   "seed",
                                   "dtype",
                                   "device",
                                   "template",
                                   "label_mask",
                                   "append_eos",
                                   "padding",
                                   "learn_padding",
                                   "packing",
                                   "shuffle",
                                   "activation_checkpointing",
                                   "deepspeed_config",
                                   "offload",
                                   "ratio",
                                   "device_updated_share",
                                   "offload_weights",
                                   "cpuadam_cores_perc",
                                   "bucket_mib",
                                   "device_memory",
                                   "host_memory",
                                   "plan",
                                   "hardware",
                                   "timeline",
                                   "resource_group",
                                   "wall_clock_breakdown",
                                   "trace",
                                   "trace_steps",
                                   "eval_dataset",
                                   "eval_steps",
                                   "eval_only",
                                   "log_interval",
                                   "metrics",
                                   "report_to",
                                   "wandb_project",
                                   "wandb_run_name",
                                   "wandb_tags",
                                   "save_checkpoint",
                                   "export",
                                   "log_level",
                                   "save_steps",
                                   "save_total_limit",
                                   "resume",
                                   "dry_run"}) {
      CAPTURE(flag);
      CHECK(done.out.find("\n  --" + flag + " ") != std::string::npos);
    }
    for (std::string const text :
         {"Model and data:", "Optimization:", "Execution:", "Offloading:",
          "Evaluation, metrics, checkpoints:", "=alpaca\n", "=prompt\n", "=1e-05", "=0.9 ", "=0.999",
          "=1e-08", "cpuadam_cores_perc FLOAT=0.9\n", "bucket_mib INT=32", "Exit codes:"}) {
      CAPTURE(text);
      CHECK(done.out.find(text) != std::string::npos);
    }
  }
}

TEST_CASE("a dry run needs nothing but config.json, and prints parameters, memory, steps and tokens") {
  scratch_directory const root;
  fs::copy_file(models / "llama" / "config.json", root.path() / "config.json");
  words const bare{"--model",      root.path(), "--dry_run",   "--device", test_device(),
                   "--max_length", "128",       "--max_steps", "7"};
  auto const done = run(finetune_llama, bare);
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(done.err.empty());
  // 135,488 elements of 4 bytes are the 541,952 bytes of the checkpoint.
  for (std::string const text :
       {"parameters", "135488", "weights", "gradients", "optimizer state", "activations", "in all",
        "expected", "steps              7", "alternatives, with one option changed", "\n  as asked for ",
        "\n  --gradient_accumulation_steps 2 ", "takes at least"}) {
    CAPTURE(text);
    CHECK(done.out.find(text) != std::string::npos);
  }
  // Memory is what is free now, times come from rates that are measured.
  auto const without_measured = [](std::string const& plan) {
    return std::regex_replace(plan.substr(0, plan.find("alternatives")),
                              std::regex{"  (available|step:|busy:) [^\\n]*\\n"}, "");
  };
  CHECK(without_measured(done.out) != done.out);
  CHECK(without_measured(run(finetune, bare).out) == without_measured(done.out));

  auto const with_rows =
      run(finetune_llama,
          last_of_each(joined(bare, {"--max_steps", "0", "--batch_size", "2", "--num_train_epochs", "3",
                                     "--dataset", write_file(root.path() / "d.json", two_rows)})));
  CHECK(with_rows.out.find("data               2 examples") != std::string::npos);
  CHECK(with_rows.out.find("steps              3\n") != std::string::npos);

  command const c;
  auto const with_tokenizer = c.run({"--dry_run"});
  CHECK(with_tokenizer.status == 0);
  CHECK(with_tokenizer.out.find("an epoch") != std::string::npos);
  CHECK_FALSE(fs::exists(c.output));
}

TEST_CASE("dashes are as good as underscores") {
  command const c;
  auto const done = c.run({"--max-length", "32", "--gradient-accumulation-steps=2", "--lr-scheduler",
                           "cosine", "--batch-size", "6", "--label-mask", "none", "--dry-run"});
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(done.out.find("6 sequences of up to 32 tokens a step, in 2 micro-batches") != std::string::npos);
}

TEST_CASE("a DeepSpeed file says what flags may not contradict, and what has no effect is said in one line") {
  command const c;
  auto const file = c.root.path() / "ds.json";
  // --batch_size is 2 and --dtype bf16, unless said otherwise
  auto const dry = [&](std::string const& text, words const& flags) {
    write_file(file, text);
    return c.run(joined(
        {"--dry_run", "--deepspeed-config", file.string(), "--lr_scheduler", "linear", "--export", "on"},
        flags));
  };
  auto const done =
      dry(R"({"train_batch_size": 2, "train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": false},
                            "gradient_clipping": "auto", "zero_optimization": {"stage": 3, "sub_group_size": 4e8},
                            "steps_per_print": 5})",
          {});
  CHECK(done.status == 0);
  CHECK(done.err ==
        file.string() + ": without effect here: zero_optimization.sub_group_size, steps_per_print\n");
  CHECK(done.out.find(" in float32") != std::string::npos);
  CHECK(done.out.find("2 sequences of up to 64 tokens a step, in 2 micro-batches") != std::string::npos);
  CHECK(dry(R"({"bf16": {"enabled": true}})", {}).out.find(" in bf16") != std::string::npos);
  CHECK(dry("{}", {"--dtype", "float32"}).out.find(" in float32") != std::string::npos);
  CHECK(dry(R"({"bf16": {"enabled": true}})", {"--dtype", "fp8"}).out.find(" in fp8") != std::string::npos);
  CHECK(dry("{}", {}).err.empty());

  struct {
    std::string text;
    words flags, says;
  } const cases[] = {
      {R"({"train_batch_size": 4})",
       {},
       {"ds.json: train_batch_size: 4, but --batch_size is 2; expected the same"}},
      {R"({"bf16": {"enabled": true}})",
       {"--dtype", "float32"},
       {"ds.json: bf16.enabled: true, but --dtype is float32; expected the same"}},
      {R"({"bf16": {"enabled": false}})",
       {"--dtype", "fp8"},
       {"ds.json: bf16.enabled: false, but --dtype is fp8; expected the same"}},
      {R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 1.5}}})",
       {},
       {"ds.json: zero_optimization.offload_optimizer.ratio: 1.5, expected a number in [0, 1]"}},
      {R"({"steps_per_print": 5, "unheard_of": 1})", {}, {"ds.json: unheard_of: unknown"}},
      {"{", {}, {"ds.json", "expected valid JSON"}},
  };
  for (auto const& wrong : cases) {
    CAPTURE(wrong.text);
    check_rejected(dry(wrong.text, wrong.flags), exit_code::bad_input, wrong.says);
  }
}

TEST_CASE("the configurations of DeepSpeed's SuperOffload examples plan a run unchanged") {
  command const c;
  for (std::string const name :
       {"llama_8b_super", "gpt_oss_20b_super", "qwen3_14b_zero", "llama_70b_super"}) {
    CAPTURE(name);
    auto const file = fs::path{SUPEROFFLOAD_TEST_DATA} / "deepspeed" / (name + ".json");
    auto const batch = name.starts_with("llama_70b") ? "16" : "4";
    // A described machine, since measured rates differ from run to run, and all that is updated on its CPU.
    words flags{"--dry_run",
                "--deepspeed_config",
                file.string(),
                "--batch_size",
                batch,
                "--device_updated_share",
                "0",
                "--hardware",
                (fs::path{SUPEROFFLOAD_HARDWARE} / "gh200.json").string()};
    bool const zero = name.ends_with("zero");
    if (zero) {  // it names no ratio: then all that fits the device stays there
      CHECK(c.run(flags).out.find("100.0 % on the device") != std::string::npos);
      flags.insert(flags.end(), {"--ratio", "1"});
    }
    auto const done = c.run(flags);
    CAPTURE(done.out);
    CHECK(done.status == 0);
    CHECK(std::ranges::count(done.err, '\n') == 3);
    CHECK(done.err.find("reduce_bucket_size") != std::string::npos);
    CHECK(done.err.find("no scheduler: the rate is constant") != std::string::npos);
    CHECK(done.err.find("no model is exported") != std::string::npos);
    CHECK((done.out.find("after the gradient check") != std::string::npos) == zero);
    CHECK((done.out.find("speculative before the gradient check") != std::string::npos) == !zero);
  }
}

TEST_CASE("a scheduler of a DeepSpeed file sets the rates of a run") {
  command const c;
  auto const file = write_file(c.root.path() / "ds.json", R"({"scheduler": {"type": "WarmupLR", "params": {
      "warmup_max_lr": 0.004, "warmup_num_steps": 4, "warmup_type": "linear"}}})");
  fs::create_directory(c.output);
  auto const done = c.run({"--deepspeed_config", file.string(), "--max_steps", "4", "--metrics",
                           (c.output / "metrics.jsonl").string()});
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  auto const rates = series(c.output, "lr");
  REQUIRE(rates.size() == 4);
  CHECK(rates[1] == 0.0);
  CHECK(rates[2] == doctest::Approx(0.001));
  CHECK(rates[3] == doctest::Approx(0.002));
}

TEST_CASE("values that begin with dashes are kept as they are: only names have underscores") {
  command const c;
  auto const output = c.root.path() / "my-output_dir";
  auto const done = c.run({"--output-dir=" + output.string()});
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(fs::exists(output / "model" / "model.safetensors"));
}

}  // namespace
