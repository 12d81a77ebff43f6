// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The contract of every architecture, as a function for a doctest case with each configuration.

#include <superoffload/model/architecture.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

namespace superoffload::conformance {

template <model::architecture A>
void architecture_keeps_its_contract(model::config const& config) {
  A architecture{config};
  CHECK(architecture.settings().hidden == config.hidden);
  auto& units = architecture.units();
  REQUIRE_FALSE(units.empty());
  std::set<std::string> names;
  for (std::size_t i = 0; i < units.size(); ++i) {
    CHECK(units[i].id() == static_cast<int>(i));
    CHECK(units[i].elements() % autograd::unit_layout::alignment == 0);
    std::int64_t end = 0;
    for (auto const& tensor : units[i].tensors()) {
      CAPTURE(tensor.name);
      CHECK(names.insert(tensor.name).second);
      CHECK(tensor.count() > 0);
      CHECK(tensor.offset >= end);  // in order, no overlap
      end = tensor.offset + tensor.count();
      CHECK(end <= units[i].elements());
      CHECK(tensor.trainable);
    }
  }
  auto const flops = [&](std::int64_t tokens, std::int64_t pairs) {
    return architecture.forward_flops(tokens, [&](std::int32_t) { return pairs; });
  };
  CHECK(flops(0, 0) == 0.0);
  CHECK(flops(20, 30) == doctest::Approx(10.0 * flops(2, 3)));

  for (auto& unit : units) {
    for (auto& tensor : unit.tensors()) { tensor.trainable = false; }
  }
  architecture.apply_freeze();
  for (auto const& unit : units) { CHECK_FALSE(unit.trainable()); }
}

}  // namespace superoffload::conformance
