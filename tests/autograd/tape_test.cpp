// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/autograd/tape.hpp>
#include <superoffload/core/range.hpp>
#include <superoffload/nn/linear.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <string>
#include <vector>

namespace {

using namespace superoffload;
using autograd::pass;
using test::graph;

/// A store that logs its calls and forwards acquire and release to another store.
struct recording_store {
  zero::resident_store<cpu::device, double>* behind;
  std::string log;

  void note(char what, int unit, pass p) {
    log += what;
    log += std::to_string(unit) + (p == pass::forward ? "f " : p == pass::backward ? "b " : "+ ");
  }
  void prefetch(int unit, pass p) noexcept { note('p', unit, p); }
  autograd::unit_buffers acquire(int unit, pass p) {
    note('a', unit, p);
    return behind->acquire(unit, p);
  }
  void release(int unit, pass p) noexcept { note('r', unit, p); }
  void reduce(int unit) { log += "g" + std::to_string(unit) + " "; }
};
static_assert(zero::unit_store<recording_store>);

/// Two blocks and a last unit that shares the first one's weight, as a tied head does.
struct model {
  struct block {
    nn::linear layer;
    graph::variable operator()(graph::variable x) const { return layer.onto(x, x); }
  };

  std::vector<autograd::unit_layout> units{autograd::unit_layout{0, "a"}, autograd::unit_layout{1, "b"},
                                           autograd::unit_layout{2, "c"}};
  block first{{units[0].add_matrix({{"a", 3}}, 3)}}, second{{units[1].add_matrix({{"b", 3}}, 3)}},
      third{{units[2].add_matrix({{"c", 3}}, 3)}};
  graph g{units};
  recording_store store{&g.store, {}};
  buffer<cpu::device> memory{g.device, std::size_t{1} << 16};
  graph::tape tape{
      g.device, g.stream, {memory.data(), memory.bytes()}, autograd::unit_access::to(store, &units), 3};

  void run(bool with_backward) {
    tape.reset(with_backward);
    auto x = tape.make(2, 3);
    tape.fill_zero(x.value(), 6 * sizeof(double));
    x = tape.unit(0, first, x);
    x = tape.unit(1, second, x);
    x = tape.scope({2, 0}, pass::both, [&] { return third(first(x)); });
    if (with_backward) {
      x.adopt_gradient(tape.allocate<double>(6));
      tape.fill_zero(x.gradient(), 6 * sizeof(double));
      tape.backward();
    }
    g.stream.synchronize();
  }
};

TEST_CASE("units are acquired around their uses, and reduced after the last one in backward") {
  model m;
  SUBCASE("kept") {
    m.run(true);
    CHECK(m.store.log == "a0f r0f a1f r1f a2+ a0+ r2+ r0+ a2b a0b r2b g2 r0b a1b r1b g1 a0b r0b g0 ");
  }
  SUBCASE("forward alone") {
    m.run(false);
    CHECK(m.store.log == "a0f r0f a1f r1f a2+ a0+ r2+ r0+ ");
  }
}

TEST_CASE("from the second run on the next unit is prefetched") {
  model m;
  m.run(true);
  m.store.log.clear();
  m.run(true);
  CHECK(m.store.log ==
        "a0f p1f r0f a1f p2+ r1f a2+ p0+ a0+ p2b r2+ r0+ a2b p0b a0b p1b r2b g2 r0b a1b p0b r1b g1 a0b r0b "
        "g0 ");
  m.store.log.clear();
  m.run(false);  // another sequence has its own order
  CHECK(m.store.log.find('p') == std::string::npos);
}

TEST_CASE("the last range names the last entered unit and its pass") {
  model m;
  m.run(false);
  CHECK(last_range() == "forward of a");  // which the last unit shares
  m.run(true);
  CHECK(last_range() == "backward of a");
}

TEST_CASE("a weight used outside its scope is an error") {
  model m;
  m.tape.reset();
  auto const x = m.tape.make(2, 3);
  CHECK_THROWS_WITH_AS(m.first(x), doctest::Contains("outside of its scope"), error);
}

TEST_CASE("a forward without a backward needs the memory of one block, not of all") {
  struct block {
    nn::linear wide, narrow;
    graph::variable operator()(graph::variable x) const { return narrow.onto(x, wide(x)); }
  };
  cpu::device const device{1};
  auto const peak = [&](int blocks, bool with_backward) {
    autograd::unit_layout unit{0, "a"};
    block const b{{unit.add_matrix({{"a", 256}}, 64)}, {unit.add_matrix({{"b", 64}}, 256)}};
    graph::tape dry{device, 1};
    dry.reset(with_backward);
    auto x = dry.make(32, 64);
    for (int i = 0; i < blocks; ++i) { x = dry.unit(0, b, x); }
    return dry.peak_bytes();
  };
  constexpr std::size_t x_bytes = 32 * 64 * sizeof(double);
  CHECK(peak(8, false) - peak(4, false) == 4 * x_bytes);
  CHECK(peak(8, true) - peak(4, true) == 4 * (x_bytes + 4 * x_bytes));
}

}  // namespace
