// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Signals to the real program at any time: while it starts, reads, trains, evaluates, saves and exports.
#include <superoffload/io/train_checkpoint.hpp>

#include "examples/rejection.hpp"
#include "support/fault_case.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

namespace {

using namespace superoffload;
using namespace superoffload::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;
using clock_type = std::chrono::steady_clock;

constexpr int steps = 12;

std::vector<std::string> arguments(fs::path const& output) {
  return on_few_rows(
      output, {"--lr", "1e-3", "--dtype", "bf16", "--max_steps", std::to_string(steps), "--save_steps", "3",
               "--save_total_limit", "2", "--eval_dataset", some_rows, "--eval_steps", "5", "--resume",
               "auto", "--metrics", output / "metrics.jsonl"});
}

std::int64_t lines_in(fs::path const& output) {
  return std::ranges::count(contents_of(output / "metrics.jsonl"), '\n');
}

void wait_for_lines(program& run, fs::path const& output, std::int64_t lines) {
  while (run.running() && lines_in(output) < lines) { std::this_thread::sleep_for(1ms); }
}

TEST_CASE(
    "a signal at any time saves the step that is reached, or nothing has been trained; the run goes on from "
    "there") {
  scratch_directory const whole;
  auto const begin = clock_type::now();
  REQUIRE(run_on_one_thread(finetune_llama, arguments(whole.path())).status == 0);
  auto const lasts = clock_type::now() - begin;
  auto const expected = weights_of(whole.path());
  auto const lines = lines_in(whole.path());

  std::mt19937 random{21};
  std::uniform_real_distribution<> part{0, 1};
  int ended = 0, before = 0, stopped = 0;
  int const all = in_long_tests(300, 16);
  // How many runs a signal stops depends on the machine's load: a few more may be needed.
  for (int i = 0; i < all || (stopped < all / 4 && i < 4 * all); ++i) {
    CAPTURE(i);
    fault_case injected{"F18"};
    scratch_directory const output;
    auto const signal = std::array{SIGTERM, SIGINT, SIGHUP}[static_cast<std::size_t>(i) % 3];
    CAPTURE(signal);
    program run{finetune_llama, last_of_each(arguments(output.path())), [] {
                  ::setenv("SUPEROFFLOAD_NUM_THREADS", "1", 1);
                  std::signal(SIGHUP, SIG_DFL);
                  ::alarm(60);
                }};
    // Every other signal waits for a step: most of a short run's time goes by before its first one.
    if (i % 2 == 0) {
      std::this_thread::sleep_for(lasts * part(random));
    } else {
      wait_for_lines(run, output.path(),
                     static_cast<std::int64_t>(static_cast<double>(lines) * part(random)));
      std::this_thread::sleep_for(lasts / (2 * steps) * part(random));
    }
    if (run.running()) {
      run.send(signal);
    }
    auto const done = run.wait();
    CAPTURE(done.err);
    CAPTURE(done.status);
    auto const found =
        fs::exists(output.path()) ? io::checkpoints_in(output.path()) : std::vector<io::found_checkpoint>{};
    for (auto const& one : found) { CHECK_NOTHROW(io::checkpoint_reader::open(one.directory).verify()); }
    if (done.status == 0) {
      ++ended;
      injected.did_not_happen();
    } else if (done.status == 128 + signal) {  // the program was not yet begun, or was done
      ++before;
      bool const is_done = weights_of(output.path()) == expected;
      CHECK((is_done || found.empty()));
      CHECK((is_done || lines_in(output.path()) == 0));
    } else {
      ++stopped;
      CHECK(done.status == static_cast<int>(exit_code::interrupted));
      auto const metrics = metrics_in(output.path());
      std::int64_t reached = 0;
      for (auto const& line : metrics) { reached = std::max<std::int64_t>(reached, line.value("step", 0)); }
      CHECK((reached == 0 || !found.empty()));
      CHECK((found.empty() || found.back().step == reached));
    }
    auto const resumed = run_on_one_thread(finetune_llama, arguments(output.path()));
    CAPTURE(resumed.err);
    CHECK(resumed.status == 0);
    CHECK(weights_of(output.path()) == expected);
  }
  int const runs = stopped + before + ended;
  MESSAGE(runs, " runs: ", stopped, " stopped, ", before, " ended before they began or when they were done, ",
          ended, " had ended");
  CHECK(stopped >= all / 4);
}

}  // namespace
