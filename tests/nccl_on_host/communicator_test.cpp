// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// nccl::communicator itself, on GPUs and an NCCL that are simulated by threads of the host.
#include "conformance/communicator.hpp"

#include <superoffload/nccl/communicator.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

extern "C" void break_links_of(int rank);
extern "C" void launch_within(std::chrono::milliseconds time);
extern "C" int last_max_ctas();

namespace {

using namespace superoffload;
using namespace std::chrono_literals;

template <bool compares_first, std::size_t sum_part_bytes = gpu::sum_part_bytes>
struct rank_on_host {
  template <class Body>
  static void run(comm::shared_segment& shared, int rank, Body& body) {
    cuda::device own{rank};
    nccl::communicator group{
        shared, rank, own, {.compares_first = compares_first, .sum_part_bytes = sum_part_bytes}};
    body(own, group);
  }
};
using ranks_on_host = test::threads_of<rank_on_host<false>>;

TEST_CASE("the communicator computes the collectives' results with NCCL's calls") {
  ranks_on_host groups;
  for (int const ranks : {1, 2, 3, 4}) {
    conformance::communicator_computes_what_it_says(groups, ranks);
    conformance::communicator_divides_its_ranks(groups, ranks);
    conformance::communicator_agrees_on_the_host(groups, ranks);
    conformance::communicator_keeps_the_order_of_streams(groups, ranks);
  }
}

TEST_CASE("sums are computed in pieces that fit the memory for the other ranks' parts") {
  test::threads_of<rank_on_host<false, 4096>> groups;
  for (int const ranks : {1, 2, 3}) {
    conformance::communicator_computes_what_it_says(groups, ranks);
    conformance::all_succeeded(groups.run(ranks, [ranks](auto&, auto& group) {
      auto const taken = [&](std::int64_t count) {
        return group.scratch_bytes(comm::reduce_scatter<float>{.count = count});
      };
      auto const others = static_cast<std::size_t>(ranks - 1);
      conformance::require(taken(1) == others * 256, taken(1), " bytes for one element");
      conformance::require(taken(1024) == others * 4096 && taken(1 << 20) == taken(1024), taken(1 << 20),
                           " bytes for many");
    }));
  }
}

/// Ranks on hosts of `of_host` ranks each.
template <int of_host, std::size_t sum_part_bytes>
struct rank_of_hosts {
  template <class Body>
  static void run(comm::shared_segment& shared, int rank, Body& body) {
    cuda::device own{rank};
    nccl::communicator group{shared, rank, own, {.sum_part_bytes = sum_part_bytes, .ranks_of_host = of_host}};
    body(own, group);
  }
};

/// The ranks of each host are summed, then the hosts, then what was there; it is rounded once.
template <element From, element To>
void sums_over_hosts(cuda::device& device, nccl::communicator& group, int of_host, std::uint32_t seed,
                     std::size_t count) {
  cuda::stream stream{device};
  auto const ranks = static_cast<std::size_t>(group.ranks());
  auto const own = static_cast<std::size_t>(group.rank());
  std::vector<std::vector<From>> all;
  for (int r = 0; r < group.ranks(); ++r) {
    all.push_back(conformance::numbers_of<From>(r, seed, ranks * count));
  }
  conformance::array<cuda::device, From> const from{device, stream, all[own]};
  for (bool const accumulate : {false, true}) {
    auto const before = conformance::numbers_of<To>(group.rank() + 50, seed, count);
    conformance::array<cuda::device, To> to{device, stream, before};
    comm::reduce_scatter<From, To> sum{.from = from.data(),
                                       .to = to.data(),
                                       .count = static_cast<std::int64_t>(count),
                                       .accumulate = accumulate};
    buffer<cuda::device> const scratch{device, group.scratch_bytes(sum)};
    sum.scratch = scratch.data();
    group.queue(stream, sum);
    std::vector<To> expected;
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<wide<From>> hosts;
      for (std::size_t r = 0; r < ranks; ++r) {
        auto const value = static_cast<wide<From>>(all[r][own * count + i]);
        if (r % static_cast<std::size_t>(of_host) == 0) {
          hosts.push_back(value);
        } else {
          hosts.back() += value;
        }
      }
      expected.push_back(conformance::sum_of<To>(hosts, accumulate ? &before[i] : nullptr));
    }
    conformance::require(to.holds(expected), "a sum of ", count, " ", name_of(dtype_of<From>), " to ",
                         name_of(dtype_of<To>), accumulate ? ", added" : "");
  }
}

