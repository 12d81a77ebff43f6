// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/bytes_text.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/train/planning/step_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE bool planned_workload::take(std::vector<autograd::unit_layout> const& units,
                                                offload::checkpointing_level level, double limit,
                                                offload::machine const& m, offload::settings const& s) {
  auto finer = work;
  finer.levels = {std::move(level)};
  auto other = offload::make_plan(units, finer, m, s, limit);
  bool const better = other.fits && other.step_time <= limit;
  if (better) {
    plan = std::move(other);
    work = std::move(finer);
  }
  return better;
}

/// By how many bytes a plan exceeds the memories.
struct excess {
  std::size_t device = 0, host = 0;

  explicit excess(offload::plan const& p)
      : device{beyond(p.on_device.total(), p.device_available)},
        host{beyond(p.on_host.total(), p.host_available)} {}
  [[nodiscard]] std::size_t total() const { return device + host; }

private:
  static std::size_t beyond(std::size_t taken, std::size_t available) {
    return taken > available ? taken - available : 0;
  }
};

SUPEROFFLOAD_INLINE std::string also_fits(offload::plan const& refused, offload::plan const& other) {
  excess const lacks{other};
  return excess{refused}.device > 0 && lacks.device == 0 && lacks.host > 0
             ? concat("; with activations on the host, this device and a host with ",
                      bytes_text(lacks.host, 1), " more")
             : std::string{};
}

SUPEROFFLOAD_INLINE bool may_be_faster(planned_workload const& than, offload::machine const& m) {
  double passes = 0.0;
  auto const rested = offload::with_gemms_for(m, 0.0);
  for (auto const& unit : offload::unit_times(rested, than.work, {})) {
    passes += unit.forward + unit.backward;
  }
  return than.work.micro_batches * passes < offload::clearly_less * than.plan.step_time;
}

SUPEROFFLOAD_INLINE bool should_leave(offload::plan const& stay, offload::plan const& leave) {
  if (!stay.fits || !leave.fits) {
    return leave.fits || (!stay.fits && excess{leave}.total() < excess{stay}.total());
  }
  bool const state_leaves = stay.state.off_the_device() == 0 && leave.state.off_the_device() > 0;
  auto const limit = state_leaves ? offload::worth_leaving * stay.step_time : stay.step_time;
  return offload::clearly_faster(leave, stay) && leave.step_time < limit;
}

}  // namespace detail

SUPEROFFLOAD_INLINE step_shape shape_of(training_options const& o) {
  return {
      .micro_batch = {data::rows_of_slice(most_rows(o), o.sequence_ranks), o.max_length, o.sequence_ranks},
      .sequences = std::max<std::int64_t>(1, most_rows(o) / o.max_length),
      .tokens = o.tokens_per_batch > 0 ? o.tokens_per_batch : o.batch_size * o.max_length,
      .micro_batches = static_cast<int>(o.accumulation),
      .recompute = o.recompute,
      .checks_gradient = o.max_grad_norm > 0.0 || o.nonfinite == on_nonfinite::skip,
      .ranks = o.ranks};
}

SUPEROFFLOAD_INLINE std::vector<autograd::unit_layout> units_of_state(
    std::vector<autograd::unit_layout> const& units, step_shape const& shape) {
  bool const sharded = shape.ranks > 1 || shape.whole_gradients;
  return sharded ? zero::shards_of(units, 0, shape.ranks) : units;
}

}  // namespace superoffload::train
