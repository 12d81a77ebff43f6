// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/run/output_place.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/scratch_directory.hpp"

#include <filesystem>
#include <string>

namespace {

using namespace superoffload;

TEST_CASE("ranks of one host have one place, which the first one keeps") {
  for (bool const on_each_host : {false, true}) {
    CAPTURE(on_each_host);
    test::threads_of_a_process groups;
    conformance::all_succeeded(groups.run(3, [&](auto&, auto& group) {
      auto const place = train::place_of_output(comm::host_group{group}, on_each_host);
      conformance::require(place.keeper == 0 && place.host.empty() && place.share == 1.0, "another place");
    }));
  }
  CHECK(train::place_of_output({}, true).keeper == 0);
}

TEST_CASE("keepers of one directory are told apart from keepers of two") {
  test::scratch_directory const roots[2];
  auto const outcomes_of = [&](bool apart) {
    test::threads_of_a_process groups;
    return groups.run(4, [&](auto&, auto& group) {
      int const host = group.rank() / 2;
      train::output_place const place{.keeper = 2 * host, .host = concat("host ", host), .share = 0.5};
      train::expect_apart(comm::host_group{group}, place, roots[apart ? host : 0].path() / "new/output");
    });
  };
  conformance::all_succeeded(outcomes_of(true));
  for (auto const& outcome : outcomes_of(false)) {
    CHECK(outcome.find("new/output: is the directory of rank 2 as well") != std::string::npos);
  }
  for (auto const& root : roots) { CHECK(std::filesystem::is_empty(root.path() / "new/output")); }
}

}  // namespace
