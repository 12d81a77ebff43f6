// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// GPUs that fail under the real program, or whose work comes late; run where SUPEROFFLOAD_TEST_DEVICE is
// cuda, on the first SUPEROFFLOAD_TEST_GPUS GPUs (1).
#include <superoffload/io/train_checkpoint.hpp>

#include "examples/gpu_run.hpp"
#include "support/fault_case.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#ifndef SUPEROFFLOAD_FAULTY_RUNTIME
#define SUPEROFFLOAD_FAULTY_RUNTIME ""
#endif

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

/// 1, 2 and 4, as far as there are so many GPUs.
std::vector<int> numbers_of_gpus() {
  std::vector numbers{1, 2, 4};
  std::erase_if(numbers, [](int n) { return n > test_gpus(); });
  return numbers;
}

/// Variables of a program's environment.
using variables = std::vector<std::pair<char const*, std::string>>;

outcome train_with(variables const& set, fs::path const& output, words const& flags) {
  return program{finetune_llama, finetune_run{"llama", joined(short_gpu_run, flags)}.arguments(output),
                 [&] {
                   for (auto const& [name, value] : set) { ::setenv(name, value.c_str(), 1); }
                   ::alarm(120);  // it must end by itself
                 }}
      .wait();
}

/// A run with tests/examples/faulty_runtime.cpp ahead of the CUDA runtime.
outcome with_fault(variables set, fs::path const& output, words const& flags) {
  set.emplace_back("LD_PRELOAD", SUPEROFFLOAD_FAULTY_RUNTIME);
  return train_with(set, output, flags);
}

/// job(0), job(1), ... job(jobs - 1), some at once.
template <class Job>
void some_at_once(int jobs, Job const& job) {
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; (i = next++) < jobs;) { job(i); }
    });
  }
  for (auto& thread : threads) { thread.join(); }
}

TEST_CASE("a GPU that is lost in mid-run ends the run, and the last checkpoint goes on bit for bit" *
          without_gpu) {
  scratch_directory const whole;
  REQUIRE(train_on_gpu(whole.path(), {}).status == 0);
  int lost = 0, with_checkpoint = 0;
  for (int after = 3;; after += 16) {
    CAPTURE(after);
    REQUIRE(after < 1000);
    fault_case injected{"lost"};
    scratch_directory const output;
    auto const begin = std::chrono::steady_clock::now();
    auto const done = with_fault({{"LOSE_DEVICE_AFTER", std::to_string(after)}}, output.path(), {});
    CAPTURE(done.err);
    if (done.status == 0) {
      injected.did_not_happen();
      break;
    }
    INFO(done.err.substr(done.err.find("finetune_llama: error:")), "after ",
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), " s");
    check_failure(done, exit_code::device_lost,
                  {"the GPU is lost to this process: ", " CUDA device 0 failed",
                   "unspecified launch failure (cudaErrorLaunchFailure)"});
    // While a run is planned, it has nothing to say of checkpoints.
    CHECK((series(output.path(), "loss").empty() || done.err.find("checkpoint") != std::string::npos));
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
      auto const resumed = train_on_gpu(output.path(), {"--resume", "auto"});
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
  auto const done = with_fault({{"HIDE_USED_MEMORY", "1"}}, output.path(),
                               {"--batch_size", "1000000", "--max_length", "2048", "--device", "cuda"});
  check_failure(done, exit_code::cannot_fit,
                {"cannot allocate ", " bytes on cuda:0 (", "are this program's", "nvidia-smi"});
}

TEST_CASE(
    "memory of the GPU or of pinned host memory that is refused at any allocation is an error, or costs "
    "nothing" *
    without_gpu) {
  words const flags{"--offload", "super", "--ratio", "0.7", "--bucket_mib", "1", "--max_steps", "4"};
  scratch_directory const whole;
  REQUIRE(train_on_gpu(whole.path(), flags).status == 0);
  auto const expected = weights_of(whole.path());
  std::atomic<int> refused{0}, without_effect{0};
  std::atomic<bool> reached_the_end{false};
  for (int at = 0; !reached_the_end; at += 12) {
    REQUIRE(at < 3000);
    some_at_once(24, [&](int i) {
      auto const number = at + i / 2;
      auto const fault = concat(number, ',', i % 2);
      CAPTURE(fault);
      fault_case injected{"F8"};
      scratch_directory const output;
      auto const note = output.path() / "refused";
      auto const done = with_fault({{"REFUSE_ALLOCATION", fault}, {"REFUSED", note.string()}},
                                   output.path() / "run", flags);
      CAPTURE(done.err);
      bool const happened = fs::exists(note);
      if (!happened) {
        injected.did_not_happen();
        reached_the_end = true;
      }
      refused += happened;
      if (done.status == 0) {
        without_effect += happened;
        CHECK(weights_of(output.path() / "run") == expected);
      } else {
        CHECK(happened);
        check_failure(done, exit_code::cannot_fit, {});
      }
    });
  }
  MESSAGE(refused.load(), " allocations refused, ", without_effect.load(), " without effect");
  CHECK(refused > 20);
}

