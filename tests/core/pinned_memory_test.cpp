// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/pinned_memory.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace {

using namespace superoffload;

/// A system that locks at most so much.
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

TEST_CASE("memory that cannot be locked is ordinary, and one warning names bytes and limit") {
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
  auto* const locked = memory.allocate(100);  // a block that fits is locked
  CHECK(limited::allocated.size() == 1);
  memory.release(locked, 100);
  for (std::size_t i = 0; i < sizes.size(); ++i) { memory.release(blocks[i], sizes[i]); }
}

/// Obeys the limit of the process, or does not.
struct limited_by_system {
  static inline bool keeps = true;
  static inline int locked = 0;

  static bool lock(void*, std::size_t bytes) {
    rlimit now{};
    getrlimit(RLIMIT_MEMLOCK, &now);
    bool const does = !keeps || now.rlim_cur == RLIM_INFINITY || bytes <= now.rlim_cur;
    locked += does ? 1 : 0;
    return does;
  }
  static void unlock(void*) { --locked; }
  static void* allocate(std::size_t) { return nullptr; }
  static void release(void*) {}
};

TEST_CASE("the limit of locked memory counts if the driver obeys it") {
  constexpr auto unlimited = std::numeric_limits<std::size_t>::max();
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_MEMLOCK, &before) == 0);
  pinned_memory<limited_by_system> memory;
  // More than the trial locks, where that is allowed.
  rlimit const finite{.rlim_cur = std::min<rlim_t>(8 * large, before.rlim_max), .rlim_max = before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_MEMLOCK, &finite) == 0);
  for (bool const keeps : {true, false}) {
    limited_by_system::keeps = keeps;
    CHECK(memory.lockable_bytes() == (keeps ? finite.rlim_cur : unlimited));
    CHECK(limited_by_system::locked == 0);
    rlimit after{};
    getrlimit(RLIMIT_MEMLOCK, &after);
    CHECK(after.rlim_cur == finite.rlim_cur);
    CHECK(after.rlim_max == finite.rlim_max);
  }
  REQUIRE(setrlimit(RLIMIT_MEMLOCK, &before) == 0);
  limited_by_system::keeps = true;
  if (before.rlim_cur == RLIM_INFINITY) {
    CHECK(memory.lockable_bytes() == unlimited);
  }
}

TEST_CASE("without any memory, the error says so") {
  pinned_memory<limited> memory{{}, listen};
  CHECK_THROWS_WITH_AS(static_cast<void>(memory.allocate(std::size_t{1} << 60)),
                       doctest::Contains("1152921504606846976 bytes"), error);
}

}  // namespace
