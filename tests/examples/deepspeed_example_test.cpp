// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The flags of DeepSpeed's SuperOffload example (finetune_zero3.py): each has its meaning here, or a line
// says what becomes of it.
#include "examples/rejection.hpp"

#include <cstdlib>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

bool contains(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

struct example {
  scratch_directory root;
  fs::path output = root.path() / "output";
  fs::path rows = write_file(root.path() / "rows.json", two_rows);

  /// `name`: of the model, as on the hub or a directory.
  [[nodiscard]] outcome run(std::string const& name, words const& flags) const {
    return program{finetune_llama,
                   joined({"--model_name", name, "--output_dir", output.string(), "--batch_size", "2",
                           "--max_length", "64", "--device", test_device()},
                          flags),
                   [this] {
                     ::setenv("HF_HUB_CACHE", (root.path() / "hub").c_str(), 1);
                     ::setenv("SUPEROFFLOAD_NUM_THREADS", "1", 1);
                   }}
        .wait();
  }
  [[nodiscard]] outcome run(words const& flags) const { return run((models / "llama").string(), flags); }
};

TEST_CASE("the command line of DeepSpeed's example works as it stands, and lines say what becomes of flags") {
  example const e;
  auto const done = e.run({"--dataset_name",
                           e.rows.string(),
                           "--leaf_module",
                           "LlamaMLP",
                           "--attn_implementation",
                           "sdpa",
                           "--activation_checkpointing",
                           "--bind_cores_to_rank",
                           "--lr",
                           "1e-5",
                           "--weight_decay",
                           "0.01",
                           "--warmup",
                           "0.05",
                           "--num_train_epochs",
                           "10",
                           "--seed",
                           "42",
                           "--deterministic",
                           "--log_interval",
                           "1",
                           "--log_level",
                           "INFO",
                           "--warmup_steps",
                           "20",
                           "--bench_steps",
                           "2",
                           "--save_checkpoint",
                           "--use_wandb",
                           "--wandb_project",
                           "my-project",
                           "--wandb_run_name",
                           "my-run",
                           "--wandb_tags",
                           "first",
                           "second",
                           "--deepspeed",
                           "--local_rank",
                           "-1"});
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  for (std::string const line :
       {"--bench_steps 2: the run ends after 2 steps, and the rate's schedule with it\n",
        "--warmup_steps 20 beside --bench_steps has no effect: ", "--deepspeed has no effect: ",
        "--leaf_module LlamaMLP has no effect: ", "--deterministic has no effect: ",
        "--warmup 0.05 has no effect, ",
        "--attn_implementation sdpa is auto: ", "--use_wandb is --report_to wandb: "}) {
    CAPTURE(line);
    CHECK((done.err.starts_with(line) || contains(done.err, "\n" + line)));
  }
  CHECK(contains(done.err, "step 2/2"));
  CHECK(contains(done.out, "every block"));
  CHECK(fs::exists(e.output / "checkpoint-2"));
  CHECK(fs::exists(e.output / "model"));
  std::string log;
  for (auto const& file : fs::recursive_directory_iterator{e.output / "reports" / "wandb"}) {
    log += file.is_regular_file() ? contents_of(file.path()) : "";
  }
  for (std::string const name : {"my-project", "my-run", "first", "second"}) {
    CAPTURE(name);
    CHECK(contains(log, name));
  }
}

TEST_CASE("without --bench_steps, --warmup_steps is that of transformers") {
  example const e;
  auto const done = e.run({"--dataset", e.rows.string(), "--warmup_steps", "3", "--lr_warmup_ratio", "0.5"});
  check_rejected(done, exit_code::bad_input, {"--lr_warmup_ratio is 0.5", "--lr_warmup_steps is 3"});
}

TEST_CASE("a model that the hub's tools have downloaded may be named as on the hub") {
  example const e;
  auto const repository = e.root.path() / "hub" / "models--some-one--tiny.llama";
  auto const snapshot = repository / "snapshots" / "0123abcd";
  fs::create_directories(snapshot);
  fs::copy(models / "llama", snapshot);
  words const dry{"--dry_run", "--max_steps", "1"};
  check_rejected(e.run("some-one/tiny.llama", dry), exit_code::bad_input,
                 {"--model is some-one/tiny.llama", (e.root.path() / "hub").string()});
  fs::create_directories(repository / "refs");
  for (std::string const wrong : {"", "../../../etc", "absent", "0123abcd/..", "ffff"}) {
    write_file(repository / "refs" / "main", wrong);
    check_rejected(e.run("some-one/tiny.llama", dry), exit_code::bad_input,
                   {"--model is some-one/tiny.llama"});
  }
  write_file(repository / "refs" / "main", "0123abcd");
  auto const done = e.run("some-one/tiny.llama", dry);
  CHECK(done.status == 0);
  CHECK(done.err == "--model some-one/tiny.llama is " + snapshot.string() + "\n");
  CHECK(contains(done.out, "plan for llama"));
}

TEST_CASE("a data set is named by a file, or said to be missing with the command that makes one") {
  example const e;
  check_rejected(e.run({"--dataset_name", "tatsu-lab/alpaca"}), exit_code::bad_input,
                 {"--dataset_name is tatsu-lab/alpaca", "load_dataset('tatsu-lab/alpaca'"});
  auto const done = e.run({"--dataset_name", "tatsu-lab/alpaca", "--dataset", e.rows.string(), "--dry_run"});
  CHECK(done.status == 0);
  CHECK(done.err == "--dataset_name tatsu-lab/alpaca has no effect: the rows are those of --dataset\n");
}

TEST_CASE("DeepSpeed's names of log levels are accepted, and transformers' flag for the configuration") {
  example const e;
  words const base{"--dataset", e.rows.string(), "--dry_run"};
  auto const config = write_file(e.root.path() / "ds.json", R"({"steps_per_print": 1})");
  auto const at = [&](std::string const& level) {
    return e.run(joined(base, {"--deepspeed", config.string(), "--log_level", level})).err;
  };
  CHECK(contains(at("INFO"), "steps_per_print"));
  CHECK(at("DEBUG") == at("INFO"));
  for (std::string const level : {"WARNING", "ERROR", "CRITICAL"}) { CHECK(at(level).empty()); }
}

TEST_CASE("a run may end without an export, which its last line says") {
  example const e;
  auto const done = e.run({"--dataset", e.rows.string(), "--max_steps", "1", "--export", "off"});
  CHECK(done.status == 0);
  CHECK_FALSE(fs::exists(e.output / "model"));
  CHECK(contains(done.out, "exported and saved nothing: --export on and --save_checkpoint do\n"));
  auto const saved =
      e.run({"--dataset", e.rows.string(), "--max_steps", "1", "--export", "off", "--save_checkpoint"});
  CHECK(saved.status == 0);
  CHECK(contains(saved.out, "exported nothing; the last checkpoint is "));
  CHECK(contains(saved.out, (e.output / "checkpoint-1").string()));
}

TEST_CASE("a configuration trains as DeepSpeed's example does: constant rate, all tokens learnt, no export") {
  example const e;
  auto const config =
      write_file(e.root.path() / "ds.json", R"({"train_batch_size": 2, "bf16": {"enabled": true},
      "wall_clock_breakdown": true})");
  auto const metrics = e.root.path() / "metrics.jsonl";
  auto const done = e.run({"--dataset",
                           e.rows.string(),
                           "--deepspeed_config",
                           config.string(),
                           "--num_train_epochs",
                           "3",
                           "--lr",
                           "1e-3",
                           "--template",
                           "deepspeed",
                           "--label_mask",
                           "none",
                           "--append_eos",
                           "off",
                           "--padding",
                           "max_length",
                           "--learn_padding",
                           "on",
                           "--activation_checkpointing",
                           "--log_interval",
                           "1",
                           "--metrics",
                           metrics.string()});
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  CHECK_FALSE(fs::exists(e.output / "model"));
  CHECK(contains(done.err, "no scheduler: the rate is constant"));
  CHECK(contains(done.err, "no model is exported"));
  CHECK(contains(done.err, " TFLOPS  "));
  CHECK(contains(done.err, " TFLOPS as DeepSpeed's example counts them\n"));
  auto const model = io::read_json(models / "llama" / "config.json");
  std::ifstream file{metrics};
  int steps = 0;
  for (std::string line; std::getline(file, line); ++steps) {
    auto const step = io::json::parse(line);
    CHECK(step["lr"] == 1e-3);
    CHECK(step["label_tokens"] == 2 * 63);
    // finetune_zero3.py: 2 * 4 * P * S + 2 * 2 * 4 * L * h * S^2 of each sequence, over the time of the step
    double const of_sequence = 8.0 * 135488 * 64 + 16.0 * model["num_hidden_layers"].get<double>() *
                                                       model["hidden_size"].get<double>() * 64 * 64;
    CHECK(step["deepspeed_tflops"].get<double>() ==
          doctest::Approx(2.0 * of_sequence / step["step_time_ms"].get<double>() * 1e-9));
  }
  CHECK(steps == 3);
}

