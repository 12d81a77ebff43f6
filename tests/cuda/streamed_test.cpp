// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Weights in host memory on a GPU: the store's contract, and whole steps against those with everything on it.
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/streamed.hpp>

#include <doctest/doctest.h>

#include "conformance/unit_store.hpp"
#include "support/small_inputs.hpp"

#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
using offload::place;
using test::some_weights;

TEST_CASE_TEMPLATE("the streamed store keeps a store's contract on a GPU", T, float, bfloat16, double) {
  cuda::device device;
  for (bool const gradients : {false, true}) {
    zero::flow const f{.weights = {true, true}, .gradients = {gradients, gradients}, .weight_rooms = 2};
    for (int const micro_batches : {1, 2}) {
      conformance::unit_store_keeps_its_contract<T>(
          device,
          [&](auto& d, auto& stream, auto const& units, bool accumulates,
              zero::gradient_sink<cuda::stream> sink) {
            return std::make_unique<zero::streamed_store<cuda::device, T>>(d, stream, units, accumulates, f,
                                                                           sink);
          },
          micro_batches);
    }
  }
}

model::config small() {
  return {.model_type = "llama",
          .vocabulary = 61,
          .hidden = 64,
          .intermediate = 96,
          .layers = 5,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .max_positions = 64};
}

data::batch some_batch(int step) {
  data::batch b;
  for (std::int32_t i = 0; i < 32; ++i) {
    b.tokens.push_back((i * i + step) % 61);
    b.positions.push_back(i);
    b.targets.push_back(i < 31 ? ((i + 1) * (i + 1) + step) % 61 : -1);
  }
  b.starts = {0, 32};
  return b;
}

template <class Engine>
std::vector<double> train(Engine& e, int steps, int micro_batches) {
  std::vector<double> numbers;
  for (int i = 0; i < steps; ++i) {
    e.begin_step(31 * micro_batches, micro_batches, 1e-3);
    for (int k = 0; k < micro_batches; ++k) {
      numbers.push_back(e.forward(some_batch(3 * i + k)));
      e.backward();
    }
    numbers.push_back(e.step(1e-3).grad_norm);
  }
  for (auto const& unit : e.model().units()) {
    std::vector<float> weights(static_cast<std::size_t>(unit.elements()));
    e.read_weights(unit, 0, weights);
    numbers.insert(numbers.end(), weights.begin(), weights.end());
  }
  return numbers;
}

TEST_CASE_TEMPLATE("on a GPU, weights in host memory change no bit", P, precision::fp32, precision::bf16) {
  cuda::device device;
  for (auto const& [clips, micro_batches] : {std::pair{true, 1}, {false, 1}, {true, 3}, {false, 3}}) {
    CAPTURE(clips);
    CAPTURE(micro_batches);
    train::engine_options options{.max_grad_norm = clips ? 0.3 : 0.0,
                                  .max_rows = 32,
                                  .max_positions = 32,
                                  .accumulates = micro_batches > 1};
    train::engine<model::llama, cuda::device, P> simple{device, small(), options};
    simple.initialize(some_weights);
    auto const expected = train(simple, 60, micro_batches);
    for (auto const where : {place::host, place::streamed}) {
      auto& a = options.arrangement = {};
      auto const units = simple.model().units().size();
      a.buckets = offload::buckets_of(simple.model().units(), 1);
      for (auto& b : a.buckets) { b.where = where; }
      a.flow.weights.assign(units, true);
      a.flow.gradients.assign(units, where == place::host || !clips);
      a.slots = static_cast<int>(a.buckets.size()) + 2;
      a.immediate = !clips;
      train::engine<model::llama, cuda::device, P, zero::streamed, offload::super> flowing{device, small(),
                                                                                           options};
      flowing.initialize(some_weights);
      CHECK(train(flowing, 60, micro_batches) == expected);
    }
  }
}

}  // namespace
