// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/pinned_memory.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

/// A system that locks so much at a time.
struct limited {
  static inline std::size_t most = 0;
  static inline bool registers = true;
  static inline std::set<void*> locked, allocated;

  static bool lock(void* memory, std::size_t bytes) {
    return registers && bytes <= most && locked.insert(memory).second;
  }
  static void unlock(void* memory) { CHECK(locked.erase(memory) == 1); }
  static void* allocate(std::size_t bytes) {
    return bytes <= most ? *allocated.insert(std::aligned_alloc(256, (bytes + 255) / 256 * 256)).first
                         : nullptr;
  }
  static void release(void* memory) {
    CHECK(allocated.erase(memory) == 1);
    std::free(memory);
  }
};

std::vector<std::string> said;
void listen(std::string const& line) { said.push_back(line); }

constexpr std::size_t small = 1000, large = pinned_memory<limited>::mapped_bytes;

TEST_CASE("small blocks come from the driver, large ones are mapped and locked") {
  said.clear();
  limited::most = 2 * large;
  for (bool const registers : {true, false}) {
    limited::registers = registers;
    pinned_memory<limited> memory{{}, listen};
    auto* const a = memory.allocate(small);
    auto* const b = memory.allocate(large + 1);
    CHECK(limited::allocated.count(a) == 1);
    CHECK(limited::locked.count(b) == (registers ? 1 : 0));
    CHECK(limited::allocated.count(b) == (registers ? 0 : 1));
    std::memset(b, 1, large + 1);
    memory.release(a, small);
    memory.release(b, large + 1);
  }
  CHECK(limited::locked.empty());
  CHECK(limited::allocated.empty());
  CHECK(said.empty());
  limited::registers = true;
}

TEST_CASE("what cannot be locked is ordinary memory, and one warning names bytes and limit") {
  said.clear();
  limited::most = 100;
  pinned_memory<limited> memory{{}, listen};
  std::vector<std::size_t> const sizes{large + 5, small, large};
  std::vector<void*> blocks;
  for (auto const bytes : sizes) {
    blocks.push_back(memory.allocate(bytes));
    std::memset(blocks.back(), 1, bytes);
  }
  REQUIRE(said.size() == 1);
  CHECK(said[0].find(std::to_string(large + 5) + " bytes") == 0);
  CHECK(said[0].find("limit") != std::string::npos);
  auto* const locked = memory.allocate(100);  // what fits still is
  CHECK(limited::allocated.size() == 1);
  memory.release(locked, 100);
  for (std::size_t i = 0; i < sizes.size(); ++i) { memory.release(blocks[i], sizes[i]); }
}

TEST_CASE("where there is no memory at all, that is the error") {
  pinned_memory<limited> memory{{}, listen};
  CHECK_THROWS_WITH_AS(static_cast<void>(memory.allocate(std::size_t{1} << 60)),
                       doctest::Contains("1152921504606846976 bytes"), error);
}

}  // namespace
