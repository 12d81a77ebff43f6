// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/offload/planning/collectives.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace superoffload::offload;

collectives of_units(int units) {
  collectives e;
  e.units.assign(static_cast<std::size_t>(units), {.weights = 2.0, .gradient = 4.0});
  return e;
}

configuration with(superoffload::zero::gather_buffers buffers, int weight_ranks = 0,
                   bool sums_in_copies = false) {
  configuration c;
  c.buffers = buffers;
  c.weight_ranks = weight_ranks;
  c.sums_in_copies = sums_in_copies;
  return c;
}

/// For example "g0@1 r0@2": unit 0 is gathered after one pass and reduced after two.
std::string text_of(collective_order const& order) {
  std::string text;
  for (auto const& o : order.operations) {
    text += (text.empty() ? "" : " ") + std::string{o.what == activity::gather ? "g" : "r"} +
            std::to_string(o.unit) + "@" + std::to_string(o.after);
  }
  return text;
}
/// For example "0@2/2": unit 0 is announced after two passes and two operations.
std::string announcements_of(collective_order const& order) {
  std::string text;
  for (auto const& a : order.announcements) {
    text += (text.empty() ? "" : " ") + std::to_string(a.unit) + "@" + std::to_string(a.after) + "/" +
            std::to_string(a.operations);
  }
  return text;
}
using numbers = std::vector<std::size_t>;

TEST_CASE("a single rank has no collectives") {
  auto const order = order_of({}, {}, 3);
  CHECK(order.operations.empty());
  CHECK(order.needed.empty());
  CHECK(order.announcements.empty());
}

TEST_CASE("units that all fit the buffers are gathered once a step, and every gradient is reduced") {
  auto const order = order_of(of_units(2), {}, 1);
  CHECK(text_of(order) == "g0@0 g1@0 r1@3 r0@4");
  CHECK(order.needed == numbers{1, 2, 2, 1});
  CHECK(announcements_of(order) == "1@4/3 0@4/4");
  CHECK(order.operations[0].bytes == 2.0);
  CHECK(order.operations[2].bytes == 4.0);
}

TEST_CASE("more units than buffers are gathered twice, after the passes that free a buffer") {
  auto const order = order_of(of_units(5), {}, 1);
  CHECK(text_of(order) == "g0@0 g1@0 g2@0 g3@1 g4@2 r4@6 r3@7 g1@7 r2@8 g0@6 r1@9 r0@10");
  // A backward waits for the announcement of the gradient before, and for the reduction that frees its
  // buffer.
  CHECK(order.needed == numbers{1, 2, 3, 4, 5, 5, 4, 6, 8, 10});
  CHECK(announcements_of(order) == "4@7/6 3@8/7 2@9/9 1@10/11 0@10/12");
}

TEST_CASE("with one gradient buffer, each backward waits for the reduction of the one before") {
  auto const order = order_of(of_units(3), with({.gradients = 1}), 1);
  CHECK(text_of(order) == "g0@0 g1@0 g2@0 r2@4 r1@5 r0@6");
  CHECK(order.needed == numbers{1, 2, 3, 3, 4, 5});
}

TEST_CASE("an embedding and a head that are larger than blocks share a larger buffer") {
  auto e = of_units(5);
  e.units[0] = e.units[4] = {.weights = 6.0, .gradient = 12.0};
  auto const order = order_of(e, {}, 1);
  // Unit 3 takes the buffer of unit 1, and the head that of the embedding.
  CHECK(text_of(order) == "g0@0 g1@0 g2@0 g3@2 g4@1 r4@6 r3@7 g1@7 r2@8 g0@6 r1@9 r0@10");
  CHECK(order.needed == numbers{1, 2, 3, 4, 5, 5, 4, 6, 8, 10});
  e.units[3] = {.weights = 5.0, .gradient = 4.0};
  e.units[4] = {.weights = 5.0, .gradient = 13.0};  // no larger than a block: the embedding keeps its buffer
  CHECK(text_of(order_of(e, {}, 1)) == "g0@0 g1@0 g2@0 g3@2 g4@3 r4@6 g2@6 r3@7 g1@7 r2@8 r1@9 r0@10");
}

TEST_CASE(
    "with micro-batches, units around the turn stay gathered, and gradients are announced in the last one") {
  auto const order = order_of(of_units(2), {}, 2);
  CHECK(text_of(order) == "g0@0 g1@0 r1@3 r0@4 r1@7 r0@8");
  CHECK(order.needed == numbers{1, 2, 2, 1, 1, 3, 3, 4});
  CHECK(announcements_of(order) == "1@8/5 0@8/6");
}

