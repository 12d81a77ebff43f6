// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/memory.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
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

TEST_CASE("zero bytes give null, which may be released") {
  void* const memory = cpu::allocate_memory(0);
  CHECK(memory == nullptr);
  cpu::release_memory(memory, 0);
}

TEST_CASE("an impossible size is refused with its number of bytes") {
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

TEST_CASE("available memory is what the host and the control group's limits both allow") {
  test::scratch_directory const root;
  auto const write = [&](std::string const& path, std::string const& text) {
    auto const file = root.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << text;
  };
  auto const available = [&] { return cpu::available_bytes(root.path()); };
  CHECK(available() == std::numeric_limits<std::size_t>::max());
  write("proc/meminfo", "MemTotal:  9000 kB\nMemFree:  5 kB\nMemAvailable:    4000 kB\nBuffers:  1 kB\n");
  CHECK(available() == 4000 * 1024);
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory.current", "70000\n");
  CHECK(available() == 4000 * 1024);
  write("sys/fs/cgroup/memory.max", "100000\n");
  CHECK(available() == 30000);
  write("sys/fs/cgroup/memory.current", "100001\n");  // above its limit for a moment
  CHECK(available() == 0);
  write("sys/fs/cgroup/memory.max", "nonsense\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  CHECK(available() == 400000);
}
