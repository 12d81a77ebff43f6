// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What only a GPU can show; run where SUPEROFFLOAD_TEST_DEVICE is cuda.
#include <superoffload/io/train_checkpoint.hpp>

#include "examples/rejection.hpp"

#include <chrono>
#include <regex>

#ifndef SUPEROFFLOAD_FAULTY_RUNTIME
#define SUPEROFFLOAD_FAULTY_RUNTIME ""
#endif

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

doctest::skip const without_gpu{test_device() != "cuda"};

words const short_run{"--max_steps", "12",   "--batch_size",   "4",        "--max_length", "64",
                      "--lr",        "1e-3", "--lr_scheduler", "constant", "--save_steps", "4"};

outcome train(fs::path const& output, words const& flags) {
  return finetune_run{"llama", joined(short_run, flags)}.run_in(output);
}

std::string weights_of(fs::path const& output) { return contents_of(output / "model" / "model.safetensors"); }

TEST_CASE("auto is the GPU, and the plan names it" * without_gpu) {
  auto const done = run(finetune_llama, {"--model", models / "llama", "--dry_run", "--max_length", "64"});
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(std::regex_search(done.out, std::regex{"(^|\n)plan for .*, on cuda:0 \\(.+\\) in bf16\n"}));
}

TEST_CASE("the plan names whose attention is used, and cuDNN's is refused where it cannot be had" *
          without_gpu) {
  auto const plan = [](words const& flags) {
    return run(finetune_llama,
               joined({"--model", models / "llama", "--dry_run", "--max_length", "64"}, flags));
  };
  auto const flash = plan({"--attn_implementation", "flash"});
  CHECK(std::regex_search(flash.out, std::regex{"\n +attention +flash\n"}));
  auto const automatic = plan({});
  CHECK(std::regex_search(automatic.out, std::regex{"\n +attention +(cuDNN 9\\.|flash\n)"}));
  check_rejected(plan({"--attn_implementation", "cudnn", "--dtype", "float32"}), exit_code::device,
                 {"--attn_implementation cudnn", "--dtype bf16"});
}

TEST_CASE("a plan that does not fit the GPU's memory is refused with flags that make it fit" * without_gpu) {
  words const large{"--model",      models / "llama", "--dry_run",    "--device", "cuda",
                    "--max_length", "2048",           "--batch_size", "1000000"};
  auto const refused = run(finetune_llama, large);
  check_rejected(refused, exit_code::cannot_fit,
                 {"the plan needs", " of device memory", "are available on cuda:0 ("});
  std::smatch advice;
  REQUIRE(std::regex_search(refused.err, advice,
                            std::regex{"has (\\d+) sequences of 2048 tokens: use( .*)? "
                                       "--gradient_accumulation_steps (\\d+)"}));
  auto const with = [&](long steps) {
    return run(finetune_llama, joined(large, {"--gradient_accumulation_steps", std::to_string(steps)}))
        .status;
  };
  CHECK(with(std::stol(advice[3])) == 0);
  CHECK(with(std::stol(advice[3]) * 9 / 10) == static_cast<int>(exit_code::cannot_fit));
}

TEST_CASE("a checkpoint of one device is gone on from on the other" * without_gpu) {
  for (std::string const dtype : {"float32", "bf16"}) {
    CAPTURE(dtype);
    auto const tolerance = dtype == "bf16" ? 0.01 : 2e-5;
    for (std::string const first : {"cpu", "cuda"}) {
      CAPTURE(first);
      scratch_directory const whole, moved;
      std::string const second = first == "cpu" ? "cuda" : "cpu";
      words const flags{"--dtype", dtype};
      REQUIRE(train(whole.path(), joined(flags, {"--device", first})).status == 0);
      REQUIRE(train(moved.path(), joined(flags, {"--device", first, "--max_steps", "4"})).status == 0);
      auto const done = train(moved.path(), joined(flags, {"--device", second, "--resume", "auto"}));
      CAPTURE(done.err);
      REQUIRE(done.status == 0);
      CHECK(done.err.find("resumed at step 4") != std::string::npos);
      auto const expected = series(whole.path(), "loss");
      auto const losses = series(moved.path(), "loss");
      REQUIRE(losses.size() == expected.size());
      for (std::size_t i = 0; i < losses.size(); ++i) {
        CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(tolerance));
      }
    }
  }
}

/// A run with tests/examples/faulty_runtime.cu ahead of the CUDA runtime.
outcome with_fault(char const* fault, std::string const& value, fs::path const& output, words const& flags) {
  return program{finetune_llama, finetune_run{"llama", joined(short_run, flags)}.arguments(output),
                 [=] {
                   ::setenv("LD_PRELOAD", SUPEROFFLOAD_FAULTY_RUNTIME, 1);
                   ::setenv(fault, value.c_str(), 1);
                   ::alarm(60);  // it must end by itself
                 }}
      .wait();
}

TEST_CASE("a GPU that is lost in mid-run ends the run, and the last checkpoint goes on bit for bit" *
          without_gpu) {
  scratch_directory const whole;
  REQUIRE(train(whole.path(), {}).status == 0);
  int lost = 0, with_checkpoint = 0;
  for (int after = 3;; after += 40) {
    CAPTURE(after);
    REQUIRE(after < 1000);
    scratch_directory const output;
    auto const begin = std::chrono::steady_clock::now();
    auto const done = with_fault("LOSE_DEVICE_AFTER", std::to_string(after), output.path(), {});
    CAPTURE(done.err);
    if (done.status == 0) {
      break;
    }
    MESSAGE(done.err.substr(done.err.find("finetune_llama: error:")), "after ",
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), " s");
    check_failure(
        done, exit_code::device_lost,
        {"the GPU is lost to this process: ", " on stream ", " of CUDA device 0 failed, last range ",
         "unspecified launch failure (cudaErrorLaunchFailure)"});
    bool const in_training = done.err.find("last range measuring the machine") == std::string::npos;
    CHECK(in_training == (done.err.find("checkpoint") != std::string::npos));
    ++lost;
    for (auto const& entry : fs::directory_iterator{output.path()}) {
      auto const name = entry.path().filename().string();
      if (name.starts_with("checkpoint-")) {
        io::checkpoint_reader::open(entry.path()).verify();
        CHECK(done.err.find("the last checkpoint is " + output.path().string()) != std::string::npos);
        with_checkpoint += name == "checkpoint-4" ? 1 : 0;
      }
    }
    if (lost % 2 == 0) {
      auto const resumed = train(output.path(), {"--resume", "auto"});
      CAPTURE(resumed.err);
      REQUIRE(resumed.status == 0);
      CHECK(weights_of(output.path()) == weights_of(whole.path()));
    }
  }
  CHECK(lost > 2);
  CHECK(with_checkpoint > 0);
}

TEST_CASE("memory that somebody else took after the plan was made is an error that says so" * without_gpu) {
  scratch_directory const output;
  auto const done = with_fault("HIDE_USED_MEMORY", "1", output.path(),
                               {"--batch_size", "1000000", "--max_length", "2048", "--device", "cuda"});
  check_failure(done, exit_code::cannot_fit,
                {"cannot allocate ", " bytes on cuda:0 (", "are this program's", "nvidia-smi"});
}

}  // namespace