TEST_CASE("labels of the padding change the run, and so is a run of its own") {
  example const e;
  words const flags{"--dataset", e.rows.string(), "--max_steps",  "2",
                    "--padding", "max_length",    "--save_steps", "1"};
  REQUIRE(e.run(joined(flags, {"--learn_padding", "on"})).status == 0);
  check_rejected(e.run(joined(flags, {"--resume", "auto"})), exit_code::bad_input,
                 {"label_mask", "padding learnt"});
}

TEST_CASE("an evaluation alone prints the loss of a run's start, and writes nothing") {
  example const e;
  auto const rows = std::vector<std::string>{"--eval_dataset", some_rows.string(), "--label_mask", "none"};
  auto const files = snapshot_of(e.root.path());
  auto const alone = e.run(joined(rows, {"--eval_only"}));
  CAPTURE(alone.err);
  REQUIRE(alone.status == 0);
  CHECK(snapshot_of(e.root.path()) == files);
  CHECK(contains(alone.out, "of them trained"));
  auto const last = alone.out.rfind("held-out loss ");
  REQUIRE(last != std::string::npos);
  auto const loss = alone.out.substr(last, std::string_view{"held-out loss 1.2345"}.size());
  CHECK(alone.out.ends_with(loss + "\n"));

  auto const trained = e.run(joined(rows, {"--dataset", e.rows.string(), "--max_steps", "1"}));
  REQUIRE(trained.status == 0);
  CHECK(contains(trained.out, loss + " before, "));
  auto const ranks = e.run(joined(rows, {"--eval_only", "--ranks", "2", "--dtype", "float32"}));
  CAPTURE(ranks.err);
  CHECK(ranks.status == 0);
  CHECK(contains(ranks.out, "held-out loss "));

  for (words const& more : {words{"--metrics", (e.root.path() / "m").string()},
                            {"--trace", (e.root.path() / "t").string()},
                            {"--report_to", "html"},
                            {"--save_checkpoint"},
                            {"--overwrite_output_dir"}}) {
    check_rejected(e.run(joined(joined(rows, {"--eval_only"}), more)), exit_code::bad_input,
                   {more.front() + " is given, but --eval_only writes nothing"});
  }
  check_rejected(e.run(joined(rows, {"--eval_only", "--resume", "auto"})), exit_code::bad_input,
                 {"--eval_only evaluates --model, but --resume is given"});
}

