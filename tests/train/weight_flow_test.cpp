// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/streamed.hpp>

#include <doctest/doctest.h>

#include "support/sanitizer.hpp"
#include "support/small_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using offload::place;
using test::batch_of;
using test::some_weights;

model::config deep(bool tied) {
  return {.model_type = "llama",
          .vocabulary = 19,
          .hidden = 16,
          .intermediate = 24,
          .layers = 5,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .max_positions = 32,
          .tied_head = tied};
}

template <class P>
using simple_engine = train::engine<model::llama, P>;
template <class P>
using flowing_engine = train::engine<model::llama, P, zero::streamed, offload::super>;

train::engine_options options_with(double max_norm, bool accumulates) {
  return {.max_grad_norm = max_norm,
          .max_rows = 12,
          .max_positions = 12,
          .accumulates = accumulates,
          .recompute = recompute::choice::every_block};
}

/// Which weights live in host memory, and where the state of all units goes in turn: h, s, r.
struct arranging {
  bool everything = false;  ///< and not the blocks alone
  std::string places = "h";
  int weight_rooms = 3;
  int gradient_rooms = 0;  ///< 0: gradients stay
  bool immediate = false;
};

offload::arrangement arrange(std::vector<autograd::unit_layout> const& units, arranging const& how) {
  offload::arrangement a;
  a.buckets = offload::buckets_of(units, 1);
  auto const last = static_cast<int>(units.size()) - 1;
  for (int u = 0; u <= last; ++u) {
    a.flow.weights.push_back(how.everything || (u > 0 && u < last));
    a.flow.gradients.push_back(how.gradient_rooms > 0);
  }
  for (std::size_t i = 0; i < a.buckets.size(); ++i) {
    auto& b = a.buckets[i];
    char const c = how.places[i % how.places.size()];
    b.where = c == 's' ? place::streamed : c == 'h' || a.flows(b) ? place::host : place::resident;
    if (b.where != place::host && !how.immediate) {
      a.flow.gradients[static_cast<std::size_t>(b.unit)] = false;
    }
  }
  a.flow.weight_rooms = how.weight_rooms;
  a.flow.gradient_rooms = how.gradient_rooms;
  a.immediate = how.immediate;
  a.workers = 2;
  a.slots = how.immediate ? 2 : static_cast<int>(a.buckets.size()) + 2;
  return a;
}

/// Overwrites one element of a master.
template <class Engine>
float exchange_master(Engine& e, std::size_t unit, float value) {
  for (auto const& field : e.state_fields()) {
    if (field.name == "unit" + std::to_string(unit) + ".master") {
      float before = 0.0F;
      e.read_state(field, 40, std::as_writable_bytes(std::span{&before, 1}));
      e.write_state(field, 40, std::as_bytes(std::span{&value, 1}));
      return before;
    }
  }
  return 0.0F;
}

struct history {
  std::vector<double> numbers{};  ///< losses, norms, factors and evaluations
  int clipped = 0, free = 0, skipped = 0;

  friend bool operator==(history const&, history const&) = default;
};

/// Many steps, some of them with a gradient that is not finite.
template <class Engine>
history train(Engine& e, int first, int steps, bool accumulates, bool faults) {
  history h;
  auto& numbers = h.numbers;
  for (int i = first; i < first + steps; ++i) {
    double const rate = 1e-2 / (i + 1);
    bool const bad = faults && i % 6 == 4;
    float const good = bad ? exchange_master(e, 2, std::numeric_limits<float>::infinity()) : 0.0F;
    std::vector<data::batch> batches{batch_of({1, 2, i % 19, 4, 5, 6})};
    if (accumulates) {
      batches.push_back(batch_of({7, 6, 3, i % 17}));
      batches.push_back(batch_of({i % 13, 2, 8}));
    }
    e.begin_step(accumulates ? 10 : 5, static_cast<std::int64_t>(batches.size()), rate);
    for (auto const& batch : batches) {
      auto const loss = e.forward(batch);
      numbers.push_back(bad ? 0.0 : loss);
      e.backward();
    }
    auto const done = e.step(rate);
    CHECK(done.accepted == !bad);
    numbers.push_back(bad ? 0.0 : done.grad_norm);
    numbers.push_back(done.factor);
    ++(bad ? h.skipped : done.factor < 1.0F ? h.clipped : h.free);
    if (bad) {
      exchange_master(e, 2, good);
    }
    if (i % 5 == 3) {
      numbers.push_back(e.evaluate(batch_of({5, 6, 7, 8})));
    }
  }
  return h;
}

/// Master, m and v of everything.
template <class Engine>
std::vector<std::byte> everything(Engine& e) {
  std::vector<std::byte> all;
  for (auto const& field : e.state_fields()) {
    std::vector<std::byte> bytes(field.bytes);
    e.read_state(field, 0, bytes);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }
  return all;
}

