// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/shared.hpp>
#include <superoffload/core/error.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/fault_case.hpp"
#include "support/rank_fault.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

namespace {

using namespace superoffload;

using test::fault;

// In processes, at random points: before an operation, while operations are queued, on the stream's own
// thread, between pieces of a large one, and while the others are on the host.
TEST_CASE("when a rank ends, all others end with a message that names it") {
  std::mt19937 random{7};
  // Of a process that ends, its ThreadSanitizer says nothing.
  int const cases = test::under_thread_sanitizer ? 16 : test::in_long_tests(400, 80);
  std::array<int, 5> committed{};
  for (int i = 0; i < cases; ++i) {
    int const ranks = 2 + i % 3;
    int const culprit = static_cast<int>(random()) % ranks;
    int const victim = culprit < 0 ? culprit + ranks : culprit;
    // A hang costs the patience each time.
    auto const what = i % 8 == 7 ? (i % 16 == 7 ? fault::stops : fault::hangs) : static_cast<fault>(i % 3);
    int const step = static_cast<int>(random() % 12);
    int const phase = static_cast<int>(random() % 4);
    ++committed[static_cast<std::size_t>(what)];
    test::processes groups;
    groups.stops = what == fault::stops || what == fault::hangs ? victim : -1;
    groups.settings.patience = std::chrono::milliseconds{groups.stops >= 0 ? 400 : 60000};
    CAPTURE(i);
    CAPTURE(victim);
    CAPTURE(step);
    CAPTURE(phase);
    test::fault_case const injected{"F16"};
    auto const outcomes = groups.run(ranks, [=](auto& device, auto& group) {
      std::size_t const count = 3000;  // several pieces
      cpu::stream compute{device};
      cpu::stream exchange{device};
      cpu::event ready{device};
      auto const all = count * static_cast<std::size_t>(group.ranks());
      conformance::array<cpu::device, float> from{device, exchange, std::vector<float>(all, 1.0F)};
      conformance::array<cpu::device, float> to{device, exchange, std::vector<float>(count)};
      comm::abort_on_exception const guard{group};
      auto const at = [&](int here, int now) {
        if (group.rank() == victim && now == step && here == phase) {
          commit(what);
        }
      };
      for (int now = 0;; ++now) {
        at(0, now);
        group.queue(exchange,
                    comm::reduce_scatter<float>{from.data(), to.data(), static_cast<std::int64_t>(count)});
        if (group.rank() == victim && now == step && phase == 1) {
          exchange.enqueue([=] { commit(what); });
        }
        group.queue(exchange, comm::all_gather{to.data(), from.data(), count * sizeof(float)});
        at(2, now);
        exchange.record(ready);
        compute.wait(ready);
        compute.synchronize();
        group.barrier();
        at(3, now);
      }
    });
    for (int r = 0; r < ranks; ++r) {
      auto const& said = outcomes[static_cast<std::size_t>(r)];
      CAPTURE(r);
      CAPTURE(said);
      if (r != victim) {
        CHECK(said.find(concat("rank ", victim, " ")) == 0);
      } else if (what == fault::throws) {
        CHECK(said == "the disk is gone");
      } else {
        CHECK(said == "ended");
      }
    }
  }
  for (int const n : committed) { CHECK(n >= cases / 16); }
}

}  // namespace
