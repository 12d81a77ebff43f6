// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/train/engine/engine_agreement.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace superoffload::train {

SUPEROFFLOAD_INLINE void expect_same_engines(comm::host_group const& ranks,
                                             std::vector<autograd::unit_layout> const& units, dtype type,
                                             engine_options const& o) {
  std::string layout;
  for (auto const& unit : units) {
    layout += concat(unit.name(), " ", unit.elements(), unit.wide_gradient() ? " wide" : "", ":");
    for (auto const& t : unit.tensors()) {
      layout += concat(" ", t.name, " ", t.offset, " ", t.count(), t.trainable ? " trains" : "",
                       t.decays ? " decays" : "", ";");
    }
  }
  comm::expect_same(ranks, "the element type", name_of(type));
  comm::expect_same(ranks, "the layout of the model", layout);
  comm::expect_same(ranks, "max_grad_norm", concat(o.max_grad_norm));
  comm::expect_same(ranks, "the settings of AdamW",
                    concat("betas ", o.adamw.beta1, " ", o.adamw.beta2, ", eps ", o.adamw.epsilon, ", decay ",
                           o.adamw.weight_decay));
  comm::expect_same(ranks, "the format of the optimizer state", name_of(o.configuration.format));
  comm::expect_same(ranks, "accumulates", concat(o.accumulates));
  comm::expect_same(ranks, "sequence_ranks", concat(o.sequence_ranks));
  comm::expect_same(ranks, "weight_ranks", concat(o.configuration.weight_ranks));
  comm::expect_same(ranks, "sums_in_copies", concat(o.configuration.sums_in_copies));
  auto const& buffers = o.configuration.buffers;
  comm::expect_same(ranks, "gather buffers", concat(buffers.weights, " ", buffers.gradients));
}

SUPEROFFLOAD_INLINE void gather_with_arguments(comm::host_group const& ranks, step_arguments const& own,
                                               double const* from, double* to, std::size_t count) {
  if (ranks.ranks() == 1) {
    return ranks.gather(from, to, count * sizeof(double));
  }
  std::vector<double> mine(from, from + count);
  mine.insert(mine.end(), {own.rate, own.label_tokens});
  std::vector<double> all(mine.size() * static_cast<std::size_t>(ranks.ranks()));
  ranks.gather(mine.data(), all.data(), mine.size() * sizeof(double));
  auto const same = [&](std::size_t r, std::size_t argument, char const* what) {
    auto const first = all[count + argument], other = all[r * mine.size() + count + argument];
    if (first != other) {
      throw comm::agreed_error{exit_code::bad_input,
                               concat("ranks differ in ", what, " of a step: rank 0 has ", first, ", rank ",
                                      r, " has ", other, "; expected the same on all"),
                               ranks.is_first()};
    }
  };
  for (std::size_t r = 0; r < static_cast<std::size_t>(ranks.ranks()); ++r) {
    std::copy_n(all.data() + r * mine.size(), count, to + r * count);
    same(r, 0, "the learning rate");
    same(r, 1, "the label tokens");
  }
}

}  // namespace superoffload::train