template <class From, class To>
void move_state(From& from, To& to) {
  auto const into = to.state_fields();
  for (auto const& field : from.state_fields()) {
    std::vector<std::byte> bytes(field.bytes);
    from.read_state(field, 0, bytes);
    for (auto const& other : into) {
      if (other.name == field.name) {
        to.write_state(other, 0, bytes);
      }
    }
  }
  to.set_accepted_steps(from.accepted_steps());
}

constexpr double never = 1e9, sometimes = 0.3, always = 0.05;
constexpr int many_steps = test::under_thread_sanitizer ? 60 : 200;

TEST_CASE_TEMPLATE("an engine with its weights in host memory trains bit for bit like one without", P,
                   precision::fp32, precision::bf16) {
  cpu::device device{2};
  for (bool const tied : {false, true}) {
    for (double const max_norm : {never, sometimes, always}) {
      int const steps = tied ? 25 : many_steps;
      auto options = options_with(max_norm, false);
      simple_engine<P> simple{device, deep(tied), options};
      simple.initialize(some_weights);
      auto const expected = train(simple, 0, steps, false, true);
      CHECK((expected.clipped > 0) == (max_norm != never));
      CHECK((expected.free > 0) == (max_norm != always));
      CHECK(expected.skipped > 0);
      auto const state = everything(simple);
      for (arranging const& how : {arranging{}, arranging{.everything = true, .weight_rooms = 2},
                                   arranging{.places = "s", .weight_rooms = 1},
                                   arranging{.everything = true, .places = "hs", .gradient_rooms = 3},
                                   arranging{.places = "rhs", .weight_rooms = 9, .gradient_rooms = 2}}) {
        CAPTURE(tied);
        CAPTURE(max_norm);
        CAPTURE(how.places);
        CAPTURE(how.weight_rooms);
        options.arrangement = arrange(simple.model().units(), how);
        flowing_engine<P> flowing{device, deep(tied), options};
        flowing.initialize(some_weights);
        REQUIRE(train(flowing, 0, steps, false, true) == expected);
        REQUIRE(everything(flowing) == state);
      }
    }
  }
}

TEST_CASE_TEMPLATE("sums in host memory give the bits of those that stay on the device", P, precision::fp32,
                   precision::bf16) {
  cpu::device device{2};
  for (bool const tied : {false, true}) {
    for (double const max_norm : {never, sometimes, always}) {
      int const steps = tied ? 25 : many_steps;
      auto options = options_with(max_norm, true);
      simple_engine<P> simple{device, deep(tied), options};
      simple.initialize(some_weights);
      auto const expected = train(simple, 0, steps, true, true);
      CHECK(((expected.clipped > 0) == (max_norm != never) || tied));
      CHECK((expected.free > 0) == (max_norm != always));
      CHECK(expected.skipped > 0);
      auto const state = everything(simple);
      // A tied table's gradient is written from the first of a backward to its last.
      for (arranging const& how : {arranging{.gradient_rooms = tied ? 2 : 1},
                                   arranging{.everything = true, .places = "hs", .gradient_rooms = 3},
                                   arranging{.places = "rh", .weight_rooms = 2, .gradient_rooms = 9}}) {
        CAPTURE(tied);
        CAPTURE(max_norm);
        CAPTURE(how.places);
        options.arrangement = arrange(simple.model().units(), how);
        flowing_engine<P> flowing{device, deep(tied), options};
        flowing.initialize(some_weights);
        auto const& leave = options.arrangement.flow.gradients;
        CHECK(std::count(leave.begin(), leave.end(), true) > 2);
        REQUIRE(train(flowing, 0, steps, true, true) == expected);
        REQUIRE(everything(flowing) == state);
      }
    }
  }
}

TEST_CASE("whatever is computed again, and however many micro-batches are added up") {
  cpu::device device{2};
  for (auto const recompute :
       {recompute::choice::none, recompute::choice::automatic, recompute::choice::every_block}) {
    auto options = options_with(sometimes, true);
    options.recompute = recompute;
    simple_engine<precision::bf16> simple{device, deep(false), options};
    simple.initialize(some_weights);
    auto const expected = train(simple, 0, 10, true, true);
    for (int const gradient_rooms : {0, 2}) {
      options.arrangement =
          arrange(simple.model().units(), {.places = "hs", .gradient_rooms = gradient_rooms});
      flowing_engine<precision::bf16> flowing{device, deep(false), options};
      flowing.initialize(some_weights);
      CHECK(train(flowing, 0, 10, true, true) == expected);
      CHECK(everything(flowing) == everything(simple));
    }
  }
}

