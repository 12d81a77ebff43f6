// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/memory.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

using namespace superoffload;

TEST_CASE("blocks on both sides of the mapping threshold are aligned and writable") {
  for (std::size_t const bytes :
       {std::size_t{1}, cpu::mapped_bytes - 1, cpu::mapped_bytes, cpu::mapped_bytes + 1}) {
    void* const memory = cpu::allocate_memory(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory) % cpu::alignment == 0);
    std::memset(memory, 0xA5, bytes);
    CHECK(static_cast<unsigned char*>(memory)[bytes - 1] == 0xA5);
    cpu::release_memory(memory, bytes);
  }
}

TEST_CASE("nothing is null and may be released") {
  void* const memory = cpu::allocate_memory(0);
  CHECK(memory == nullptr);
  cpu::release_memory(memory, 0);
}

TEST_CASE("an impossible size is refused by its number of bytes") {
  for (std::size_t const bytes : {std::size_t{1} << 60, std::numeric_limits<std::size_t>::max()}) {
    try {
      cpu::release_memory(cpu::allocate_memory(bytes), bytes);
      FAIL("allocated");
    } catch (error const& e) {
      CHECK(e.code() == exit_code::cannot_fit);
      CHECK(std::string{e.what()}.find(std::to_string(bytes) + " bytes") != std::string::npos);
    }
  }
}

TEST_CASE("an account keeps the peak, from any thread") {
  cpu::memory_account account;
  account.add(100);
  account.add(50);
  account.subtract(120);
  account.add(10);
  CHECK(account.now() == 40);
  CHECK(account.peak() == 150);
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
