// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/counter.hpp>

#include <doctest/doctest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

using namespace superoffload;

TEST_CASE("a counter wakes the threads that wait for a value it has reached") {
  cpu::counter counter;
  counter.wait_for(0);
  std::array<std::uint64_t, 2000> history{};  // written before its number is reached, read after
  {
    std::vector<std::jthread> waiters;
    for (std::uint64_t const step : {1U, 3U, 500U, 2000U}) {
      waiters.emplace_back([&, step] {
        bool right = true;
        for (auto value = step; value <= history.size(); value += step) {
          counter.wait_for(value);
          right = right && counter.value() >= value && history[value - 1] == value;
        }
        CHECK(right);
      });
    }
    for (std::uint64_t value = 1; value <= history.size(); ++value) {
      history[value - 1] = value;
      counter.raise_to(value);
      if (value % 100 == 0) {
        std::this_thread::yield();
      }
    }
  }
  CHECK(counter.value() == history.size());
}

TEST_CASE("a thread that sleeps for a higher value does not hide one that sleeps for a lower one") {
  cpu::counter counter;
  auto const fall_asleep = [] { std::this_thread::sleep_for(std::chrono::milliseconds{20}); };
  std::thread less{[&] { counter.wait_for(1); }};
  fall_asleep();
  std::thread more{[&] { counter.wait_for(10); }};
  fall_asleep();
  counter.raise_to(1);
  less.join();  // would never end
  counter.raise_to(10);
  more.join();
  CHECK(counter.value() == 10);
}
