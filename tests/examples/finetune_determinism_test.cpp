// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "examples/finetune.hpp"

#include <chrono>
#include <thread>

namespace {

using namespace superoffload;
using namespace superoffload::test;

std::vector<std::string> joined(std::vector<std::string> flags, std::vector<std::string> const& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::vector<std::string> const short_run{"--max_steps", "6",    "--batch_size", "4",       "--max_length",
                                         "64",          "--lr", "1e-3",         "--dtype", "float32"};

TEST_CASE("two identical runs are identical bit for bit, in all precisions") {
  for (std::string const dtype : {"float32", "bf16", "fp8"}) {
    CAPTURE(dtype);
    scratch_directory const first, second;
    finetune_run const r{"llama", joined(short_run, {"--dtype", dtype})};
    REQUIRE(r.run_in(first.path()).status == 0);
    REQUIRE(r.run_in(second.path()).status == 0);
    CHECK(series(first.path(), "loss") == series(second.path(), "loss"));
    CHECK(weights_of(first.path()) == weights_of(second.path()));
  }
}

TEST_CASE("the number of threads changes no bit") {
  scratch_directory const one, three;
  finetune_run const r{"llama_tied", short_run};
  program{finetune_llama, r.arguments(one.path()), [] { ::setenv("SUPEROFFLOAD_NUM_THREADS", "1", 1); }}
      .wait();
  program{finetune_llama, r.arguments(three.path()), [] { ::setenv("SUPEROFFLOAD_NUM_THREADS", "3", 1); }}
      .wait();
  REQUIRE(series(one.path(), "loss").size() == 6);
  CHECK(series(one.path(), "loss") == series(three.path(), "loss"));
  CHECK(weights_of(one.path()) == weights_of(three.path()));
}

TEST_CASE("MLPs in tiles train alike, continue bit for bit, and only with the same tiles") {
  scratch_directory const whole, tiled, parts;
  auto const run = [&](scratch_directory const& output, std::vector<std::string> const& flags) {
    return finetune_run{"llama", joined(joined(short_run, {"--save_steps", "3"}), flags)}.run_in(
        output.path());
  };
  REQUIRE(run(whole, {}).status == 0);
  REQUIRE(run(tiled, {"--tiled_mlp", "48"}).status == 0);
  auto const losses = series(tiled.path(), "loss"), expected = series(whole.path(), "loss");
  REQUIRE(losses.size() == expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(1e-5));
  }
  std::filesystem::copy(tiled.path() / "checkpoint-3", parts.path() / "checkpoint-3",
                        std::filesystem::copy_options::recursive);
  for (auto const& other : {"0", "47"}) {
    auto const refused = run(parts, {"--resume", "auto", "--tiled_mlp", other});
    CHECK(refused.status == static_cast<int>(superoffload::exit_code::bad_input));
    CHECK(refused.err.find("--tiled_mlp") != std::string::npos);
  }
  REQUIRE(run(parts, {"--resume", "auto", "--tiled_mlp", "48"}).status == 0);
  CHECK(weights_of(parts.path()) == weights_of(tiled.path()));
}

TEST_CASE("with other rope scaling a model has more positions, and the export says so") {
  scratch_directory const plain, scaled, model, same, again;
  auto const run = [&](scratch_directory const& output, std::vector<std::string> const& flags) {
    return finetune_run{"llama", joined(joined(short_run, {"--batch_size", "1", "--save_steps", "3"}), flags)}
        .run_in(output.path());
  };
  std::string const more =
      R"({"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 256})";
  auto const too_long = run(plain, {"--max_length", "4096"});
  CHECK(too_long.status == static_cast<int>(superoffload::exit_code::bad_input));
  CHECK(too_long.err.find("max_position_embeddings is 2048; expected at most that, or --rope_scaling") !=
        std::string::npos);
  REQUIRE(run(scaled, {"--max_length", "4096", "--rope_scaling", more}).status == 0);
  auto const config = io::json::parse(contents_of(scaled.path() / "model" / "config.json"));
  CHECK(config["max_position_embeddings"] == 4096);
  CHECK(config["rope_scaling"] == io::json::parse(more));

  // Training a model whose config.json says the same is the same.
  auto const directory = model.path() / "llama";
  std::filesystem::copy(models / "llama", directory);
  std::filesystem::copy_file(scaled.path() / "model" / "config.json", directory / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  REQUIRE(run(same, {"--max_length", "4096", "--model", directory.string()}).status == 0);
  CHECK(weights_of(same.path()) == weights_of(scaled.path()));
  REQUIRE(run(plain, {"--max_length", "2048"}).status == 0);
  CHECK(weights_of(plain.path()) != weights_of(scaled.path()));

  std::filesystem::copy(scaled.path() / "checkpoint-3", again.path() / "checkpoint-3",
                        std::filesystem::copy_options::recursive);
  auto const refused =
      run(again, {"--max_length", "4096", "--resume", "auto", "--rope_scaling", "llama3:64"});
  CHECK(refused.status == static_cast<int>(superoffload::exit_code::bad_input));
  CHECK(refused.err.find("config.json's rope_scaling (--rope_scaling) is ") != std::string::npos);
  REQUIRE(run(again, {"--max_length", "4096", "--resume", "auto", "--rope_scaling", more}).status == 0);
  CHECK(weights_of(again.path()) == weights_of(scaled.path()));
}

