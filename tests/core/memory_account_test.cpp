// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/memory_account.hpp>

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace superoffload;

TEST_CASE("an account keeps the peak, from any thread") {
  memory_account account;
  account.add(100);
  account.add(50);
  account.subtract(120);
  account.add(10);
  CHECK(account.now() == 40);
  CHECK(account.peak() == 150);
  account.forget_peak();
  CHECK(account.peak() == 40);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          account.add(1000);
          account.subtract(1000);
        }
      });
    }
  }
  CHECK(account.now() == 40);
  CHECK(account.peak() >= 1040);
  CHECK(account.peak() <= 4040);
}
