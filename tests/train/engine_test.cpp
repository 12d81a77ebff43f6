// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <vector>

namespace {

using namespace superoffload;

static_assert(std::same_as<train::engine<model::llama, precision::bf16, recompute::every_block>,
                           train::engine<recompute::every_block, precision::bf16, model::llama>>);
static_assert(
    std::same_as<train::engine<model::llama>,
                 train::engine<model::llama, cpu::device, precision::fp32, zero::resident, offload::none>>);

model::config small() {
  return {.model_type = "llama",
          .vocabulary = 19,
          .hidden = 16,
          .intermediate = 24,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .max_positions = 32};
}

/// Weights without a file: a fixed sequence by name and place.
void some_weights(std::string const& name, std::int64_t first, std::span<float> to) {
  for (auto& value : to) {
    value = 0.1F * std::sin(static_cast<float>(first++) + static_cast<float>(name.size()));
  }
}

data::batch batch_of(std::vector<std::int32_t> tokens) {
  data::batch b;
  b.tokens = tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    b.positions.push_back(static_cast<std::int32_t>(i));
    b.targets.push_back(i + 1 < tokens.size() ? tokens[i + 1] : -1);
  }
  b.starts = {0, static_cast<std::int32_t>(tokens.size())};
  return b;
}

template <class Engine>
std::vector<float> all_weights(Engine& e) {
  std::vector<float> all;
  for (auto const& unit : e.model().units()) {
    std::vector<float> part(static_cast<std::size_t>(unit.elements()));
    e.read_weights(unit, 0, part);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST_CASE_TEMPLATE("the plan is what is then allocated", P, precision::fp32, precision::bf16) {
  for (bool const recompute : {false, true}) {
    for (bool const accumulates : {false, true}) {
      cpu::device device{2};
      train::engine<model::llama, P> e{
          device,
          small(),
          {.max_rows = 24, .max_positions = 12, .accumulates = accumulates, .recompute_blocks = recompute}};
      CHECK(device.bytes_in_use() == 0);
      e.initialize(some_weights);
      CHECK(static_cast<double>(device.bytes_in_use()) ==
            doctest::Approx(static_cast<double>(e.plan().total())).epsilon(0.03));
      e.forward(batch_of({1, 2, 3, 4, 5}));
      e.backward();
      e.step(1e-3);
      e.synchronize();
      CHECK(static_cast<double>(device.peak_bytes()) ==
            doctest::Approx(static_cast<double>(e.plan().total())).epsilon(0.03));
    }
  }
}

TEST_CASE_TEMPLATE("training lowers the loss of a batch it sees again", P, precision::fp32, precision::bf16) {
  cpu::device device{2};
  train::engine<model::llama, P> e{device, small(), {.max_rows = 12, .max_positions = 12}};
  e.initialize(some_weights);
  auto const batch = batch_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  double const before = e.evaluate(batch) / 11.0;
  double first = 0.0;
  for (int i = 0; i < 60; ++i) {
    double const loss = e.forward(batch);
    if (i == 0) {
      first = loss;
    }
    e.backward();
    CHECK(e.step(1e-2).accepted);
  }
  CHECK(first == doctest::Approx(before).epsilon(1e-6));
  CHECK(e.evaluate(batch) / 11.0 < 0.5 * before);
  CHECK(e.accepted_steps() == 60);
}

TEST_CASE("a step without labels, or with a gradient that is not finite, changes nothing") {
  cpu::device device{2};
  train::engine<model::llama, precision::bf16> e{device, small(), {.max_rows = 12, .max_positions = 12}};
  e.initialize(some_weights);
  auto const before = all_weights(e);
  SUBCASE("no labels") {
    auto batch = batch_of({1, 2, 3});
    batch.targets = {-1, -1, -1};
    CHECK(e.forward(batch) == 0.0);
    e.backward();
    CHECK_FALSE(e.step(1.0).accepted);
  }
  SUBCASE("not finite") {
    for (auto const& blob : e.state_blobs()) {
      float const infinity = std::numeric_limits<float>::infinity();
      if (blob.name == "unit3.master") {
        e.write_state(blob, 0, std::as_bytes(std::span{&infinity, 1}));
      }
    }
    e.state_written();
    auto const poisoned = all_weights(e);
    e.forward(batch_of({1, 2, 3, 4}));
    e.backward();
    auto const result = e.step(1.0);
    CHECK_FALSE(result.accepted);
    CHECK_FALSE(std::isfinite(result.grad_norm));
    CHECK(all_weights(e) == poisoned);
    CHECK(e.accepted_steps() == 0);
    return;
  }
  CHECK(all_weights(e) == before);
  CHECK(e.accepted_steps() == 0);
}

TEST_CASE("a micro-batch without rows takes part with a zero gradient") {
  auto const train_on = [](std::vector<data::batch> const& micro_batches) {
    cpu::device device{2};
    train::engine<model::llama> e{
        device, small(), {.max_rows = 12, .max_positions = 12, .accumulates = true}};
    e.initialize(some_weights);
    e.begin_step(4, static_cast<std::int64_t>(micro_batches.size()));
    for (auto const& batch : micro_batches) {
      e.forward(batch);
      e.backward();
    }
    e.step(1e-2);
    return all_weights(e);
  };
  data::batch empty;
  empty.starts = {0};
  auto const batch = batch_of({1, 2, 3, 4, 5});
  auto const expected = train_on({batch});
  CHECK(train_on({batch, empty}) == expected);
  CHECK(train_on({empty, batch}) == expected);
}

TEST_CASE("frozen tensors keep their bits, and are left out of the norm") {
  cpu::device device{2};
  auto const frozen = [](autograd::tensor_entry const& t) {
    return t.name.find("q_proj") != std::string::npos || t.name.find("embed") != std::string::npos;
  };
  train::engine<model::llama, precision::bf16> e{
      device, small(), {.max_rows = 12, .max_positions = 12, .trainable = [&](auto const& t) {
                          return !frozen(t);
                        }}};
  train::engine<model::llama, precision::bf16> whole{device, small(), {.max_rows = 12, .max_positions = 12}};
  e.initialize(some_weights);
  whole.initialize(some_weights);
  auto const before = all_weights(e);
  for (auto* engine : {&e}) {
    engine->forward(batch_of({1, 2, 3, 4, 5}));
    engine->backward();
  }
  whole.forward(batch_of({1, 2, 3, 4, 5}));
  whole.backward();
  CHECK(e.step(1e-2).grad_norm < whole.step(1e-2).grad_norm);
  auto const after = all_weights(e);
  std::size_t at = 0;
  for (auto const& unit : e.model().units()) {
    for (auto const& tensor : unit.tensors()) {
      CAPTURE(tensor.name);
      auto const begin = at + static_cast<std::size_t>(tensor.offset);
      bool const same =
          std::equal(before.begin() + begin, before.begin() + begin + tensor.count(), after.begin() + begin);
      CHECK(same == frozen(tensor));
    }
    at += static_cast<std::size_t>(unit.elements());
  }
}

TEST_CASE("what does not fit the plan, or the contract, is refused in words") {
  cpu::device device{1};
  CHECK_THROWS_WITH_AS((train::engine<model::llama>{device, small(), {}}),
                       doctest::Contains("at least one token"), error);
  auto other = small();
  other.model_type = "mamba";
  CHECK_THROWS_WITH_AS((train::engine<model::llama>{device, other, {.max_rows = 1, .max_positions = 1}}),
                       doctest::Contains("'mamba'"), error);
  train::engine<model::llama> e{device, small(), {.max_rows = 4, .max_positions = 4}};
  CHECK_THROWS_WITH_AS(e.initialize([](auto const&, auto, auto to) {
    for (auto& value : to) { value = std::numeric_limits<float>::quiet_NaN(); }
  }),
                       doctest::Contains("not finite"), error);
  e.initialize(some_weights);
  CHECK_THROWS_WITH_AS(e.forward(batch_of({1, 2, 3, 4, 5})), doctest::Contains("max_rows is 4"), error);
  CHECK_THROWS_WITH_AS(e.begin_step(4, 2), doctest::Contains("accumulates"), error);
}

}  // namespace