TEST_CASE("recompute changes no bit") {
  scratch_directory const kept, again;
  auto const run = [&](scratch_directory const& output, char const* mode) {
    finetune_run const r{"llama", joined(short_run, {"--dtype", "bf16", "--activation_checkpointing", mode})};
    REQUIRE(r.run_in(output.path()).status == 0);
  };
  run(kept, "none");
  run(again, "every_block");
  CHECK(series(kept.path(), "loss") == series(again.path(), "loss"));
  CHECK(series(kept.path(), "grad_norm") == series(again.path(), "grad_norm"));
  CHECK(weights_of(kept.path()) == weights_of(again.path()));
}

TEST_CASE(
    "wherever the optimizer's state lives, the bits are the same, and a checkpoint moves between places") {
  std::vector<std::pair<std::string, std::string>> const kinds{
      {"float32", "float32"}, {"bf16", "float32"}, {"bf16", "bf16"}, {"bf16", "int8"}, {"fp8", "int8"}};
  for (auto const& kind : kinds) {
    auto const& dtype = kind.first;
    auto const& state = kind.second;
    CAPTURE(dtype);
    CAPTURE(state);
    auto const flags = joined(short_run, {"--dtype", dtype, "--state", state, "--bucket_mib", "1",
                                          "--save_steps", "3", "--max_grad_norm", "0.9"});
    scratch_directory const simple;
    REQUIRE(finetune_run{"llama", joined(flags, {"--offload", "none"})}.run_in(simple.path()).status == 0);
    std::vector<std::vector<std::string>> const all_places{
        {"--offload", "super", "--ratio", "1", "--device_updated_share", "0"},
        {"--offload", "super", "--ratio", "0.6"},
        {"--offload", "super", "--ratio", "1", "--device_updated_share", "1"},
        {"--offload", "super", "--offload_weights", "on"},
        {"--offload", "super", "--ratio", "0.6", "--offload_weights", "on"},
        {"--offload", "zero", "--offload_weights", "on"},
        {"--offload", "zero", "--ratio", "1"}};
    bool const all = state == "float32";
    for (std::size_t i = 0; i < all_places.size(); i += all ? 1 : 3) {
      auto const& places = all_places[i];
      CAPTURE(i);
      scratch_directory const placed;
      REQUIRE(finetune_run{"llama", joined(flags, places)}.run_in(placed.path()).status == 0);
      CHECK(series(placed.path(), "loss") == series(simple.path(), "loss"));
      CHECK(series(placed.path(), "grad_norm") == series(simple.path(), "grad_norm"));
      CHECK(weights_of(placed.path()) == weights_of(simple.path()));
      // From the checkpoint of step 3, with all state on the device.
      std::filesystem::remove_all(placed.path() / "checkpoint-6");
      std::filesystem::remove_all(placed.path() / "model");
      REQUIRE(finetune_run{"llama", joined(flags, {"--offload", "none", "--resume", "auto"})}
                  .run_in(placed.path())
                  .status == 0);
      CHECK(weights_of(placed.path()) == weights_of(simple.path()));
    }
  }
}

TEST_CASE("how a batch is split into micro-batches changes losses by rounding only") {
  for (std::string const packing : {"off", "on"}) {
    scratch_directory const whole;
    auto const run = [&](scratch_directory const& output, char const* accumulation) {
      finetune_run const r{
          "llama", joined(short_run, {"--gradient_accumulation_steps", accumulation, "--packing", packing})};
      REQUIRE(r.run_in(output.path()).status == 0);
      return series(output.path(), "loss");
    };
    auto const expected = run(whole, "1");
    REQUIRE(expected.size() == 6);
    for (char const* const accumulation : {"2", "4"}) {
      scratch_directory const split;
      auto const losses = run(split, accumulation);
      REQUIRE(losses.size() == expected.size());
      for (std::size_t i = 0; i < losses.size(); ++i) {
        CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(2e-6));
      }
    }
  }
}

