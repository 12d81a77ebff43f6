// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/memory.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

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
