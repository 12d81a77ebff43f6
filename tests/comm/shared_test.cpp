// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/shared.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"

namespace {

using namespace superoffload;

static_assert(comm::communicator<test::group_of_host, cpu::device>);

TEST_CASE_TEMPLATE("ranks of one host compute the collectives' results", Group, test::threads_of_a_process,
                   test::processes) {
  Group groups;
  for (int const ranks : test::numbers_of_ranks()) {
    conformance::communicator_computes_what_it_says(groups, ranks);
    conformance::communicator_divides_its_ranks(groups, ranks);
    conformance::communicator_agrees_on_the_host(groups, ranks);
    conformance::communicator_keeps_the_order_of_streams(groups, ranks);
  }
  groups.settings.piece_bytes = 1U << 20;
  conformance::communicator_computes_what_it_says(groups, 2);
}

TEST_CASE_TEMPLATE("ranks of one host end together", Group, test::threads_of_a_process, test::processes) {
  Group groups;
  for (int const ranks : {2, 4}) {
    for (int const culprit : {0, ranks - 1}) {
      conformance::communicator_ends_together(groups, ranks, culprit);
    }
  }
}

}  // namespace
