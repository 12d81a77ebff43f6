// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/threads.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace superoffload;

TEST_CASE("every piece runs once, with the borders that the grain gives") {
  for (int const threads : {1, 2, 3, 8}) {
    cpu::thread_pool pool{threads};
    CHECK(pool.size() == threads);
    for (std::int64_t const count : {0, 1, 2, 7, 64, 1000}) {
      for (std::int64_t const grain : {1, 3, 64, 2000}) {
        std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
        std::atomic<bool> on_grid{true};
        pool.parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
          if (begin % grain != 0 || end != std::min(begin + grain, count)) {
            on_grid = false;
          }
          for (auto i = begin; i < end; ++i) { ++visits[static_cast<std::size_t>(i)]; }
        });
        CHECK(on_grid);
        bool once = true;
        for (auto const& visit : visits) { once = once && visit == 1; }
        CHECK(once);
      }
    }
  }
}

TEST_CASE("a grain beyond every count is one piece") {
  cpu::thread_pool pool{2};
  constexpr auto huge = std::numeric_limits<std::int64_t>::max();
  std::int64_t length = 0;
  pool.parallel_for(huge, huge, [&](std::int64_t begin, std::int64_t end) { length = end - begin; });
  CHECK(length == huge);
}

TEST_CASE("a negative count does nothing, a grain below one is an error") {
  cpu::thread_pool pool{2};
  pool.parallel_for(-5, 1, [](std::int64_t, std::int64_t) { FAIL("called"); });
  CHECK_THROWS_AS(pool.parallel_for(5, 0, [](std::int64_t, std::int64_t) {}), error);
  CHECK_THROWS_AS(cpu::thread_pool{-1}, error);
}

TEST_CASE("sums by piece are the same for every number of threads") {
  auto const sum = [](int threads) {
    cpu::thread_pool pool{threads};
    std::vector<float> parts(100);
    pool.parallel_for(9999, 100, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) {
        parts[static_cast<std::size_t>(begin / 100)] += 1.0F / static_cast<float>(i + 1);
      }
    });
    float all = 0;
    for (float const part : parts) { all += part; }
    return all;
  };
  float const alone = sum(1);
  CHECK(sum(2) == alone);
  CHECK(sum(5) == alone);
}

TEST_CASE("more than one thread works") {
  cpu::thread_pool pool{2};
  std::atomic<int> met{0};
  pool.parallel_for(2, 1, [&](std::int64_t, std::int64_t) {
    ++met;
    while (met < 2) {  // one thread alone would never finish
      std::this_thread::yield();
    }
  });
  CHECK(met == 2);
}

TEST_CASE("a loop inside a loop runs at once on the same thread") {
  cpu::thread_pool pool{3};
  std::atomic<int> inner{0};
  std::atomic<bool> same_thread{true};
  pool.parallel_for(10, 1, [&](std::int64_t, std::int64_t) {
    auto const self = std::this_thread::get_id();
    pool.parallel_for(10, 2, [&](std::int64_t begin, std::int64_t end) {
      same_thread = same_thread && self == std::this_thread::get_id();
      inner += static_cast<int>(end - begin);
    });
  });
  CHECK(inner == 100);
  CHECK(same_thread);
}

TEST_CASE("an exception reaches the caller, and the pool stays usable") {
  for (int const threads : {1, 2, 4}) {
    cpu::thread_pool pool{threads};
    for (int round = 0; round < 20; ++round) {
      CHECK_THROWS_AS(pool.parallel_for(100, 1,
                                        [&](std::int64_t begin, std::int64_t) {
                                          if (begin % 10 == 3) {
                                            throw std::out_of_range{"at a piece"};
                                          }
                                        }),
                      std::out_of_range);
      std::atomic<int> pieces{0};
      pool.parallel_for(50, 1, [&](std::int64_t, std::int64_t) { ++pieces; });
      CHECK(pieces == 50);
    }
  }
}

TEST_CASE("callers on several threads take turns") {
  cpu::thread_pool pool{3};
  std::atomic<std::int64_t> sum{0};
  {
    std::vector<std::jthread> callers;
    for (int c = 0; c < 4; ++c) {
      callers.emplace_back([&] {
        for (int i = 0; i < 300; ++i) {
          std::int64_t own[8] = {};  // written by other threads, without atomics
          pool.parallel_for(8, 1, [&](std::int64_t begin, std::int64_t) { own[begin] = begin; });
          for (auto const value : own) { sum += value; }
        }
      });
    }
  }
  CHECK(sum == 4 * 300 * 28);
}

TEST_CASE("a body may be const, and move-only") {
  cpu::thread_pool pool{2};
  auto const body = [visits = std::make_unique<std::atomic<int>>(0)](std::int64_t, std::int64_t) {
    ++*visits;
  };
  pool.parallel_for(5, 1, body);
  pool.parallel_for(5, 1, std::move(body));
}
