// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/communicator.hpp"

#include <superoffload/nccl/communicator.hpp>

#include <doctest/doctest.h>

#include "nccl/groups.hpp"
#include "support/fault_case.hpp"
#include "support/rank_fault.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <thread>

namespace {

using namespace superoffload;
using namespace std::chrono_literals;

TEST_SUITE("one_gpu") {
  TEST_CASE("a single GPU computes the collectives' results") {
    test::gpu_processes groups;
    conformance::communicator_computes_what_it_says(groups, 1);
    conformance::communicator_divides_its_ranks(groups, 1);
    conformance::communicator_agrees_on_the_host(groups, 1);
    conformance::communicator_keeps_the_order_of_streams(groups, 1);
  }

  TEST_CASE("ranks with the same GPU get an error, on both") {
    struct on_the_first {
      static void run(comm::shared_segment& shared, int rank, int&) {
        cuda::device own{0};
        nccl::communicator const group{shared, rank, own};
      }
    };
    test::processes_of<on_the_first> groups;
    for (auto const& said : groups.run(2, 0)) {
      CAPTURE(said);
      CHECK(said.find("ranks 0 and 1 have the same GPU (") == 0);
    }
  }
}

/// The other ranks end in time, with a message that names the victim.
void check_end_of_rank(test::fault what, int victim, int phase) {
  using test::fault;
  bool const lives = what == fault::stops || what == fault::hangs;
  auto const bound = lives ? 30s : 10s;
  test::fault_case const injected{"F16"};
  test::gpu_processes groups;
  groups.stops = lives ? victim : -1;
  if (lives) {
    groups.settings.patience = 15s;
  }
  CAPTURE(static_cast<int>(what));
  CAPTURE(phase);
  CAPTURE(victim);
  auto const outcomes = groups.run(test::gpus(), [=](auto& device, auto& group) {
    constexpr std::size_t count = std::size_t{1} << 20;
    cuda::stream compute{device};
    cuda::stream exchange{device};
    cuda::event ready{device};
    auto const all = count * static_cast<std::size_t>(group.ranks());
    buffer<cuda::device> const from{device, all * sizeof(float)};
    buffer<cuda::device> const to{device, count * sizeof(float)};
    comm::reduce_scatter<float> sum{.from = from.template as<float>(),
                                    .to = to.template as<float>(),
                                    .count = static_cast<std::int64_t>(count)};
    buffer<cuda::device> const scratch{device, group.scratch_bytes(sum)};
    sum.scratch = scratch.data();
    comm::abort_on_exception const guard{group};
    auto const at = [&](int here, int now) {
      if (group.rank() == victim && now == 7 && here == phase) {
        commit(what);
      }
    };
    auto last = std::chrono::steady_clock::now();
    try {
      for (int now = 0;; ++now) {
        at(0, now);
        group.queue(exchange, sum);
        at(1, now);
        group.queue(exchange, comm::all_gather{to.data(), from.data(), count * sizeof(float)});
        exchange.record(ready);
        compute.wait(ready);
        at(2, now);
        compute.synchronize();
        last = std::chrono::steady_clock::now();
      }
    } catch (error const& e) {
      bool const late = std::chrono::steady_clock::now() - last > bound;
      fail(e.code(), e.what(), late ? ", too late" : "");
    }
  });
  for (int r = 0; r < test::gpus(); ++r) {
    auto const& said = outcomes[static_cast<std::size_t>(r)];
    CAPTURE(r);
    CAPTURE(said);
    if (r != victim) {
      CHECK(said.find(concat("rank ", victim, " ")) == 0);
      CHECK(said.find("too late") == std::string::npos);
    } else {
      CHECK(said == (what == fault::throws ? "the disk is gone" : "ended"));
    }
  }
}

TEST_SUITE("gpus") {
  TEST_CASE_TEMPLATE("ranks with a GPU each compute the collectives' results", Group, test::gpu_processes,
                     test::gpu_threads) {
    Group groups;
    for (int ranks = 2; ranks <= test::gpus(); ++ranks) {
      conformance::communicator_computes_what_it_says(groups, ranks);
      conformance::communicator_divides_its_ranks(groups, ranks);
      conformance::communicator_agrees_on_the_host(groups, ranks);
      conformance::communicator_keeps_the_order_of_streams(groups, ranks);
    }
  }

  TEST_CASE("processes with a GPU each end together") {
    test::processes_on_gpus<true> groups;  // some ranks queue other operations
    conformance::communicator_ends_together(groups, test::gpus(), 0);
  }

  TEST_CASE("threads with a GPU each end together") {
    test::threads_on_gpus<true> groups;
    conformance::communicator_ends_together(groups, test::gpus(), 1);
  }

  TEST_CASE("a group ends while NCCL launches on streams that are then destroyed") {
    for (int const turn : {0, 1, 2}) {
      CAPTURE(turn);
      test::gpu_processes groups;
      auto const outcomes = groups.run(test::gpus(), [](auto& device, auto& group) {
        group.barrier();
        std::thread other{[&] {
          std::this_thread::sleep_for(20ms);
          group.abort("enough");
        }};
        try {
          cuda::stream stream{device};
          buffer<cuda::device> const all{device, static_cast<std::size_t>(group.ranks())};
          comm::abort_on_exception const guard{group};
          while (true) {  // it is nearly always inside a call of NCCL
            group.queue(stream, comm::all_gather{all.template as<std::byte>() + group.rank(), all.data(), 1});
          }
        } catch (...) {
          other.join();
          throw;
        }
      });
      for (auto const& said : outcomes) {
        CAPTURE(said);
        CHECK(said.find(" failed: enough") != std::string::npos);
      }
    }
  }

  TEST_CASE("when a rank with a GPU ends, all others end with a message that names it") {
    using test::fault;
    for (int phase = 0; phase < 3; ++phase) {
      for (int victim = 0; victim < test::gpus(); ++victim) {
        if (!test::long_tests() && victim != phase % 2) {
          continue;
        }
        for (auto const what : {fault::killed, fault::exits, fault::throws}) {
          check_end_of_rank(what, victim, phase);
        }
        if (phase == 1) {  // these cost the patience
          check_end_of_rank(fault::stops, victim, phase);
          check_end_of_rank(fault::hangs, victim, phase);
        }
      }
    }
  }
}

}  // namespace
