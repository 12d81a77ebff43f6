// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/autograd/arena.hpp>

#include <doctest/doctest.h>

#include <vector>

namespace {

using superoffload::autograd::activation_arena;
using superoffload::autograd::node_arena;

TEST_CASE("a dry arena has the same peak as one with memory") {
  alignas(256) static std::byte memory[4096];
  activation_arena dry;
  activation_arena real{memory, sizeof memory};
  for (auto* arena : {&dry, &real}) {
    arena->allocate<float>(10);
    auto const mark = arena->mark();
    auto* const inside = arena->allocate<double>(100);
    CHECK(arena->above(inside, mark));
    arena->release(mark);
    auto* const after = arena->allocate<char>(1);
    CHECK(arena->above(after, mark));
    CHECK_FALSE(arena->above(after, arena->mark()));
  }
  CHECK(dry.dry());
  CHECK_FALSE(real.dry());
  CHECK(dry.peak() == 256 + 1024);
  CHECK(real.peak() == dry.peak());
}

TEST_CASE("an allocation beyond the arena is refused with both numbers") {
  alignas(256) static std::byte memory[512];
  activation_arena arena{memory, sizeof memory};
  CHECK_THROWS_WITH_AS(arena.allocate<float>(1000), doctest::Contains("512"), superoffload::error);
}

TEST_CASE(
    "a buffer inside the arena is filled from its begin, adds nothing to the peak, and has its own bound") {
  alignas(256) static std::byte memory[2048];
  activation_arena arena{memory, sizeof memory};
  auto* const buffer = arena.allocate<std::byte>(512);
  for (int round = 0; round < 2; ++round) {
    arena.open(buffer, 512);
    arena.turn_to(activation_arena::side::buffer);
    CHECK(arena.mark() == 0);
    CHECK(arena.allocate<std::byte>(1) == buffer);
    CHECK(arena.allocate<std::byte>(256) == buffer + 256);
    CHECK(arena.mark() == 512);
    CHECK_THROWS_WITH_AS(arena.allocate<std::byte>(1), doctest::Contains("768"), superoffload::error);
  }
  arena.turn_to(activation_arena::side::begin);
  CHECK(arena.allocate<std::byte>(1) == buffer + 512);
  CHECK(arena.peak() == 768);
}

TEST_CASE("nodes stay valid over many chunks, and released memory is reused") {
  struct node {
    int value;
    char filling[500];
  };
  node_arena arena;
  auto const start = arena.mark();
  for (int round = 0; round < 3; ++round) {
    std::vector<node*> nodes;
    for (int i = 0; i < 1000; ++i) { nodes.push_back(arena.make<node>(node{i, {}})); }
    for (int i = 0; i < 1000; ++i) { CHECK(nodes[static_cast<std::size_t>(i)]->value == i); }
    arena.release(start);
  }
}

}  // namespace
