// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/host_group.hpp>
#include <superoffload/train/planning/host_share.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"

namespace {

using namespace superoffload;
using conformance::require;

constexpr std::size_t gib = std::size_t{1} << 30;

TEST_CASE("ranks of a host share its memory, and each has the reserve of a process") {
  for (bool const is_the_host : {false, true}) {
    CAPTURE(is_the_host);
    conformance::all_succeeded(test::threads_of_a_process{}.run(4, [=](auto&, auto& group) {
      offload::machine m;
      m.host = {.memory = 512 * gib, .reserve = 4 * gib, .cores = 64};
      m.device.memory = is_the_host ? 512 * gib : 140 * gib;
      m.device.is_the_host = is_the_host;
      auto const own = train::share_of_host(comm::host_group{group}, m);
      require(own.host.memory == 128 * gib && own.host.reserve == 4 * gib, "a reserve of ", own.host.reserve);
      require(own.device.memory == (is_the_host ? 128 : 140) * gib, "device memory ", own.device.memory);
      require(own.device.reserve == (is_the_host ? 4 * gib : 0), "a device's reserve of ",
              own.device.reserve);
      m.host.memory = 32 * gib;
      auto const small = train::share_of_host(comm::host_group{group}, m);
      require(small.host.memory == 8 * gib && small.host.reserve == gib / 2, "of a small host ",
              small.host.reserve);
    }));
  }
}

TEST_CASE("the ranks of each host are counted where all have as many") {
  CHECK(train::ranks_of_host(std::vector<std::size_t>{5, 5, 5}) == 0);
  CHECK(train::ranks_of_host(std::vector<std::size_t>{5, 5, 9, 9}) == 2);
  CHECK(train::ranks_of_host(std::vector<std::size_t>{5, 9, 7}) == 1);
  CHECK(train::ranks_of_host(std::vector<std::size_t>{5, 5, 9}) == 0);
  CHECK(train::ranks_of_host(std::vector<std::size_t>{5, 5, 9, 7}) == 0);
  CHECK(train::ranks_of_host(std::vector<std::size_t>{5, 5, 9, 9, 9, 9}) == 0);
  conformance::all_succeeded(test::threads_of_a_process{}.run(3, [=](auto&, auto& group) {
    require(train::ranks_of_host(comm::host_group{group}) == 0, "threads of one host are of several");
  }));
}

}  // namespace
