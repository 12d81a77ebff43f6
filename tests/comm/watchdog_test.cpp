// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Devices that communicate by themselves, simulated on the host.
#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/comm/watchdog.hpp>
#include <superoffload/core/error.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace superoffload;
using namespace std::chrono_literals;

/// Completes operations when the test says so.
struct device final : comm::queueing_device {
  std::atomic<std::uint64_t> done{0};
  std::atomic<bool> broken{false};
  std::atomic<int> aborted{0};

  std::uint64_t completed() override { return done; }
  std::string failure() override { return broken ? "the link is down" : ""; }
  void abort() noexcept override { ++aborted; }
};

/// A rank: its membership, its device and the operations queued there.
struct rank {
  comm::shared_membership member;
  device exchanging;
  std::uint64_t queued = 0;

  rank(comm::shared_segment& shared, int which) : member{shared, which} {}

  void queue(comm::watchdog& dog, std::uint64_t bytes = 8) {
    dog.expect({.what = comm::call::kind::all_gather, .count = bytes, .number = queued++});
  }
  /// Waits until the group fails; returns why, and whether the device was told.
  std::string wait_for_the_end() {
    while (true) {
      try {
        member.check();
      } catch (error const& e) {
        for (int i = 0; i < 500 && exchanging.aborted == 0; ++i) { std::this_thread::sleep_for(10ms); }
        return concat(std::string_view{e.what()}, exchanging.aborted == 1 ? "" : "; the device still waits");
      }
      std::this_thread::sleep_for(1ms);
    }
  }

  template <class Body>
  static void run(comm::shared_segment& shared, int which, Body& body) {
    rank own{shared, which};
    {
      comm::watchdog dog{own.member, own.exchanging};
      body(own, dog);
    }
    own.member.check();
  }
};

bool all_say(std::vector<std::string> const& outcomes, std::string_view part) {
  for (auto const& said : outcomes) {
    CAPTURE(said);
    CHECK(said.find(part) != std::string::npos);
  }
  return true;
}

TEST_CASE_TEMPLATE("a watchdog does not disturb ranks that do the same", Group, test::threads_of<rank>,
                   test::processes_of<rank>) {
  Group group;
  auto const outcomes = group.run(3, [](rank& own, comm::watchdog& dog) {
    for (int i = 0; i < 100; ++i) { own.queue(dog); }
    own.exchanging.done = 90;
    if (own.member.rank() == 1) {
      std::this_thread::sleep_for(100ms);
    }
    own.exchanging.done = 100;
  });
  for (auto const& said : outcomes) { CHECK(said == ""); }
}

TEST_CASE("a watchdog's destructor waits for queued operations") {
  test::threads_of<rank> group;
  std::atomic<bool> was_done{false};
  auto const outcomes = group.run(1, [&](rank& own, comm::watchdog& dog) {
    own.queue(dog);
    std::thread{[&] {
      std::this_thread::sleep_for(100ms);
      was_done = true;
      own.exchanging.done = 1;
    }}.detach();
  });
  CHECK(was_done);
  CHECK(outcomes[0] == "");
}

TEST_CASE_TEMPLATE("ranks that queue different operations are named", Group, test::threads_of<rank>,
                   test::processes_of<rank>) {
  Group group;
  auto const outcomes = group.run(3, [](rank& own, comm::watchdog& dog) {
    own.queue(dog);
    own.exchanging.done = 1;
    own.queue(dog, own.member.rank() == 1 ? 16 : 8);
    fail(exit_code::internal, own.wait_for_the_end());
  });
  all_say(outcomes, "rank 1 ");
  all_say(outcomes, "all_gather of 16 bytes (call 2)");
  all_say(outcomes, "ranks must make the same calls in the same order");
  for (auto const& said : outcomes) { CHECK(said.find("still waits") == std::string::npos); }
}

