// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/train/reports/run_description.hpp>

namespace superoffload::train {

SUPEROFFLOAD_INLINE scalars scalars_of(step_metrics const& m, double gemm_rate) {
  scalars all{{"train/loss", m.loss},
              {"train/grad_norm", m.grad_norm},
              {"train/learning_rate", m.lr},
              {"train/epoch", m.epoch},
              {"speed/step_time_ms", m.step_time_ms},
              {"speed/tokens_per_second", m.tokens_per_second},
              {"speed/model_tflops", m.model_tflops},
              {"speed/hardware_tflops", m.hardware_tflops},
              {"memory/host_peak_bytes", static_cast<double>(m.host_bytes)},
              {"memory/device_peak_bytes", static_cast<double>(m.device_bytes)}};
  if (gemm_rate > 0.0) {
    all.emplace_back("speed/mfu", 1e12 * m.model_tflops / gemm_rate);
  }
  if (m.buckets) {
    all.emplace_back("speculation/hit_rate", m.hit_rate);
    all.emplace_back("speculation/updates", static_cast<double>(m.buckets->speculated));
    all.emplace_back("speculation/resends", static_cast<double>(m.buckets->resent));
  }
  return all;
}

SUPEROFFLOAD_INLINE scalars scalars_of(evaluation_metrics const& m) { return {{"eval/loss", m.loss}}; }

SUPEROFFLOAD_INLINE scalars scalars_of(offload::plan const& p) {
  auto const bytes = [](std::size_t n) { return static_cast<double>(n); };
  auto const &d = p.on_device, &h = p.on_host;
  return {{"memory_plan/device/weights", bytes(d.weights)},
          {"memory_plan/device/gradients", bytes(d.gradients)},
          {"memory_plan/device/optimizer_state", bytes(d.state)},
          {"memory_plan/device/pinned_buffers", bytes(d.pinned_buffers)},
          {"memory_plan/device/staging_buffers", bytes(d.staging_buffers)},
          {"memory_plan/device/activations", bytes(d.activations)},
          {"memory_plan/device/workspaces", bytes(d.workspaces)},
          {"memory_plan/host/weights", bytes(h.weights)},
          {"memory_plan/host/gradients", bytes(h.gradients)},
          {"memory_plan/host/optimizer_state", bytes(h.state)},
          {"memory_plan/host/pinned_buffers", bytes(h.pinned_buffers)},
          {"memory_plan/host/staging_buffers", bytes(h.staging_buffers)},
          {"memory_plan/host/activations", bytes(h.activations)},
          {"memory_plan/host/workspaces", bytes(h.workspaces)}};
}

}  // namespace superoffload::train
