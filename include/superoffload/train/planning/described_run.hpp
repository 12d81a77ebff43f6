// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/described_device.hpp>
#include <superoffload/core/gpu.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/view.hpp>
#include <superoffload/train/engine/lay_out.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/planning/step_plan.hpp>
#include <superoffload/train/run/report.hpp>
#include <superoffload/zero/sharded.hpp>

#include <algorithm>
#include <cstddef>

namespace superoffload::train {

/// The plan of a run, or of one of its ranks, on a machine that is described and not measured.
template <element T>
offload::plan plan_on(model::view<described_device, T> model, offload::machine const& m,
                      offload::settings const& s, training_options const& o) {
  described_device const device{m.name, m.device.memory - std::min(m.device.memory, m.device.reserve)};
  auto const shape = [&](training_options const& wanted) {
    auto of_engine = shape_of(wanted);
    if (of_engine.ranks > 1) {
      auto const buffers = zero::buffers_of_rank<T>(model.units(), of_engine.ranks,
                                                    {.tied_embeddings = model.settings().tied_head});
      // A reduction also holds the parts that have arrived from other ranks.
      auto const ranks = static_cast<std::size_t>(of_engine.ranks);
      auto const parts = (ranks - 1) * std::min(buffers.gradients.largest() / ranks, gpu::sum_part_bytes);
      of_engine.whole_gradients = buffers.gradients.total() + parts;
    }
    return of_engine;
  };
  auto plan = plan_step<T>(device, model, shape(o), m, s);
  if (!plan.fits) {
    plan.refusal = refusal_of(plan, m.name, o, [&](training_options const& other) {
      return step_fits<T>(device, model, shape(other), m, s);
    });
  }
  return plan;
}

/// The same for the model that the options name. Its config.json is enough.
template <model::architecture Architecture, element T>
offload::plan plan_on(offload::machine const& m, offload::settings const& s, training_options const& o) {
  check(o);
  auto const model =
      lay_out<Architecture>(model::read_config(o.model, model::own_family<Architecture>()), trained_by(o));
  return plan_on<T>(model::view<described_device, T>{model}, m, s, o);
}

}  // namespace superoffload::train
