// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/state_memory.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <cstring>
#include <utility>

using namespace superoffload;

TEST_CASE("state memory is near the requested node, or says why not") {
  memory_account account;
  cpu::state_memory const near{account, cpu::mapped_bytes * 2, 0};
  if (near.refusal() == 0) {
    MESSAGE("pages of node 0 were granted");
  } else {
    MESSAGE("the system refused: ", std::strerror(near.refusal()));
  }
  std::memset(near.data(), 1, near.bytes());
  cpu::state_memory const nowhere{account, cpu::mapped_bytes, 1023};
  CHECK(nowhere.refusal() != 0);
  std::memset(nowhere.data(), 1, nowhere.bytes());
  CHECK(prefer_node(near.data(), near.bytes(), -1) == EINVAL);
}

TEST_CASE("state memory has one owner, and is counted") {
  memory_account account;
  {
    cpu::state_memory first{account, 100};
    cpu::state_memory second{account, 1000};
    CHECK(account.now() == 1100);
    first = std::move(second);
  }
  CHECK(account.now() == 0);
  cpu::state_memory first{account, cpu::mapped_bytes};
  auto* const at = first.as<char>();
  cpu::state_memory second{std::move(first)};
  CHECK(second.data() == at);
  CHECK(first.data() == nullptr);
  first = std::move(second);
  CHECK(first.data() == at);
  CHECK(cpu::state_memory{}.data() == nullptr);
  CHECK_THROWS_AS((cpu::state_memory{account, std::size_t{1} << 60}), error);
  CHECK(account.now() == cpu::mapped_bytes);
}
