// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/zero/buffer_sizes.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace {

using sizes = superoffload::zero::buffer_sizes<std::size_t>;

std::vector<std::size_t> of(sizes const& s) {
  std::vector<std::size_t> all;
  for (int i = 0; i < s.buffers(); ++i) { all.push_back(s.of(i)); }
  return all;
}
std::vector<int> suiting(sizes const& s, std::size_t wanted) {
  std::vector<int> all;
  for (int i = 0; i < s.buffers(); ++i) {
    if (s.suits(i, wanted)) {
      all.push_back(i);
    }
  }
  return all;
}
using buffers = std::vector<std::size_t>;
using numbers = std::vector<int>;

TEST_CASE("one buffer is for the embedding and the head, the others are for blocks") {
  sizes const s{{40, 7, 10, 8, 30}, 3, false};
  CHECK(of(s) == buffers{40, 10, 10});
  CHECK(s.total() == 60);
  CHECK(suiting(s, 40) == numbers{0});
  CHECK(suiting(s, 30) == numbers{0});
  CHECK(suiting(s, 10) == numbers{1, 2});
  CHECK(suiting(s, 1) == numbers{1, 2});
}

TEST_CASE("a tied head counts as a block") {
  sizes const s{{40, 7, 10, 12}, 3, true};
  CHECK(of(s) == buffers{40, 12, 12});
  CHECK(suiting(s, 12) == numbers{1, 2});
  CHECK(of({{40, 7, 10, 40}, 3, true}) == buffers{40, 40, 40});
}

TEST_CASE("buffers have one size if blocks are largest, or if there are fewer than three") {
  sizes const blocks{{4, 10, 9, 2}, 3, false};
  CHECK(of(blocks) == buffers{10, 10, 10});
  CHECK(suiting(blocks, 10) == numbers{0, 1, 2});
  CHECK(suiting(blocks, 2) == numbers{0, 1, 2});
  CHECK(of({{40, 7, 10, 30}, 2, false}) == buffers{40, 40});
  CHECK(of({{40, 7, 10, 30}, 1, false}) == buffers{40});
  CHECK(of({40, 4}) == buffers{40, 40, 40, 40});
}

TEST_CASE("there are no more buffers than units that need one") {
  CHECK(of({{40, 30}, 3, false}) == buffers{40, 40});
  CHECK(of({{40, 0, 0, 30}, 3, false}) == buffers{40, 40});
  CHECK(of({{0, 5, 6, 0}, 3, false}) == buffers{6, 6});
  CHECK(of({std::vector<std::size_t>{}, 3, false}).empty());
  CHECK(sizes{{0, 0}, 3, false}.total() == 0);
}

TEST_CASE("if every unit has a buffer, embedding and head have one each") {
  CHECK(of({{40, 7, 10, 8, 30}, 4, false}) == buffers{40, 10, 10, 10});
  for (int const many : {5, 9}) {
    sizes const all{{40, 7, 10, 8, 30}, many, false};
    CHECK(of(all) == buffers{40, 40, 10, 10, 10});
    CHECK(all.total() == 110);
    CHECK(suiting(all, 30) == numbers{0, 1});
  }
  CHECK(of({{40, 7, 10, 8, 3}, 5, false}) == buffers{40, 10, 10, 10, 10});
  CHECK(of({{40, 7, 10, 8, 12}, 5, true}) == buffers{40, 12, 12, 12, 12});
  CHECK(of({{4, 7, 10, 8, 3}, 5, false}) == buffers{10, 10, 10, 10, 10});
  CHECK(of({{40, 0, 5, 30}, 3, false}) == buffers{40, 40, 5});
}

}  // namespace
