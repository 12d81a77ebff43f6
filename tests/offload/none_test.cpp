// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/offload/none.hpp>

#include <doctest/doctest.h>

#include "conformance/unit_store.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace {

using namespace superoffload;

/// State over the conformance units, with gradients that the test writes. Device memory is the host's.
template <class T>
struct harness {
  cpu::device device{2};
  cpu::stream stream{device};
  std::vector<autograd::unit_layout> units = conformance::store_units();
  std::vector<std::vector<T>> weights, gradients;
  offload::device_state<cpu::device, T> state;

  harness()
      : weights(zeros()),
        gradients(zeros()),
        state{device, stream, units, [this](int u) { return weights[u].data(); }} {
    stream.synchronize();
  }
  std::vector<std::vector<T>> zeros() const {
    std::vector<std::vector<T>> all;
    for (auto const& unit : units) { all.emplace_back(static_cast<std::size_t>(unit.elements())); }
    return all;
  }
  offload::verdict judge() {
    for (int u : {1, 0}) { state.ready(u, gradients[u].data()); }
    return state.judge();
  }
};

TEST_CASE("the verdict is the norm over all units, and tells a single bad number") {
  harness<float> h;
  h.gradients[0][0] = 3.0F;
  h.gradients[1][2] = 4.0F;
  auto const good = h.judge();
  CHECK(good.norm == 5.0);
  CHECK(good.finite);
  for (float const bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    h.gradients[1][2] = bad;
    CHECK_FALSE(h.judge().finite);
  }
  h.gradients[1][2] = 1e30F;  // its square overflows float, not double
  CHECK(h.judge().finite);
}

TEST_CASE("an update moves trainable tensors by the rule and leaves frozen ones, in both precisions") {
  harness<bfloat16> h;
  for (auto& unit : h.gradients) {
    for (auto& g : unit) { g = bfloat16{1.0F}; }
  }
  for (int u : {0, 1}) {
    for (std::int64_t i = 0; i < h.units[u].elements(); ++i) { h.state.at(u).master[i] = 1.0F; }
  }
  h.units[0].tensors()[0].decays = false;
  CHECK(h.judge().finite);
  h.state.update({.weight_decay = 0.5}, 0.1, 1, 1.0F);
  h.stream.synchronize();
  auto const first_of = [&](int u, int tensor) {
    return h.state.at(u).master[h.units[u].tensors()[tensor].offset];
  };
  CHECK(first_of(0, 0) == doctest::Approx(0.9));         // no decay
  CHECK(first_of(0, 1) == 1.0F);                         // frozen
  CHECK(first_of(0, 2) == doctest::Approx(0.95 - 0.1));  // decayed first
  CHECK(float{h.weights[1][0]} == float{bfloat16::of_master(h.state.at(1).master[0])});
}

TEST_CASE("working weights are made from the masters") {
  harness<bfloat16> h;
  h.state.at(0).master[3] = 1.0F + 0x1p-9F + 0x1p-12F;
  h.state.emit_weights();
  h.stream.synchronize();
  CHECK(h.weights[0][3] == bfloat16::of_master(1.0F + 0x1p-9F + 0x1p-12F));
}

}  // namespace