/// Runs until `step` is in the log and kills the program there, as a power cut would.
void kill_after_step(finetune_run const& r, std::filesystem::path const& output, std::size_t step) {
  program p{finetune_llama, r.arguments(output)};
  // Checkpoints are written while training goes on: one has to be complete.
  while (p.running() &&
         (series(output, "loss").size() < step || p.errors_so_far().find("saved ") == std::string::npos)) {
    std::this_thread::sleep_for(std::chrono::milliseconds{2});
  }
  p.send(SIGKILL);
  p.wait();
}

TEST_CASE("train, save, die and resume gives the bits of an uninterrupted run, in the middle of an epoch") {
  for (std::string const dtype : {"float32", "bf16", "fp8"}) {
    std::vector<std::string> flags{"--max_steps",
                                   "16",
                                   "--batch_size",
                                   "4",
                                   "--max_length",
                                   "128",
                                   "--lr",
                                   "1e-3",
                                   "--dtype",
                                   dtype,
                                   "--packing",
                                   "on",
                                   "--save_steps",
                                   "5",
                                   "--lr_scheduler",
                                   "cosine",
                                   "--dataset_percentage",
                                   "62",
                                   "--seed",
                                   "7"};
    CAPTURE(dtype);
    scratch_directory const whole, broken;
    REQUIRE(finetune_run{"llama", flags}.run_in(whole.path()).status == 0);
    kill_after_step({"llama", flags}, broken.path(), 7);
    auto const resumed = finetune_run{"llama", joined(flags, {"--resume", "auto"})}.run_in(broken.path());
    CAPTURE(resumed.err);
    REQUIRE(resumed.status == 0);
    CHECK(resumed.err.find("resumed at step") != std::string::npos);
    CHECK(series(whole.path(), "loss") == series(broken.path(), "loss"));
    CHECK(series(whole.path(), "grad_norm") == series(broken.path(), "grad_norm"));
    CHECK(weights_of(whole.path()) == weights_of(broken.path()));
  }
}

TEST_CASE("dropout leaves out the same elements, however a run is computed and wherever it was interrupted") {
  scratch_directory const place;
  auto const model = place.path() / "model";
  std::filesystem::copy(models / "seed_oss", model);
  auto config = io::read_json(model / "config.json");
  config["attention_dropout"] = config["residual_dropout"] = 0.1;
  write_file(model / "config.json", config.dump());
  auto const flags = joined(short_run, {"--dtype", "bf16", "--save_steps", "3"});
  auto const run = [&](std::filesystem::path const& output, std::vector<std::string> const& more) {
    auto const done = finetune_run{model.string(), joined(flags, more)}.run_in(output);
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
  };
  scratch_directory const kept, again, without;
  run(kept.path(), {"--activation_checkpointing", "none"});
  run(again.path(), {"--activation_checkpointing", "every_block"});
  CHECK(series(kept.path(), "loss") == series(again.path(), "loss"));
  CHECK(weights_of(kept.path()) == weights_of(again.path()));
  std::filesystem::remove_all(again.path() / "checkpoint-6");
  run(again.path(), {"--resume", "auto"});
  CHECK(weights_of(kept.path()) == weights_of(again.path()));
  REQUIRE(finetune_run{"seed_oss", flags}.run_in(without.path()).status == 0);
  CHECK(series(kept.path(), "loss") != series(without.path(), "loss"));
}

TEST_CASE("a signal finishes the step, saves, and has its own exit code; resuming goes on from there") {
  std::vector<std::string> const flags{"--max_steps", "400",  "--batch_size", "2",       "--max_length",
                                       "64",          "--lr", "1e-4",         "--dtype", "float32"};
  for (int const signal : {SIGTERM, SIGINT}) {
    scratch_directory const output;
    program p{finetune_llama, finetune_run{"llama", flags}.arguments(output.path())};
    while (p.running() && series(output.path(), "loss").size() < 3) {
      std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    p.send(signal);
    p.send(signal);  // as timeout does, which signals the process and its group
    auto const done = p.wait();
    CAPTURE(done.err);
    CHECK(done.status == 7);
    auto const steps = series(output.path(), "loss").size();
    CHECK(std::filesystem::exists(output.path() / ("checkpoint-" + std::to_string(steps))));
    auto const resumed =
        finetune_run{"llama", joined(flags, {"--resume", "auto", "--max_steps", std::to_string(steps + 2)})}
            .run_in(output.path());
    CHECK(resumed.status == 0);
    CHECK(series(output.path(), "loss").size() == steps + 2);
  }
}

}  // namespace
