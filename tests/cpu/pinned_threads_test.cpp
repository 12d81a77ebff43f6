// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/pinned_threads.hpp>
#include <superoffload/cpu/topology.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <sched.h>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace superoffload;
using namespace superoffload::cpu;

namespace {

/// Threads on the processors of this machine, several on each if it has too few.
std::vector<int> somewhere(int threads) {
  auto const allowed = allowed_processors();
  std::vector<int> processors;
  for (int i = 0; i < threads; ++i) {
    processors.push_back(allowed[static_cast<std::size_t>(i) % allowed.size()]);
  }
  return processors;
}

TEST_CASE("slices cover every element once, in order, cut at whole pages") {
  for (std::int64_t const count : {0, 1, 2047, 2048, 2049, 100000, 16777216}) {
    for (int const threads : {1, 2, 3, 14, 64}) {
      std::int64_t end = 0;
      std::int64_t longest = 0;
      for (int t = 0; t < threads; ++t) {
        auto const mine = slice_of(count, t, threads);
        CHECK(mine.begin == end);
        CHECK((mine.begin % 2048 == 0 || mine.begin == count));
        end = mine.end;
        longest = std::max(longest, mine.size());
      }
      CHECK(end == count);
      CHECK(longest <= (count / 2048 / threads + 1) * 2048);
    }
  }
}

TEST_CASE("shared slices are done once each, by any thread, also all by one thread") {
  for (std::int64_t const count :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{70001}, std::int64_t{300000}}) {
    for (int const idle : {0, 2}) {
      shared_slices slices{3};
      slices.reset(count);
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
      std::vector<std::thread> threads;
      for (int t = idle; t < 3; ++t) {
        threads.emplace_back([&, t] {
          slices.each_piece(t, [&](slice const& piece) {
            for (auto i = piece.begin; i < piece.end; ++i) { ++done[static_cast<std::size_t>(i)]; }
          });
        });
      }
      for (auto& thread : threads) { thread.join(); }
      CHECK(std::all_of(done.begin(), done.end(), [](auto const& n) { return n == 1; }));
    }
  }
}

TEST_CASE("every thread does its part of every task, and done is called once, by the last") {
  for (int const threads : {1, 2, 5}) {
    pinned_threads pool{somewhere(threads)};
    CHECK(pool.size() == threads);
    struct counts {
      std::vector<std::atomic<int>> parts = std::vector<std::atomic<int>>(5);
      std::atomic<int> all{0}, done{0}, early{0};
    };
    std::vector<counts> tasks(600);  // more than the queue holds
    std::uint64_t last = 0;
    for (auto& task : tasks) {
      last = pool.submit(
          [&task](int thread, int of) {
            ++task.parts[static_cast<std::size_t>(thread)];
            task.all += of;
          },
          [&task, threads] {
            task.early += task.all != threads * threads ? 1 : 0;
            ++task.done;
          });
    }
    CHECK(last == tasks.size() - 1);
    pool.wait(last);
    CHECK(pool.done(last));
    bool right = true;
    for (auto const& task : tasks) {
      right = right && task.done == 1 && task.early == 0;
      for (int t = 0; t < 5; ++t) {
        right = right && task.parts[static_cast<std::size_t>(t)] == (t < threads);
      }
    }
    CHECK(right);
  }
}

TEST_CASE("tasks complete in order, however long a thread takes") {
  pinned_threads pool{somewhere(4)};
  std::vector<int> order;  // only done() writes it, never two at once
  for (int i = 0; i < 100; ++i) {
    pool.submit(
        [i](int thread, int) {
          if ((i + thread) % 7 == 0) {
            std::this_thread::yield();
          }
        },
        [&order, i] { order.push_back(i); });
  }
  pool.synchronize();
  REQUIRE(order.size() == 100);
  for (int i = 0; i < 100; ++i) { CHECK(order[static_cast<std::size_t>(i)] == i); }
}

TEST_CASE("a thread sees its work for one task in the next, without a wait between them") {
  pinned_threads pool{somewhere(3)};
  constexpr std::int64_t count = 100'000;
  std::vector<std::int64_t> values(count, -1);
  pool.fill_zero(values.data(), count, sizeof(std::int64_t));
  for (int round = 0; round < 20; ++round) {
    pool.submit([&values](int thread, int threads) {
      auto const mine = slice_of(count, thread, threads);
      for (auto i = mine.begin; i < mine.end; ++i) { values[static_cast<std::size_t>(i)] += i; }
    });
  }
  pool.synchronize();
  bool right = true;
  for (std::int64_t i = 0; i < count; ++i) { right = right && values[static_cast<std::size_t>(i)] == 20 * i; }
  CHECK(right);
}