TEST_CASE("with more buffers the last units stay for the backward, with a buffer for each all of them stay") {
  CHECK(text_of(order_of(of_units(5), with({.weights = 4}), 1)) ==
        "g0@0 g1@0 g2@0 g3@0 g4@1 r4@6 r3@7 r2@8 g0@6 r1@9 r0@10");
  CHECK(text_of(order_of(of_units(5), with({.weights = 5}), 1)) ==
        "g0@0 g1@0 g2@0 g3@0 g4@0 r4@6 r3@7 r2@8 r1@9 r0@10");
  // They stay from one micro-batch to the next.
  auto const several = text_of(order_of(of_units(5), with({.weights = 9}), 3));
  CHECK(std::count(several.begin(), several.end(), 'g') == 5);
  CHECK(std::count(several.begin(), several.end(), 'r') == 15);
  auto e = of_units(5);
  e.units[0] = e.units[4] = {.weights = 6.0, .gradient = 12.0};  // they do not share a buffer then
  CHECK(text_of(order_of(e, with({.weights = 4}), 1)).find("g0@6") != std::string::npos);
  CHECK(text_of(order_of(e, with({.weights = 5}), 1)) ==
        "g0@0 g1@0 g2@0 g3@0 g4@0 r4@6 r3@7 r2@8 r1@9 r0@10");
  e.tied_to_last = 0;
  e.units[4] = {.weights = 1.0, .gradient = 1.0};
  CHECK(text_of(order_of(e, with({.weights = 5}), 1)) ==
        "g0@0 g1@0 g2@0 g3@0 g4@0 r4@6 r3@7 r2@8 r1@9 r0@10");
}

TEST_CASE("copies of the weights exchange new ones once, and sums once a step where they sum first") {
  auto e = of_units(2);
  e.ranks = 6;  // two copies, each of three ranks: of the five parts that are sent, 2 x 2 and 1
  for (auto& unit : e.units) { unit = {.weights = 10.0, .gradient = 20.0, .sum = 40.0}; }
  auto const text = [&](configuration const& of_rank, int micro_batches) {
    std::string all;
    for (auto const& o : order_of(e, of_rank, micro_batches).operations) {
      all += superoffload::concat(o.what == activity::gather ? "g" : "r", o.unit,
                                  o.among.counterparts ? "<>" : "", o.among.neighbours, ":", o.bytes, " ");
    }
    return all;
  };
  CHECK(text(with({}, 3), 1) == "g0<>3:2 g03:8 g1<>3:2 g13:8 r10:20 r00:20 ");
  CHECK(text(with({}, 3), 2) == "g0<>3:2 g03:8 g1<>3:2 g13:8 r10:20 r00:20 r10:20 r00:20 ");
  CHECK(text(with({}, 3, true), 2) ==
        "g0<>3:2 g03:8 g1<>3:2 g13:8 r13:16 r03:16 r13:16 r1<>3:8 r03:16 r0<>3:8 ");
  CHECK(text(with({}, 3, true), 1) == text(with({}, 3), 1));
  CHECK(text(with({}, 6, true), 1) == text(with({}), 1));
  e.units[0].gradient = 0.0;  // frozen weights never change
  CHECK(text(with({.weights = 9}, 3), 1) == "g1<>3:2 g13:8 r10:20 ");
  CHECK_THROWS_AS(static_cast<void>(text(with({}, 4), 1)), superoffload::error);
}

TEST_CASE("a frozen unit stays gathered and is not reduced") {
  auto e = of_units(2);
  e.units[0].gradient = 0.0;
  auto const order = order_of(e, {}, 1);
  CHECK(text_of(order) == "g1@0 r1@3");
  CHECK(order.needed == numbers{0, 1, 1, 0});
  CHECK(announcements_of(order) == "1@4/2");
}

TEST_CASE("a tied head uses the embedding, whose gradient is reduced after its own backward") {
  auto e = of_units(5);
  e.tied_to_last = 0;
  // For the head, the embedding takes the buffer of an earlier layer, and stays until its backward.
  CHECK(text_of(order_of(e, {}, 1)) == "g0@0 g1@0 g2@0 g3@1 g4@2 g0@3 r4@6 g2@6 r3@7 g1@7 r2@8 r1@9 r0@10");
  CHECK(announcements_of(order_of(e, {}, 1)).ends_with("0@10/13"));
}

}  // namespace
