// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/run/activity.hpp>

#include <doctest/doctest.h>

#include "support/collected.hpp"

#include <chrono>
#include <regex>
#include <stdexcept>
#include <thread>

namespace {

using namespace superoffload;

constexpr std::chrono::milliseconds a_second{1010};

TEST_CASE("work that takes a second says so, and at what rate it moved bytes, if it succeeds") {
  test::collected log;
  {
    train::activity const shown{"reading", true, std::size_t{3} << 20};
    std::this_thread::sleep_for(a_second);
  }
  REQUIRE(log.lines.size() == 1);
  CHECK(std::regex_match(log.lines[0],
                         std::regex{"1 reading: 3\\.00 MiB in 1(\\.[0-9])? s, [0-9.]+ [KM]iB a second"}));
  log.lines.clear();

  { train::activity const shown{"reading", true, 1}; }  // too short
  std::thread others[]{std::thread{[] {
                         train::activity const shown{"waiting", true};
                         std::this_thread::sleep_for(a_second);
                       }},
                       std::thread{[] {
                         train::activity const shown{"another rank's", false, 1};
                         std::this_thread::sleep_for(a_second);
                       }}};
  for (auto& other : others) { other.join(); }
  REQUIRE(log.lines.size() == 1);
  CHECK(std::regex_match(log.lines[0], std::regex{"1 waiting: 1(\\.[0-9])? s"}));
  log.lines.clear();
  try {
    train::activity const shown{"failing", true, 1};
    std::this_thread::sleep_for(a_second);
    throw std::runtime_error{"no"};
  } catch (std::runtime_error const&) {}
  CHECK(log.lines.empty());
}

}  // namespace
