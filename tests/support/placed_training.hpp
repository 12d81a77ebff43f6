// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Trains engines with state and weights in several memory tiers, on any device, and compares all results with
// those of a simple engine.
#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/autograd/unit.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/placement.hpp>
#include <superoffload/train/engine.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"
#include "support/fault_case.hpp"
#include "support/small_inputs.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::test {

/// Which units' weights live in host memory, and the tiers of all buckets in turn: h, s, r.
struct offloading_case {
  enum class units { none, blocks, all };
  units offloaded = units::blocks;
  std::string tiers = "h";
  int weight_buffers = 3;
  int gradient_buffers = 0;  ///< 0: gradients stay
  bool immediate = false;
  autograd::activation_offloading activations{};
};

/// Places that between them have every tier, offloaded weights, gradients and activations.
inline std::vector<offloading_case> const places{
    {.offloaded = offloading_case::units::none, .tiers = "hsr"},
    {.offloaded = offloading_case::units::all, .tiers = "hs", .weight_buffers = 2, .gradient_buffers = 3},
    {.offloaded = offloading_case::units::blocks,
     .tiers = "h",
     .gradient_buffers = 3,
     .activations = {3, 1}}};

/// A model for train(), whose batches have up to six rows, and the options of its engine.
inline model::config placed_llama(int layers = 4) {
  return {.model_type = "llama",
          .vocabulary = 19,
          .hidden = 16,
          .intermediate = 24,
          .layers = layers,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .max_positions = 32};
}
inline train::engine_options placed_options(double max_norm, bool accumulates) {
  return {.max_grad_norm = max_norm, .max_rows = 12, .max_positions = 12, .accumulates = accumulates};
}

inline offload::configuration configure(std::vector<autograd::unit_layout> const& units,
                                        offloading_case const& how) {
  offload::configuration a;
  a.buckets = offload::buckets_of(units, 1);
  auto const last = static_cast<int>(units.size()) - 1;
  for (int u = 0; u <= last; ++u) {
    bool const is_block = u > 0 && u < last;
    a.offloaded.weights.push_back(how.offloaded == offloading_case::units::all ||
                                  (how.offloaded == offloading_case::units::blocks && is_block));
    a.offloaded.gradients.push_back(how.gradient_buffers > 0);
  }
  for (std::size_t i = 0; i < a.buckets.size(); ++i) {
    auto& b = a.buckets[i];
    char const c = how.tiers[i % how.tiers.size()];
    b.where = c == 's'                             ? offload::tier::device_updated
              : c == 'h' || a.weights_offloaded(b) ? offload::tier::host
                                                   : offload::tier::resident;
    if (b.where != offload::tier::host && !how.immediate) {
      a.offloaded.gradients[static_cast<std::size_t>(b.unit)] = false;
    }
  }
  a.offloaded.weight_buffers = how.weight_buffers;
  a.offloaded.gradient_buffers = how.gradient_buffers;
  a.immediate = how.immediate;
  a.activations = how.activations;
  a.workers = 2;
  a.pinned_buffers = how.immediate ? 2 : static_cast<int>(a.buckets.size()) + 2;
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

/// Trains many steps, some of them with a gradient that is not finite.
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

/// Trains a simple engine and engines with other configurations, and checks that all have the same bits.
/// \returns their results.
template <class Simple, class Placed, class Device>
history check_same_bits(Device& device, model::config const& config, train::engine_options options, int steps,
                        bool faults, std::vector<offloading_case> const& all) {
  Simple simple{device, config, options};
  simple.initialize(some_weights);
  auto const expected = train(simple, 0, steps, options.accumulates, faults);
  auto const state = everything(simple);
  for (auto const& how : all) {
    CAPTURE(config.tied_head);
    CAPTURE(options.max_grad_norm);
    CAPTURE(how.tiers);
    CAPTURE(static_cast<int>(how.offloaded));
    CAPTURE(how.weight_buffers);
    CAPTURE(how.gradient_buffers);
    CAPTURE(how.activations.buffers);
    CAPTURE(how.activations.kept);
    fault_case const with_bad_steps{"F12", faults ? steps : 0};
    options.configuration = configure(simple.model().units(), how);
    Placed placed{device, config, options};
    placed.initialize(some_weights);
    REQUIRE(train(placed, 0, steps, options.accumulates, faults) == expected);
    REQUIRE(everything(placed) == state);
  }
  return expected;
}

/// Trains an engine that keeps all activations, one that recomputes blocks, and one that offloads their
/// inputs, and checks that all have the same bits.
template <class Engine, class Device>
void check_recompute(Device& device, model::config const& config, int steps) {
  auto const trained = [&](recompute::choice recompute) {
    auto options = placed_options(0.3, true);
    options.recompute = recompute;
    Engine engine{device, config, options};
    engine.initialize(some_weights);
    auto const history = train(engine, 0, steps, true, false);
    return std::pair{history, everything(engine)};
  };
  auto const kept = trained(recompute::choice::none);
  CHECK(trained(recompute::choice::every_block) == kept);
  CHECK(trained(recompute::choice::offload) == kept);
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

}  // namespace superoffload::test
