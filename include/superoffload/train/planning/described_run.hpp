// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/described_device.hpp>
#include <superoffload/core/gpu.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/view.hpp>
#include <superoffload/train/engine/lay_out.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/planning/alternatives.hpp>
#include <superoffload/train/planning/step_plan.hpp>
#include <superoffload/train/run/report.hpp>
#include <superoffload/zero/sharded.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace superoffload::train {

/// The steps that the options ask for, of an engine on a machine that is described. \throws error(bad_input)
/// if ranks cannot share the rows of this model's micro-batches as the options say
template <element T>
step_shape shape_on(model::view<described_device, T> model, offload::machine const& m,
                    training_options const& o) {
  expect_shareable(o.sequence_ranks, o.ranks, model.settings());
  auto shape = shape_of(o);
  if (shape.ranks > 1) {
    auto const buffers =
        zero::buffers_of_rank<T>(model.units(), shape.ranks, {.tied_embeddings = model.settings().tied_head});
    // A reduction also holds the parts that have arrived from other ranks, and the sums of hosts.
    auto const ranks = static_cast<std::size_t>(shape.ranks);
    auto const part = std::min(buffers.gradients.largest() / ranks, gpu::sum_part_bytes);
    auto const of_host = static_cast<std::size_t>(m.peers.ranks_of_host);
    auto const hosts = of_host > 1 ? (ranks + of_host - 1) / of_host : 1;
    auto const sums = hosts > 1 ? (2 * hosts - 1) * part * sizeof(wide<T>) / sizeof(T) : 0;
    shape.whole_gradients = buffers.gradients.total() + (ranks - hosts) * part + sums;
  }
  return shape;
}

inline described_device device_of(offload::machine const& m) {
  return {m.name, m.device.memory - std::min(m.device.memory, m.device.reserve)};
}

/// The plan of a run, or of one of its ranks, on a machine that is described and not measured.
template <element T>
offload::plan plan_on(model::view<described_device, T> model, offload::machine const& m,
                      offload::settings const& s, training_options const& o) {
  auto const device = device_of(m);
  auto plan = plan_step(dry_model_of<T>(device, model), shape_on(model, m, o), m, s);
  if (!plan.fits) {
    plan.refusal = refusal_of(plan, m.name, o, [&](training_options const& other) {
      auto const tiled = model.with_tiled_mlp(other.tiled_mlp);
      return step_fits(dry_model_of<T>(device, tiled), shape_on<T>(tiled, m, other), m, s);
    });
  }
  return plan;
}

/// What else the run of `asked`, the plan of `o`, could be there.
template <element T>
alternatives alternatives_on(model::view<described_device, T> model, offload::machine const& m,
                             training_options const& o, offload::plan asked) {
  auto const device = device_of(m);
  return alternatives_of(o, std::move(asked),
                         {.plan =
                              [&](training_options const& other) {
                                auto const within = within_budget(m, other.offload);
                                auto const tiled = model.with_tiled_mlp(other.tiled_mlp);
                                return plan_step(dry_model_of<T>(device_of(within), tiled),
                                                 shape_on<T>(tiled, m, other), within, other.offload);
                              },
                          .fits_in =
                              [&](std::size_t on_device, std::size_t on_host) {
                                return step_fits(dry_model_of<T>(device, model), shape_on(model, m, o),
                                                 with_memory(m, on_device, on_host), o.offload);
                              },
                          .one_memory = m.device.is_the_host,
                          .ranks_of_host = m.peers.ranks_of_host});
}

/// The same for the model that the options name. Its config.json is enough.
template <model::architecture Architecture, element T>
offload::plan plan_on(offload::machine const& m, offload::settings const& s, training_options const& o) {
  check(o);
  auto const model = lay_out<Architecture>(config_of(o, model::own_family<Architecture>()), trained_by(o));
  return plan_on<T>(model::view<described_device, T>{model}, m, s, o);
}

template <model::architecture Architecture, element T>
alternatives alternatives_on(offload::machine const& m, training_options const& o, offload::plan asked) {
  auto const model = lay_out<Architecture>(config_of(o, model::own_family<Architecture>()), trained_by(o));
  return alternatives_on<T>(model::view<described_device, T>{model}, m, o, std::move(asked));
}

}  // namespace superoffload::train
