// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Memory that the system refuses to the real program, at any allocation from the first to the last. Of device
// memory, at every allocation: tests/train/scarce_memory_test.cpp.
#include "examples/rejection.hpp"
#include "support/fault_case.hpp"

#include <random>
#include <set>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;

outcome run_with(std::vector<std::string> const& arguments, char const* fault, fs::path const& count,
                 fs::path const& fired) {
  return program{finetune_llama, last_of_each(arguments),
                 [&] {
                   ::setenv("SUPEROFFLOAD_NUM_THREADS", "2", 1);
                   ::setenv("SUPEROFFLOAD_ALLOCATION_COUNT", count.c_str(), 1);
                   ::setenv("SUPEROFFLOAD_ALLOCATION_FIRED", fired.c_str(), 1);
                   if (fault != nullptr) {
                     ::setenv("SUPEROFFLOAD_ALLOCATION_FAULT", fault, 1);
                   }
                   ::setenv("LD_PRELOAD", SUPEROFFLOAD_ALLOCATION_SHIM, 1);
                   ::alarm(60);
                 }}
      .wait();
}

TEST_CASE("memory that is refused at any allocation is exit code 3 and a sentence, or costs nothing") {
  scratch_directory const scratch;
  auto const output = scratch.path() / "output";
  auto const arguments = on_few_rows(output, {"--lr", "1e-3", "--dtype", "bf16", "--max_steps", "2",
                                              "--save_steps", "1", "--save_total_limit", "1"});
  auto const count = scratch.path() / "count", fired = scratch.path() / "fired";
  auto const whole = run_with(arguments, nullptr, count, fired);
  CAPTURE(whole.err);
  REQUIRE(whole.status == 0);
  auto const expected = weights_of(output);
  auto const all = std::stol(contents_of(count));
  REQUIRE(all > 1000);

  // Those of the start and of the end one by one, the others spread: most are of reading the data.
  std::set<long> places;
  long const edge = in_long_tests(600L, 12L), spread = in_long_tests(1200L, 24L);
  std::mt19937_64 random{3};
  for (long i = 0; i < edge; ++i) {
    places.insert(i);
    places.insert(all - 1 - i);
  }
  for (long i = 0; i < spread; ++i) {
    places.insert(static_cast<long>(random() % static_cast<std::uint64_t>(all)));
  }
  long refused = 0, without_effect = 0;
  for (auto const at : places) {
    for (int const lasting : {0, 1}) {
      CAPTURE(at);
      CAPTURE(lasting);
      fault_case const injected{"F8"};
      fs::remove_all(output);
      fs::remove(fired);
      auto const done = run_with(arguments, concat(at, ',', lasting).c_str(), count, fired);
      CAPTURE(done.err);
      if (done.status == 0) {
        CHECK(weights_of(output) == expected);
        without_effect += fs::exists(fired);
      } else {
        CHECK(fs::exists(fired));
        check_failure(done, exit_code::cannot_fit, {});
      }
      refused += fs::exists(fired);
      if (fs::exists(output)) {  // what was saved is whole
        auto const resumable = run_on_one_thread(finetune_llama, joined(arguments, {"--resume", "auto"}));
        CAPTURE(resumable.err);
        CHECK(resumable.status == 0);
        CHECK(weights_of(output) == expected);
      }
    }
  }
  MESSAGE(all, " allocations; refused: ", refused, ", of them without effect: ", without_effect);
  CHECK(refused >= static_cast<long>(places.size()));
}

}  // namespace
