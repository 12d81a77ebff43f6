// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/train/engine/engine_options.hpp>

#include <string>
#include <vector>

namespace superoffload::train {

/// Compares what must be the same in all ranks' engines, before a collective depends on it.
/// \throws comm::agreed_error(bad_input) on every rank, with what differs.
inline void expect_same_engines(comm::host_group const& ranks,
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

}  // namespace superoffload::train
