// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/train/planning/host_share.hpp>
#include <superoffload/train/planning/measure_peers.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"

#include <cmath>

namespace {

using namespace superoffload;
using conformance::require;

/// Checks the numbers that a rank plans with: each is valid and the same on all ranks.
auto measures_and_agrees(train::peer_probe const& p) {
  return [p](auto& device, auto& group) {
    offload::machine m;
    m.peers = train::measure_peers<bfloat16>(device, group, p);
    comm::host_group const ranks{group};
    auto const peers = train::slowest_of(ranks, m).peers;
    require(peers.known() && std::isfinite(peers.all_gather) && std::isfinite(peers.reduce_scatter),
            "rates of ", peers.all_gather, " and ", peers.reduce_scatter);
    require(peers.all_gather <= m.peers.all_gather && peers.reduce_scatter <= m.peers.reduce_scatter &&
                peers.latency >= m.peers.latency,
            "not the slowest rank's");
    require(peers.ranks_of_host == p.ranks_of_host, "ranks of a host: ", peers.ranks_of_host);
    for (auto const& of_hosts : {peers.within_hosts, peers.between_hosts}) {
      bool const measured =
          of_hosts.all_gather > 0.0 && of_hosts.reduce_scatter > 0.0 && of_hosts.latency > 0.0;
      require(measured == (p.ranks_of_host > 0), "rates of hosts: ", of_hosts.all_gather);
    }
    require(peers.latency > 0.0 && peers.latency < 1.0, "a latency of ", peers.latency);
    for (double const share : {peers.beside_compute, peers.compute_beside}) {
      require(share > 0.0 && share <= 1.0, "a share of ", share);
    }
    comm::expect_same(group, "the machine",
                      concat(peers.all_gather, " ", peers.reduce_scatter, " ", peers.latency, " ",
                             peers.beside_compute, " ", peers.compute_beside));
    require(device.bytes_in_use(memory::device) == 0, "memory is left behind");
  };
}

TEST_CASE("ranks measure the rates of collectives and agree on them") {
  for (int const ranks : {2, 3}) {
    CAPTURE(ranks);
    train::peer_probe const p{.shard = 100'000, .rows = 200, .inner = 64, .columns = 128};
    conformance::all_succeeded(
        test::threads_of_a_process{{.piece_bytes = 1U << 18}}.run(ranks, measures_and_agrees(p)));
    conformance::all_succeeded(test::processes{{.piece_bytes = 1U << 18}}.run(ranks, measures_and_agrees(p)));
  }
}

TEST_CASE("the rates within hosts and between them are measured, too") {
  for (int const of_host : {1, 2}) {
    train::peer_probe const p{
        .shard = 10'000, .rows = 20, .inner = 64, .columns = 128, .ranks_of_host = of_host};
    conformance::all_succeeded(
        test::threads_of_a_process{{.piece_bytes = 1U << 18}}.run(4, measures_and_agrees(p)));
  }
}

TEST_CASE("very small units have rates, too") {
  conformance::all_succeeded(test::threads_of_a_process{}.run(2, measures_and_agrees({.shard = 1})));
}

TEST_CASE("a missing rank ends the measurement of the others") {
  auto const outcomes = test::threads_of_a_process{}.run(2, [](auto& device, auto& group) {
    expect(group.rank() == 0, exit_code::device, "this one has no memory");
    static_cast<void>(train::measure_peers<float>(device, group, {.shard = 1000}));
  });
  CHECK(outcomes[1] == "this one has no memory");
  CHECK(outcomes[0].find("rank 1") != std::string::npos);
}

}  // namespace
