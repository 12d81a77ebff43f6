// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/offload/state/adam_workers.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

/// A host of `nodes` memory nodes, with this process's processors on the last one.
cpu::topology host(int nodes) {
  cpu::topology h;
  for (int i = 0; i < nodes; ++i) {
    h.nodes.push_back(
        {.id = i, .bytes = 1, .distances = std::vector<int>(static_cast<std::size_t>(nodes), 20)});
    h.nodes.back().distances[static_cast<std::size_t>(i)] = 10;
  }
  for (int const id : cpu::allowed_processors()) {
    h.processors.push_back({.id = id, .core = id, .node = nodes - 1});
  }
  return h;
}

TEST_CASE("memory is bound near the processors if there is more than one node") {
  offload::adam_workers near{host(3), 0, 1, ""};
  CHECK(near.threads().size() == 1);
  CHECK(near.node() == 2);
  CHECK(near.notes().empty());
  CHECK_FALSE(offload::adam_workers{host(1), 0, 1, ""}.node().has_value());
}

TEST_CASE("an unavailable resource group costs a note") {
  offload::adam_workers const workers{host(1), -1, 1, "superoffload-test-group"};
  if (workers.notes().empty()) {
    MESSAGE("this host has resctrl, and permits it");
  } else {
    REQUIRE(workers.notes().size() == 1);
    CHECK(workers.notes()[0].find("resource group 'superoffload-test-group'") != std::string::npos);
  }
  CHECK_THROWS_AS((offload::adam_workers{host(1), -1, 1, "../escape"}), error);
}

TEST_CASE("a missing processor costs a note") {
  auto h = host(1);
  h.processors = {{.id = 8000, .core = 8000}};
  offload::adam_workers workers{h, -1, 1, ""};
  CHECK(workers.threads().size() == 1);
  REQUIRE(workers.notes().size() == 1);
  CHECK(workers.notes()[0].find("8000") != std::string::npos);
  int worked = 0;
  workers.threads().run([&](int, int) { ++worked; });
  CHECK(worked == 1);
}

TEST_CASE("the idle callback runs while the threads work, and its exception is thrown after their end") {
  offload::adam_workers workers{host(1), -1, 1, ""};
  std::vector<offload::segment> const segments{{.offset = 0, .count = 7, .trainable = true}};
  struct callback_state {
    std::atomic<bool> called{false};
    bool fails = false;
  } mine;
  workers.meanwhile({&mine, [](void* self) {
                       auto& p = *static_cast<callback_state*>(self);
                       p.called = true;
                       expect(!p.fails, exit_code::internal, "not now");
                     }});
  std::atomic<std::int64_t> worked{0};
  auto const work = [&](offload::segment const& s) {
    while (!mine.called) {}  // ends only if the callback runs meanwhile
    worked += s.count;
  };
  workers.each_piece(7, segments, work);
  CHECK(worked == 7);
  mine.called = false;
  mine.fails = true;
  CHECK_THROWS_WITH_AS(workers.each_piece(7, segments, work), "not now", error);
  CHECK(worked == 14);
  workers.meanwhile({});
  workers.each_piece(7, segments, work);
  CHECK(worked == 21);
}

}  // namespace
