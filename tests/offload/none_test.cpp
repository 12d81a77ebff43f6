// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/offload/none.hpp>

#include <doctest/doctest.h>

#include "conformance/unit_store.hpp"
#include "support/fault_case.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace {

using namespace superoffload;

/// State of the conformance units, with gradients that the test writes. The CPU is the device.
template <class T>
struct harness {
  cpu::device device{2};
  cpu::stream stream{device};
  std::vector<autograd::unit_layout> units;
  std::vector<std::vector<T>> weights, gradients;
  offload::device_state<cpu::device, T> state;

  explicit harness(bool first_decays = true)
      : units{[first_decays] {
          auto all = conformance::store_units();
          all[0].tensors()[0].decays = first_decays;
          return all;
        }()},
        weights(zeros()),
        gradients(zeros()),
        state{device, stream, units, {}, [this](int u) { return weights[u].data(); }} {
    stream.synchronize();
  }
  std::vector<std::vector<T>> zeros() const {
    std::vector<std::vector<T>> all;
    for (auto const& unit : units) { all.emplace_back(static_cast<std::size_t>(unit.elements())); }
    return all;
  }
  std::vector<float> read(int u, offload::state_part part) {
    std::vector<float> values(static_cast<std::size_t>(units[u].elements()));
    state.read(u, part, 0, values);
    return values;
  }
  offload::gradient_check check_gradient() {
    for (int u : {1, 0}) { state.ready(u, {gradients[u].data()}); }
    return state.check_gradient();
  }
};

TEST_CASE("the gradient check gives the norm over all units and finds a single bad number") {
  harness<float> h;
  h.gradients[0][0] = 3.0F;
  h.gradients[1][2] = 4.0F;
  auto const good = h.check_gradient();
  CHECK(good.norm == 5.0);
  CHECK(good.finite);
  for (float const bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    h.gradients[1][2] = bad;
    CHECK_FALSE(h.check_gradient().finite);
  }
  h.gradients[1][2] = 1e30F;  // its square overflows float, not double
  CHECK(h.check_gradient().finite);
}

TEST_CASE_TEMPLATE("a number that is not finite is found wherever it is in a gradient", T, float, bfloat16) {
  harness<T> h;
  std::size_t place = 0;
  for (std::size_t u = 0; u < h.units.size(); ++u) {
    for (auto const& tensor : h.units[u].tensors()) {
      if (!tensor.trainable) {
        continue;
      }
      // The first, the last, and others between them.
      auto const elements = static_cast<std::size_t>(tensor.count());
      auto const places = std::min(elements, test::in_long_tests(std::size_t{200}, std::size_t{20}));
      for (std::size_t k = 0; k < places; ++k) {
        auto const i = k * (elements - 1) / std::max<std::size_t>(1, places - 1);
        CAPTURE(u);
        CAPTURE(i);
        test::fault_case const bad{"F10"};
        constexpr float infinity = std::numeric_limits<float>::infinity();
        float const numbers[] = {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
        auto& at = h.gradients[u][static_cast<std::size_t>(tensor.offset) + i];
        at = T(numbers[place++ % 3]);
        auto const found = h.check_gradient();
        at = T(0.0F);
        CHECK_FALSE(found.finite);
        CHECK_FALSE(std::isfinite(found.norm));
      }
    }
  }
  CHECK(h.check_gradient().finite);
  CHECK(place > 30);
}

TEST_CASE("an update changes trainable tensors by AdamW and leaves frozen ones, in both precisions") {
  harness<bfloat16> h{false};
  for (auto& unit : h.gradients) {
    for (auto& g : unit) { g = bfloat16{1.0F}; }
  }
  for (int u : {0, 1}) {
    h.state.write(u, offload::state_part::master, 0,
                  std::vector<float>(static_cast<std::size_t>(h.units[u].elements()), 1.0F));
  }
  CHECK(h.check_gradient().finite);
  h.state.update({.settings = {.weight_decay = 0.5}, .rate = 0.1});
  auto const master = h.read(0, offload::state_part::master);
  auto const first_of = [&](int tensor) {
    return master[static_cast<std::size_t>(h.units[0].tensors()[tensor].offset)];
  };
  CHECK(first_of(0) == doctest::Approx(0.9));         // no decay
  CHECK(first_of(1) == 1.0F);                         // frozen
  CHECK(first_of(2) == doctest::Approx(0.95 - 0.1));  // decayed first
  CHECK(h.weights[1][0] == bfloat16::of_master(h.read(1, offload::state_part::master)[0]));
}

TEST_CASE_TEMPLATE(
    "state is written and read in pieces, in fp32, and a written master sets its working weight", T, float,
    bfloat16) {
  using offload::state_part;
  harness<T> h;
  auto const elements = h.units[0].elements();
  auto const value = [](state_part part, std::int64_t i) {
    return 1.0F + 0x1p-20F * static_cast<float>(i) + 0.5F * static_cast<float>(part);
  };
  for (auto const part : {state_part::v, state_part::master, state_part::m}) {
    for (std::int64_t first = 0; first < elements; first += 50) {
      std::vector<float> piece;
      for (auto i = first; i < std::min(first + 50, elements); ++i) { piece.push_back(value(part, i)); }
      h.state.write(0, part, first, piece);
    }
  }
  for (auto const part : {state_part::master, state_part::m, state_part::v}) {
    std::vector<float> piece(77);
    h.state.read(0, part, 33, piece);
    for (std::int64_t i = 0; i < 77; ++i) { CHECK(piece[i] == value(part, 33 + i)); }
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    auto const master = value(state_part::master, i);
    CHECK(float{h.weights[0][i]} == (std::is_same_v<T, float> ? master : float{bfloat16::of_master(master)}));
  }
  CHECK(h.read(1, state_part::master) == std::vector<float>(static_cast<std::size_t>(h.units[1].elements())));
}

TEST_CASE("the state of a weight takes 10 bytes in bfloat16 and 8 in float, beside the cells of the norm") {
  auto const units = conformance::store_units();
  std::size_t elements = 0, cells = 0;
  for (auto const& unit : units) {
    elements += static_cast<std::size_t>(unit.elements());
    cells += static_cast<std::size_t>(kernel::norm_cells(unit.elements()));
  }
  CHECK(offload::device_state<cpu::device, bfloat16>::bytes(units, {}).device == 10 * elements + 8 * cells);
  CHECK(offload::device_state<cpu::device, float>::bytes(units, {}).device == 8 * elements + 8 * cells);
}

}  // namespace