TEST_CASE("with little memory left on the GPU a run fits or is refused before it begins" * without_gpu) {
  scratch_directory const whole;
  REQUIRE(train_on_gpu(whole.path(), {"--offload", "none"}).status == 0);
  auto const expected = weights_of(whole.path());
  int refused = 0, fits = 0;
  for (int i = 0; i < 12; ++i) {
    auto const left = (std::size_t{8} << 20) << i;  // 8 MiB to 16 GiB
    CAPTURE(left);
    fault_case const taken{"F8"};
    scratch_directory const output;
    auto const done =
        with_fault({{"LEAVE_MEMORY", std::to_string(left)}}, output.path() / "run", {"--offload", "auto"});
    CAPTURE(done.err);
    if (done.status == 0) {
      ++fits;
      CHECK(weights_of(output.path() / "run") == expected);
    } else {
      ++refused;
      check_failure(done, exit_code::cannot_fit, {});  // by the plan, or by the first allocation
      CHECK((done.err.find(" MiB are available") != std::string::npos ||
             done.err.find("on cuda:0 (") != std::string::npos));
    }
  }
  CHECK(fits > 0);
  CHECK(refused > 0);
}

TEST_CASE("work that comes late on its stream changes no bit" * without_gpu) {
  int const seeds = in_long_tests(8, 2);
  for (int const gpus : numbers_of_gpus()) {
    CAPTURE(gpus);
    std::vector<words> places{
        {"--offload", "none"},
        {"--offload", "super", "--ratio", "1", "--device_updated_share", "0"},
        {"--offload", "super", "--ratio", "0.7", "--device_updated_share", "0.5"},
        {"--offload", "super", "--ratio", "0.6", "--activation_checkpointing", "offload"}};
    if (gpus == 1) {
      places.push_back({"--offload", "super", "--ratio", "1", "--offload_weights", "on"});
    }
    words const flags{"--bucket_mib", "1", "--max_grad_norm", "0.9", "--gpus", std::to_string(gpus)};
    scratch_directory const whole;
    REQUIRE(train_on_gpu(whole.path(), joined(flags, {"--offload", "none"})).status == 0);
    auto const expected = weights_of(whole.path());
    some_at_once(seeds * static_cast<int>(places.size()), [&](int i) {
      auto const& place = places[static_cast<std::size_t>(i) % places.size()];
      CAPTURE(i);
      fault_case const delayed{"G4"};
      scratch_directory const output;
      auto const note = output.path() / "delays";
      auto const done = with_fault({{"DELAY_STREAMS", std::to_string(i)}, {"DELAYS", note.string()}},
                                   output.path() / "run", joined(flags, place));
      CAPTURE(done.err);
      CHECK(done.status == 0);
      CHECK(weights_of(output.path() / "run") == expected);
      CHECK(std::atoi(contents_of(note).c_str()) > 200);
    });
  }
}

TEST_CASE("two identical runs on GPUs have the same bits whatever NCCL chooses" * without_gpu) {
  std::vector<variables> const choices{{},
                                       {},
                                       {{"NCCL_ALGO", "Ring"}},
                                       {{"NCCL_PROTO", "Simple"}},
                                       {{"NCCL_PROTO", "LL"}},
                                       {{"NCCL_MAX_NCHANNELS", "1"}},
                                       {{"NCCL_P2P_DISABLE", "1"}}};
  for (int const gpus : numbers_of_gpus()) {
    CAPTURE(gpus);
    words const flags{"--max_steps",        "100",       "--save_steps", "0",       "--gpus",
                      std::to_string(gpus), "--offload", "super",        "--ratio", "0.7"};
    std::vector<std::string> weights(gpus > 1 ? choices.size() : 2);
    auto const run_with = [&](int i) {
      scratch_directory const output;
      auto const done = train_with(choices[static_cast<std::size_t>(i)], output.path(), flags);
      CAPTURE(done.err);
      CHECK(done.status == 0);
      weights[static_cast<std::size_t>(i)] = weights_of(output.path());
    };
    run_with(0);  // it measures GEMMs and keeps the choices for the others
    some_at_once(static_cast<int>(weights.size()) - 1, [&](int i) { run_with(i + 1); });
    for (std::size_t i = 1; i < weights.size(); ++i) {
      CAPTURE(i);
      fault_case const again{"G2"};
      CHECK(weights[i] == weights[0]);
      CHECK(!weights[i].empty());
    }
  }
}

}  // namespace
