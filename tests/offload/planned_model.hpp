// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/workload.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace superoffload::test {

inline constexpr std::size_t gib = std::size_t{1} << 30;

/// A machine with an H200 on PCIe 5 and 16 cores, as in bench/hardware.
inline offload::machine h200_machine() {
  offload::machine m;
  m.name = "server";
  m.device = {.memory = 140 * gib,
              .reserve = 2 * gib,
              .gemms = 740e12,
              .attention_forward = 543e12,
              .attention_backward = 382e12,
              .bandwidth = 4.28e12,
              .round_trip = 5e-5};
  m.link = {{55.4e9, 55.6e9}, {50.8e9, 50.8e9}, {0.78, 0.78}, 1e-5};
  m.host = {.memory = 125 * gib, .reserve = 4 * gib, .cores = 16};
  m.adam = {{.144e-9, .105e-9, .111e-9, .156e-9, .155e-9, .125e-9},
            {.185e-9, .135e-9, .159e-9, .201e-9, .199e-9, .161e-9},
            15,
            1.72e-9};
  return m;
}

/// A decoder of the given size, with untied embeddings, and the workload of a step.
struct planned_model {
  std::vector<autograd::unit_layout> units;
  offload::workload work;

  explicit planned_model(int layers = 32, std::int64_t sequences = 4, std::int64_t hidden = 4096,
                         std::int64_t intermediate = 14336, std::int64_t vocabulary = 128256) {
    constexpr std::int64_t length = 2048;
    auto const tokens = sequences * length;
    auto const number = [](std::int64_t n) { return static_cast<double>(n); };
    auto const block = hidden * (hidden * 5 / 2 + 3 * intermediate);
    double const gemms = 2.0 * number(block) * number(tokens);
    double const attention = 2.0 * number(hidden) * number(tokens) * number(length);
    double const bytes = 24.0 * number(hidden) * number(tokens);
    double const logits = number(vocabulary) * number(tokens);
    units.emplace_back(0, "embedding", true).add_matrix({{"embedding", vocabulary}}, hidden);
    work.units.push_back({{0.0, 0.0, 0.1 * bytes}, {0.0, 0.0, 0.2 * bytes}});
    for (int i = 1; i <= layers; ++i) {
      units.emplace_back(i, "layer").add_matrix({{"block", block / hidden}}, hidden);
      work.units.push_back({{gemms, attention, bytes}, {2.0 * gemms, 2.5 * attention, 2.0 * bytes}});
    }
    units.emplace_back(layers + 1, "head", true).add_matrix({{"head", vocabulary}}, hidden);
    work.units.push_back({{6.0 * logits * number(hidden), 0.0, 14.0 * logits}, {}});
    auto const kept = [&](double rows, double recomputed) {
      return static_cast<std::size_t>(
          rows * number(hidden) * (2.0 * layers + (1.0 - recomputed) * layers * 30.0 + 30.0) + 2e9);
    };
    for (double const recomputed : {0.0, 0.5, 1.0}) {
      auto& level = work.levels.emplace_back();
      level.name = recomputed == 0.0 ? "none" : recomputed == 1.0 ? "every block" : "half";
      level.activations = kept(number(tokens), recomputed);
      level.recompute.assign(units.size(), {recomputed * gemms, recomputed * attention, recomputed * bytes});
      level.recompute.front() = level.recompute.back() = {};
    }
    work.tokens = tokens;
    work.model_flops = 3.0 * (layers * (gemms + attention) + 2.0 * logits * number(hidden));
    work.workspaces = 10 << 20;
  }
};

}  // namespace superoffload::test