TEST_CASE_TEMPLATE("ranks of several hosts are summed within their hosts first", Ranks,
                   test::threads_of<rank_of_hosts<2, gpu::sum_part_bytes>>,
                   test::threads_of<rank_of_hosts<2, 4096>>, test::threads_of<rank_of_hosts<3, 4096>>) {
  constexpr int of_host = std::is_same_v<Ranks, test::threads_of<rank_of_hosts<3, 4096>>> ? 3 : 2;
  for (int const hosts : {1, 2, 3}) {
    Ranks groups;
    CAPTURE(hosts);
    conformance::all_succeeded(groups.run(hosts * of_host, [](auto& device, auto& group) {
      std::uint32_t seed = 1;
      for (std::size_t const count : {0UL, 1UL, 64UL, 1000UL, 4097UL}) {
        sums_over_hosts<float, float>(device, group, of_host, seed++, count);
        sums_over_hosts<float, bfloat16>(device, group, of_host, seed++, count);
        sums_over_hosts<bfloat16, bfloat16>(device, group, of_host, seed++, count);
        sums_over_hosts<bfloat16, float>(device, group, of_host, seed++, count);
        sums_over_hosts<double, double>(device, group, of_host, seed++, count);
      }
    }));
    conformance::communicator_agrees_on_the_host(groups, hosts * of_host);
  }
}

TEST_CASE("hosts with different numbers of ranks are refused") {
  test::threads_of<rank_of_hosts<3, 4096>> groups;
  for (auto const& said : groups.run(4, [](auto&, auto&) {})) {
    CHECK(said.find("4 ranks, 3 on each host: expected as many on every host") != std::string::npos);
  }
}

TEST_CASE("a communicator refuses to sum zero bytes at a time") {
  for (std::size_t const bytes : {0U, 4U, 4100U}) {
    comm::shared_segment shared{{.ranks = 1}};
    cuda::device own{0};
    CHECK_THROWS_AS((nccl::communicator{shared, 0, own, {.sum_part_bytes = bytes}}), error);
  }
}

TEST_CASE("ranks that communicate by NCCL end together") {
  test::threads_of<rank_on_host<true>> groups;  // some ranks queue other operations
  for (int const ranks : {2, 4}) {
    for (int const culprit : {0, ranks - 1}) {
      conformance::communicator_ends_together(groups, ranks, culprit);
    }
  }
}

/// Reads data that no other rank has sent.
template <class Group>
void wait_for(cuda::device& device, Group& group) {
  cuda::stream stream{device};
  conformance::array<cuda::device, std::uint8_t> all{
      device, stream, conformance::bytes(static_cast<std::size_t>(group.ranks()))};
  comm::abort_on_exception const guard{group};
  group.queue(stream, comm::all_gather{all.data() + group.rank(), all.data(), 1});
  stream.synchronize();
  fail(exit_code::internal, "a result");
}

TEST_CASE("a wait for a device whose operation was ended throws the reason") {
  ranks_on_host groups;
  auto const outcomes = groups.run(2, [](auto& device, auto& group) {
    if (group.rank() == 1) {
      group.barrier();
      fail(exit_code::io_failure, "the disk is gone");  // and leaves
    }
    group.barrier();
    wait_for(device, group);
  });
  CHECK(outcomes[0].find("rank 1 has left before all_gather of 1 bytes (call 1") == 0);
}

