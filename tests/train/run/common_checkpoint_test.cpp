// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/agreement.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/train/run/common_checkpoint.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/scratch_directory.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

/// A checkpoint without state, so that every rank can read all of it.
void save(std::filesystem::path const& root, std::int64_t step, std::string const& state = "{}") {
  io::save_checkpoint(root, step, state, {});
}

struct found {
  std::int64_t step = -1;
  std::vector<std::string> rejected;
};

/// What two ranks find, each in its root. `unreadable`: a step that the second one cannot take.
found newest(test::scratch_directory const (&roots)[2], std::int64_t unreadable = -1) {
  test::threads_of_a_process groups;
  found all[2];
  conformance::all_succeeded(groups.run(2, [&](auto&, auto& group) {
    comm::host_group const ranks{group};
    auto& own = all[group.rank()];
    auto const newest = train::newest_on_all_ranks(
        ranks, roots[group.rank()].path(), [&](std::string const& why) { own.rejected.push_back(why); },
        [&](io::checkpoint_reader const& checkpoint) {
          comm::together(ranks, [&] {
            expect(group.rank() == 0 || checkpoint.step() != unreadable, exit_code::bad_input, "unreadable");
          });
        });
    own.step = newest ? newest->step() : -1;
  }));
  CHECK(all[0].step == all[1].step);
  CHECK(all[0].rejected == all[1].rejected);
  return all[0];
}

TEST_CASE("ranks with directories of their own resume from the newest checkpoint that all have") {
  test::scratch_directory const roots[2];
  CHECK(newest(roots).step == -1);
  CHECK(newest(roots).rejected.empty());
  for (auto const& root : roots) {
    for (std::int64_t const step : {3, 5}) { save(root.path(), step); }
  }
  CHECK(newest(roots).step == 5);
  CHECK(newest(roots).rejected.empty());
  save(roots[0].path(), 9);
  save(roots[1].path(), 7);
  auto const both = newest(roots);
  CHECK(both.step == 5);
  REQUIRE(both.rejected.size() == 2);
  CHECK(both.rejected[0].find("rank 1: ") == 0);
  CHECK(both.rejected[0].find("checkpoint-9/manifest.json") != std::string::npos);
  CHECK(both.rejected[1].find("checkpoint-7/manifest.json") != std::string::npos);
  CHECK(newest(roots, 5).step == 3);
}

TEST_CASE("a checkpoint of the same step with another manifest is not the same checkpoint") {
  test::scratch_directory const roots[2];
  for (auto const& root : roots) { save(root.path(), 3); }
  save(roots[0].path(), 5, "{}");
  save(roots[1].path(), 5, "{\"of\": \"another attempt\"}");
  auto const found = newest(roots);
  CHECK(found.step == 3);
  REQUIRE(found.rejected.size() == 1);
  CHECK(found.rejected[0].find("ranks differ in the manifest of the checkpoint of step 5") == 0);

  test::threads_of_a_process groups;
  auto const outcomes = groups.run(2, [&](auto&, auto& group) {
    train::open_on_all_ranks(comm::host_group{group}, roots[group.rank()].path() / "checkpoint-5");
  });
  for (auto const& outcome : outcomes) { CHECK(outcome.find("ranks differ in the manifest of") == 0); }
}

TEST_CASE("ranks of one directory, and one alone, find what is there") {
  test::scratch_directory const root;
  save(root.path(), 4);
  auto const alone = train::newest_on_all_ranks(
      {}, root.path(), [](std::string const& why) { FAIL(why); }, &io::checkpoint_reader::verify);
  REQUIRE(alone);
  CHECK(alone->step() == 4);
  CHECK_THROWS_AS(train::open_on_all_ranks({}, root.path() / "checkpoint-6"), error);
}

}  // namespace