TEST_CASE("buckets of all places are updated as their gradients come, which share two rooms") {
  cpu::device device{2};
  for (bool const accumulates : {false, true}) {
    for (auto const* places : {"h", "s", "rhs"}) {
      CAPTURE(accumulates);
      CAPTURE(places);
      auto options = options_with(0.0, accumulates);
      simple_engine<precision::bf16> simple{device, deep(true), options};
      simple.initialize(some_weights);
      auto const expected = train(simple, 0, 12, accumulates, false);
      options.arrangement =
          arrange(simple.model().units(), {.places = places, .gradient_rooms = 2, .immediate = true});
      flowing_engine<precision::bf16> flowing{device, deep(true), options};
      flowing.initialize(some_weights);
      CHECK(flowing.plan().gradients < simple.plan().gradients);
      CHECK(train(flowing, 0, 12, accumulates, false) == expected);
      CHECK(everything(flowing) == everything(simple));
    }
  }
}

TEST_CASE("state moves between engines with weights here and there, in the middle of a run") {
  cpu::device device{2};
  auto options = options_with(sometimes, false);
  simple_engine<precision::bf16> simple{device, deep(false), options};
  simple.initialize(some_weights);
  auto const expected = train(simple, 0, 4, false, false);
  train(simple, 4, 8, false, false);

  options.arrangement = arrange(simple.model().units(), {.places = "hs", .gradient_rooms = 3});
  flowing_engine<precision::bf16> flowing{device, deep(false), options};
  flowing.initialize(some_weights);
  CHECK(train(flowing, 0, 4, false, false) == expected);
  simple_engine<precision::bf16> resident{device, deep(false), options_with(sometimes, false)};
  resident.initialize([](auto const&, auto, auto to) { std::fill(to.begin(), to.end(), 1.0F); });
  move_state(flowing, resident);
  train(resident, 4, 4, false, false);
  move_state(resident, flowing);
  train(flowing, 8, 4, false, false);
  CHECK(everything(flowing) == everything(simple));
}

TEST_CASE("the plan of flowing weights and gradients is what is then allocated, of both memories") {
  for (arranging const& how : {arranging{}, arranging{.places = "s", .weight_rooms = 2},
                               arranging{.everything = true, .places = "hs", .gradient_rooms = 2}}) {
    for (bool const accumulates : {false, true}) {
      cpu::device device{2};
      auto options = options_with(1.0, accumulates);
      options.arrangement = arrange(model::llama{deep(false)}.units(), how);
      flowing_engine<precision::bf16> e{device, deep(false), options};
      e.initialize(some_weights);
      CHECK(static_cast<double>(device.bytes_in_use()) ==
            doctest::Approx(static_cast<double>(e.plan().total())).epsilon(0.03));
      CHECK(static_cast<double>(device.bytes_in_use(memory::host)) ==
            doctest::Approx(static_cast<double>(e.plan().host)).epsilon(0.03));
      train(e, 0, 3, accumulates, false);
      CHECK(static_cast<double>(device.peak_bytes()) ==
            doctest::Approx(static_cast<double>(e.plan().total())).epsilon(0.03));
    }
  }
}

TEST_CASE("a step without labels changes nothing, also where nothing waits for the verdict") {
  cpu::device device{2};
  auto options = options_with(0.0, false);
  options.arrangement =
      arrange(model::llama{deep(false)}.units(), {.places = "hs", .gradient_rooms = 2, .immediate = true});
  flowing_engine<precision::bf16> e{device, deep(false), options};
  e.initialize(some_weights);
  train(e, 0, 2, false, false);
  auto const before = everything(e);
  auto batch = batch_of({1, 2, 3});
  batch.targets = {-1, -1, -1};
  e.begin_step(0, 1, 1e-2);
  e.forward(batch);
  e.backward();
  auto const result = e.step(1e-2);
  CHECK_FALSE(result.accepted);
  CHECK(result.grad_norm == 0.0);
  CHECK(everything(e) == before);
  train(e, 2, 2, false, false);
  CHECK(everything(e) != before);
}

TEST_CASE("what cannot flow is refused in words") {
  cpu::device device{1};
  auto const units = model::llama{deep(false)}.units();
  auto options = options_with(1.0, false);
  options.arrangement = arrange(units, {.gradient_rooms = 2});
  using resident = train::engine<model::llama, precision::fp32, offload::super>;
  CHECK_THROWS_WITH_AS((resident{device, deep(false), options}), doctest::Contains("zero::resident"), error);
  flowing_engine<precision::fp32> e{device, deep(false), options};
  e.initialize(some_weights);
  train(e, 0, 1, false, false);
  std::vector<float> gradient(16);
  CHECK_THROWS_WITH_AS(e.read_gradient(e.model().units()[5], 0, gradient),
                       doctest::Contains("has left the device"), error);
}

}  // namespace