TEST_CASE("after an interruption, the held-out loss before is that of the run's start") {
  example const e;
  words const flags{"--dataset",    e.rows.string(), "--eval_dataset", some_rows.string(),
                    "--lr",         "1e-2",          "--lr_scheduler", "constant",
                    "--label_mask", "none",          "--save_steps",   "2"};
  auto const before_of = [](outcome const& done) {
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    auto const at = done.out.rfind("held-out loss ");
    REQUIRE(at != std::string::npos);
    return done.out.substr(at, done.out.find(" before", at) - at);
  };
  auto const first = before_of(e.run(joined(flags, {"--max_steps", "2"})));
  auto const resumed = e.run(joined(flags, {"--max_steps", "4", "--resume", "auto"}));
  CHECK(before_of(resumed) == first);
  CHECK_FALSE(contains(resumed.out, first + " before, " + first.substr(14) + " after"));
  CHECK_FALSE(contains(resumed.err, "step 2  held-out loss"));  // known from the session before

  // Other held-out data have another loss, which the run has to find.
  auto const other =
      e.run(last_of_each(joined(flags, {"--max_steps", "6", "--resume", (e.output / "checkpoint-4").string(),
                                        "--eval_dataset", e.rows.string()})));
  CHECK(before_of(other) != first);
  CHECK(contains(other.err, "step 4  held-out loss"));
}

}  // namespace