TEST_CASE_TEMPLATE("a rank can know that all do the same before its device gets the operation", Group,
                   test::threads_of<rank>, test::processes_of<rank>) {
  Group group;
  auto const outcomes = group.run(3, [](rank& own, comm::watchdog& dog) {
    own.queue(dog);
    dog.agree(0);
    own.exchanging.done = 1;
    own.queue(dog, own.member.rank() == 1 ? 16 : 8);
    dog.agree(1);
    own.exchanging.done = 2;
  });
  for (auto const& said : outcomes) {
    CAPTURE(said);
    CHECK(said.find("called all_gather of 16 bytes (call 2)") != std::string::npos);
    CHECK(said.find("ranks must make the same calls") != std::string::npos);
  }
}

TEST_CASE_TEMPLATE("a device's failure ends the operations of all ranks", Group, test::threads_of<rank>,
                   test::processes_of<rank>) {
  Group group;
  auto const outcomes = group.run(2, [](rank& own, comm::watchdog& dog) {
    own.queue(dog);
    own.exchanging.broken = own.member.rank() == 1;
    fail(exit_code::internal, own.wait_for_the_end());
  });
  for (auto const& said : outcomes) { CHECK(said == "rank 1 failed: the link is down"); }
}

TEST_CASE("an operation that all have queued and that does not complete fails after the patience") {
  test::processes_of<rank> group;
  group.settings.patience = 300ms;
  auto const outcomes = group.run(2, [](rank& own, comm::watchdog& dog) {
    own.queue(dog);
    own.queue(dog);
    own.exchanging.done = 1;
    fail(exit_code::internal, own.wait_for_the_end());
  });
  all_say(outcomes, "its device did not complete the all_gather of 8 bytes (call 2) within 300 ms");
  all_say(outcomes, "rank ");
}

TEST_CASE("operations that complete one after the other have no time limit together") {
  test::threads_of<rank> group;
  group.settings.patience = 400ms;
  auto const outcomes = group.run(2, [](rank& own, comm::watchdog& dog) {
    for (int i = 0; i < 10; ++i) { own.queue(dog); }
    for (int i = 0; i < 10; ++i) {
      std::this_thread::sleep_for(80ms);  // twice the patience in all
      ++own.exchanging.done;
    }
  });
  for (auto const& said : outcomes) { CHECK(said == ""); }
}

TEST_CASE("a rank that is missing, or ends while others wait for its device, is named") {
  for (bool const comes : {true, false}) {
    CAPTURE(comes);
    test::processes_of<rank> group;
    auto const outcomes = group.run(3, [comes](rank& own, comm::watchdog& dog) {
      if (comes || own.member.rank() != 2) {
        own.queue(dog);
      }
      if (own.member.rank() == 2) {
        std::this_thread::sleep_for(200ms);  // the others have seen it
        raise(SIGKILL);
      }
      fail(exit_code::internal, own.wait_for_the_end());
    });
    CHECK(outcomes[2] == "ended");
    for (int const r : {0, 1}) {
      auto const& said = outcomes[static_cast<std::size_t>(r)];
      CAPTURE(said);
      CHECK(said.find("rank 2 (process ") == 0);
      CHECK(said.find(comes ? "ended during all_gather" : "ended before all_gather") != std::string::npos);
      CHECK(said.find("still waits") == std::string::npos);
    }
  }
}

TEST_CASE_TEMPLATE("a rank that leaves before the others' next operation is named", Group,
                   test::threads_of<rank>, test::processes_of<rank>) {
  Group group;
  auto const outcomes = group.run(2, [](rank& own, comm::watchdog& dog) {
    own.queue(dog);
    own.exchanging.done = 1;
    if (own.member.rank() == 0) {
      own.queue(dog);
      fail(exit_code::internal, own.wait_for_the_end());
    }
  });
  CHECK(outcomes[1] == "");
  CHECK(outcomes[0].find("rank 1 has left before all_gather of 8 bytes (call 2") == 0);
}

}  // namespace