TEST_CASE("an exception reaches every wait for its task or a later one, and nothing hangs") {
  for (bool const in_done : {false, true}) {
    CAPTURE(in_done);
    pinned_threads pool{somewhere(3)};
    std::atomic<int> later{0};
    auto const good = pool.submit([](int, int) {});
    auto const bad = pool.submit(
        [in_done](int thread, int) {
          if (!in_done && thread == 1) {
            throw std::runtime_error{"broken"};
          }
        },
        [in_done] {
          if (in_done) {
            throw std::runtime_error{"broken"};
          }
        });
    CHECK_THROWS_WITH_AS(pool.wait(bad), "broken", std::runtime_error);
    auto const skipped = pool.submit([&](int, int) { ++later; }, [&] { ++later; });
    CHECK_NOTHROW(pool.wait(good));
    CHECK_THROWS_WITH_AS(pool.wait(skipped), "broken", std::runtime_error);
    CHECK_THROWS_WITH_AS(pool.synchronize(), "broken", std::runtime_error);
    CHECK_THROWS_WITH_AS(pool.run([&](int, int) { ++later; }), "broken", std::runtime_error);
    CHECK(later == 0);
    CHECK(pool.done(skipped));
  }
}

TEST_CASE("of several failing tasks the first in order counts, not the first in time") {
  pinned_threads pool{somewhere(2)};
  std::atomic<bool> second_failed{false};
  auto const first = pool.submit([&](int thread, int) {
    if (thread == 0) {
      while (!second_failed) { std::this_thread::yield(); }
      throw std::runtime_error{"first"};
    }
  });
  pool.submit([&](int thread, int) {
    if (thread == 1) {
      second_failed = true;
      throw std::runtime_error{"second"};
    }
  });
  CHECK_THROWS_WITH_AS(pool.synchronize(), "first", std::runtime_error);
  CHECK_THROWS_WITH_AS(pool.wait(first), "first", std::runtime_error);
}

TEST_CASE("the failure of a later task does not replace that of an earlier one") {
  pinned_threads pool{somewhere(2)};
  std::atomic<bool> second_begun{false};
  auto const first = pool.submit([&](int thread, int) {
    if (thread == 0) {
      while (!second_begun) { std::this_thread::yield(); }
      throw std::runtime_error{"first"};
    }
  });
  auto const second = pool.submit([&](int thread, int) {
    if (thread == 1) {
      second_begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds{50});  // the first has thrown by then
      throw std::runtime_error{"second"};
    }
  });
  CHECK_THROWS_WITH_AS(pool.wait(second), "first", std::runtime_error);
  CHECK_THROWS_WITH_AS(pool.wait(first), "first", std::runtime_error);
}

TEST_CASE("tasks come from several threads at once") {
  pinned_threads pool{somewhere(2)};
  std::atomic<int> calls{0};
  {
    std::vector<std::jthread> producers;
    for (int p = 0; p < 3; ++p) {
      producers.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          pool.run([&](int, int) { ++calls; });
        }
      });
    }
  }
  CHECK(calls == 3 * 200 * 2);
}

TEST_CASE("each thread runs where it was put") {
  auto const processors = somewhere(static_cast<int>(allowed_processors().size()));
  pinned_threads pool{processors};
  CHECK(pool.notes().empty());
  std::vector<int> seen(processors.size(), -1);
  pool.run([&](int thread, int) { seen[static_cast<std::size_t>(thread)] = sched_getcpu(); });
  CHECK(seen == processors);
  for (int const id : pool.thread_ids()) { CHECK(id > 0); }
}

TEST_CASE("a processor that does not exist gives a note, not an error") {
  pinned_threads pool{{somewhere(1)[0], 8191, 1 << 20}};
  REQUIRE(pool.notes().size() == 2);
  std::string const notes = pool.notes()[0] + pool.notes()[1];
  CHECK(notes.find("processor 8191") != std::string::npos);
  CHECK(notes.find("processor 1048576") != std::string::npos);
  std::atomic<int> parts{0};
  pool.run([&](int, int) { ++parts; });
  CHECK(parts == 3);
  CHECK_THROWS_AS(pinned_threads{std::vector<int>{}}, error);
}

}  // namespace