TEST_CASE("a stream outlives the operations that NCCL has yet to launch on it when its group ends") {
  ranks_on_host groups;
  auto const outcomes = groups.run(2, [](auto& device, auto& group) {
    group.barrier();  // its members have launched their first operations
    launch_within(200ms);
    std::thread other{[&] {
      std::this_thread::sleep_for(50ms);
      group.abort("the disk is full");
    }};
    try {
      wait_for(device, group);
    } catch (...) {
      other.join();
      throw;
    }
  });
  launch_within(0ms);
  for (auto const& said : outcomes) {
    CAPTURE(said);
    CHECK(said.find("failed: the disk is full") != std::string::npos);
  }
}

TEST_CASE("an asynchronous error of NCCL ends all ranks, with the rank's name") {
  ranks_on_host groups;
  auto const outcomes = groups.run(2, [](auto& device, auto& group) {
    group.barrier();
    if (group.rank() == 0) {
      break_links_of(0);
      while (true) { group.check(); }
    }
    wait_for(device, group);
  });
  break_links_of(-1);
  for (auto const& said : outcomes) {
    CAPTURE(said);
    CHECK(said == "rank 0 failed: NCCL failed in an exchange: remote error: the link is down");
  }
}

TEST_CASE("a live rank that never queues the operation is named after the patience") {
  ranks_on_host groups;
  groups.settings.patience = 1s;
  auto const outcomes = groups.run(2, [](auto& device, auto& group) {
    if (group.rank() == 0) {
      wait_for(device, group);
    }
    while (true) { group.check(); }
  });
  CHECK(outcomes[0].find("rank 1 did not come to all_gather of 1 bytes (call 1) within 1000 ms") == 0);
  CHECK(outcomes[1] == outcomes[0]);
}

TEST_CASE("ranks with the same GPU get an error, on both") {
  struct on_the_first {
    static void run(comm::shared_segment& shared, int rank, int&) {
      cuda::device own{0};
      nccl::communicator const group{shared, rank, own};
    }
  };
  test::threads_of<on_the_first> groups;
  for (auto const& said : groups.run(2, 0)) {
    CHECK(said == "ranks 0 and 1 have the same GPU (0000:00:00.0): expected one for each rank");
  }
}

TEST_CASE("NCCL gets the limit of thread blocks, if one is set") {
  struct with_options {
    static void run(comm::shared_segment& shared, int rank, nccl::options const& o) {
      cuda::device own{rank};
      nccl::communicator const group{shared, rank, own, o};
    }
  };
  test::threads_of<with_options> groups;
  conformance::all_succeeded(groups.run(2, nccl::options{.max_ctas = 8}));
  CHECK(last_max_ctas() == 8);
  conformance::all_succeeded(groups.run(2, nccl::options{}));
  CHECK(last_max_ctas() < 0);  // NCCL chooses
  for (auto const& said : groups.run(2, nccl::options{.max_ctas = -1})) {
    CAPTURE(said);
    CHECK(said.find("collectives in -1 thread blocks: expected 1 or more") != std::string::npos);
  }
}

TEST_CASE("the program that starts ranks gets an error if there are fewer GPUs") {
  nccl::expect_gpus(8);
  try {
    nccl::expect_gpus(9);
    FAIL("a ninth GPU");
  } catch (error const& e) {
    CHECK(e.code() == exit_code::device);
    CHECK(std::string{e.what()}.find("this host has 8 GPUs for 9 ranks: expected one for each") == 0);
  }
}

TEST_CASE("a rank has the GPU of its local rank, or the only visible one") {
  comm::environment run;
  run.rank = 9;
  run.local_rank = 1;
  run.local_ranks = 8;
  CHECK(nccl::gpu_of(run) == 1);
  run.rank = 8;
  run.local_rank = 8;
  run.local_ranks = 9;
  try {
    static_cast<void>(nccl::gpu_of(run));
    FAIL("a ninth GPU");
  } catch (error const& e) {
    CHECK(e.code() == exit_code::device);
    CHECK(std::string{e.what()}.find("rank 8 is number 8 on its host, which has 8 GPUs for 9 ranks") == 0);
  }
}

}  // namespace
