// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/checkpoint_writer.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

/// A state whose bytes are all `value`, which the test changes as training would.
struct changing_state {
  std::vector<std::byte> bytes = std::vector<std::byte>(3 << 20);

  void become(int value) { std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(value)); }
  [[nodiscard]] std::vector<io::blob> blobs() {
    return {{"state", bytes.size(), [this](std::uint64_t offset, std::span<std::byte> to) {
               std::memcpy(to.data(), bytes.data() + offset, to.size());
             }}};
  }
};

std::byte first_of(std::filesystem::path const& checkpoint) {
  auto const reader = io::checkpoint_reader::open(checkpoint);
  reader.verify();
  std::byte value{};
  reader.read("state", 0, {&value, 1});
  return value;
}

TEST_CASE("a checkpoint holds the state of the moment it was asked for, whatever training does meanwhile") {
  test::scratch_directory const root;
  changing_state state;
  train::checkpoint_writer writer{root.path(), 2};
  CHECK_FALSE(writer.completed());
  for (int step = 1; step <= 4; ++step) {
    state.become(step);
    writer.save(step, "{}", state.blobs());
    state.become(99);  // at once
  }
  auto const last = writer.wait();
  REQUIRE(last);
  CHECK(*last == root.path() / "checkpoint-4");
  CHECK_FALSE(writer.wait());
  CHECK(first_of(*last) == std::byte{4});
  CHECK(first_of(root.path() / "checkpoint-3") == std::byte{3});
  CHECK_FALSE(std::filesystem::exists(root.path() / "checkpoint-2"));
}

TEST_CASE("a failure is reported by the next call that looks") {
  test::scratch_directory const root;
  auto const file = root.path() / "file";
  std::ofstream{file} << "not a directory";
  changing_state state;
  train::checkpoint_writer writer{file, 0};
  writer.save(1, "{}", state.blobs());
  CHECK_THROWS_AS(writer.wait(), error);
  CHECK_FALSE(writer.wait());
}

}  // namespace
