// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/model/config.hpp>
#include <superoffload/offload/planner.hpp>
#include <superoffload/train/described_device.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/run_data.hpp>
#include <superoffload/train/step_workload.hpp>

#include <algorithm>

namespace superoffload::train {

/// The plan of a run on a machine that is only described. Of the model, config.json is enough.
template <model::architecture Architecture, element T>
offload::plan plan_on(offload::machine const& m, offload::settings const& s, training_options const& o) {
  check(o);
  auto const model = lay_out<Architecture>(model::read_config(o.model), trained_by(o));
  described_device const device{m.name, m.device.memory - std::min(m.device.memory, m.device.reserve)};
  auto const work = workload_of<T>(device, model,
                                   {.micro_batch = {most_rows(o), o.max_length},
                                    .sequences = (o.batch_size + o.accumulation - 1) / o.accumulation,
                                    .micro_batches = static_cast<int>(o.accumulation),
                                    .recompute = o.recompute,
                                    .judges = o.max_grad_norm > 0.0 || o.nonfinite == on_nonfinite::skip});
  return offload::make_plan(model.units(), work, m, s);
}

}  // namespace superoffload::train
