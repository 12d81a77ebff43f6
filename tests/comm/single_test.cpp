// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/single.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>

#include <doctest/doctest.h>

#include "conformance/communicator.hpp"

#include <exception>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

static_assert(comm::communicator<comm::single_communicator<cpu::device>, cpu::device>);

struct alone {
  template <class Body>
  std::vector<std::string> run(int, Body body) {
    cpu::device own{1};
    comm::single_communicator<cpu::device> group;
    try {
      body(own, group);
      return {""};
    } catch (std::exception const& e) { return {e.what()}; }
  }
};

TEST_CASE("a group of one computes the collectives' results") {
  alone group;
  conformance::communicator_computes_what_it_says(group, 1);
  conformance::communicator_divides_its_ranks(group, 1);
  conformance::communicator_agrees_on_the_host(group, 1);
  conformance::communicator_keeps_the_order_of_streams(group, 1);
}

TEST_CASE("a group of one that aborted stays so, with its first reason") {
  comm::single_communicator<cpu::device> group;
  group.abort("first");
  group.abort("second");
  for (int i = 0; i < 2; ++i) {
    try {
      group.check();
      CHECK(false);
    } catch (error const& e) {
      CHECK(e.code() == exit_code::rank_failed);
      CHECK(std::string{e.what()} == "rank 0 of 1 failed: first");
    }
  }
  CHECK_THROWS_AS(group.barrier(), error);
  int one = 1;
  CHECK_THROWS_AS(group.gather(&one, &one, sizeof one), error);
}

}  // namespace
