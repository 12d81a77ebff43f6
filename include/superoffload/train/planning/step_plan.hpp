// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/comm/single.hpp>
#include <superoffload/core/range.hpp>
#include <superoffload/offload/planning/measure.hpp>
#include <superoffload/offload/planning/planner.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/planning/host_share.hpp>
#include <superoffload/train/planning/machine_file.hpp>
#include <superoffload/train/planning/measure_peers.hpp>
#include <superoffload/train/planning/step_workload.hpp>
#include <superoffload/train/run/run_data.hpp>
#include <superoffload/zero/gradient_layout.hpp>
#include <superoffload/zero/shard.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace superoffload::train {

/// The steps that the options ask for.
inline step_shape shape_of(training_options const& o) {
  return {.micro_batch = {most_rows(o), o.max_length},
          .sequences = std::max<std::int64_t>(1, most_rows(o) / o.max_length),
          .micro_batches = static_cast<int>(o.accumulation),
          .recompute = o.recompute,
          .checks_gradient = o.max_grad_norm > 0.0 || o.nonfinite == on_nonfinite::skip,
          .ranks = o.ranks};
}

/// Bytes that a rank's engine takes for whole gradients, beside those of its shards; none without ranks. Call
/// before the engine is configured.
template <class Engine>
std::optional<std::size_t> whole_gradients_of(Engine const& e) {
  if (!e.is_rank()) {
    return std::nullopt;
  }
  using T = typename Engine::element_type;
  std::size_t of_shards = 0;
  for (auto const& unit : e.units_of_state()) {
    of_shards += unit.trainable() ? zero::gradient_bytes<T>(unit, e.options().accumulates) : std::size_t{0};
  }
  return e.allocation().gradients - of_shards;
}

/// Can the engine's store offload weights or gradients? In a group of one rank it cannot.
template <class Engine>
bool can_offload(Engine const& e, int ranks) {
  return Engine::offloads && (!e.is_rank() || ranks > 1);
}

/// The units of the optimizer state for such steps: the model's, or a rank's shards of them.
inline std::vector<autograd::unit_layout> units_of_state(std::vector<autograd::unit_layout> const& units,
                                                         step_shape const& shape) {
  bool const sharded = shape.ranks > 1 || shape.whole_gradients;
  return sharded ? zero::shards_of(units, 0, shape.ranks) : units;
}

/// Plans the steps of a model. A workload has few levels of recompute, with much memory between two of them,
/// so the chosen level is refined: more activations against less state on the device, if a step is then
/// clearly faster or takes no more of the host. Remaining memory goes to more kept activations, and on a rank
/// to weights that stay gathered.
template <element T, device_policy D>
offload::plan plan_step(D const& device, model::as_view<D, T> const& model, step_shape const& shape,
                        offload::machine const& m, offload::settings const& s) {
  auto work = workload_of<T>(device, model, shape);
  auto const units = units_of_state(model.units(), shape);
  auto plan = offload::make_plan(units, work, m, s);
  if (plan.fits && plan.level > 0 && shape.recompute == recompute::choice::automatic) {
    auto const by_levels = plan;
    auto const levels = work;
    auto const keep_within = [&](std::size_t activations) {
      auto finer = work;
      finer.levels = {level_within<T>(device, model, shape, activations)};
      auto better = offload::make_plan(units, finer, m, s);
      if (better.fits && better.step_time <= plan.step_time) {
        plan = std::move(better);
        work = std::move(finer);
      }
    };
    auto const most = levels.levels[plan.level - 1].activations;
    auto const least = levels.levels[std::min(plan.level + 1, levels.levels.size() - 1)].activations;
    constexpr int halvings = 5;
    auto step = most - least;
    for (int i = 0; i < halvings; ++i) {
      step /= 2;
      auto const at = plan.on_device.activations;
      keep_within(at + step);
      if (plan.on_device.activations == at && at >= least + step) {
        keep_within(at - step);
      }
    }
    if (plan.on_host.total() > by_levels.on_host.total() && !offload::clearly_faster(plan, by_levels)) {
      plan = by_levels;
      work = levels;
    }
    auto const taken = plan.on_device.total() + (m.device.is_the_host ? plan.on_host.total() : 0);
    keep_within(plan.on_device.activations + plan.device_available - taken);
  }
  return offload::keep_whole(std::move(plan), units, work, m, s);
}

/// Does a plan of such steps fit the machine?
template <element T, device_policy D>
bool step_fits(D const& device, model::as_view<D, T> const& model, step_shape shape,
               offload::machine const& m, offload::settings const& s) {
  if (shape.recompute == recompute::choice::automatic) {
    shape.recompute = recompute::choice::every_block;  // takes the least memory
  }
  auto const units = units_of_state(model.units(), shape);
  return offload::can_fit(units, workload_of<T>(device, model, shape), m, s);
}

/// The machine that a run on `device` is planned for: this machine's memory and cores, with rates that are
/// measured at the sizes of the run, or those of the machine that `s.hardware` describes. All ranks of
/// `group` (null for a single rank) measure at the same time and get one answer: a rank's share of its host,
/// and the slowest rates.
template <element T, device_policy D, comm::communicator<D> Group>
offload::machine machine_for(D& device, model::as_view<D, T> const& model, step_shape const& shape,
                             offload::settings const& s, Group* group) {
  enter_range("measuring the machine");
  auto const ranks = comm::host_group_of(group);
  auto m = within_budget(share_of_host(ranks, offload::this_machine(device)), s);
  if (!s.hardware.empty()) {
    auto described = read_machine(s.hardware, ranks.ranks());
    described.device.memory = m.device.memory;
    described.device.reserve = m.device.reserve;
    described.device.is_the_host = m.device.is_the_host;
    described.host = m.host;
    return slowest_of(ranks, described);
  }
  auto const& c = model.settings();
  auto const expected = detail::expected_of(shape).micro_batch;
  offload::probe p{.rows = expected.rows,
                   .inner = c.hidden,
                   .columns = 2 * c.intermediate,
                   .experts = c.experts,
                   .each = c.experts_per_token,
                   .attention = {.starts = nullptr,
                                 .documents = std::max<std::int64_t>(1, expected.rows / expected.positions),
                                 .rows = expected.rows,
                                 .heads = static_cast<std::int32_t>(c.heads),
                                 .kv_heads = static_cast<std::int32_t>(c.kv_heads),
                                 .head_dim = static_cast<std::int32_t>(c.head_dim),
                                 .longest = static_cast<std::int32_t>(expected.positions),
                                 .scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim))},
                   .cores_share = s.cpuadam_cores_perc};
  auto const units = units_of_state(model.units(), shape);
  for (auto const& b : offload::buckets_of(units, s.bucket_bytes / static_cast<std::int64_t>(sizeof(T)))) {
    p.bucket = std::max(p.bucket, b.count);
    p.state += b.count;
  }
  offload::measure_device<T>(device, p, m);
  if constexpr (!std::same_as<Group, comm::single_communicator<D>>) {
    if (ranks.ranks() > 1) {
      m.peers = measure_peers<T>(device, *group,
                                 {.shard = units[units.size() / 2].elements(),
                                  .rows = p.rows,
                                  .inner = p.inner,
                                  .columns = p.columns});
    }
  }
  // If device and host share one memory, nothing is offloaded unless the settings ask for it.
  bool const told = s.ratio.value_or(0.0) > 0.0 || s.offload_weights == offload::choice::on;
  if (s.how != offload::mode::none && (told || !m.device.is_the_host)) {
    offload::measure_offloading<T>(device, p, m);
  }
  device.forget_peaks();
  return slowest_of(ranks, m);
}

}  // namespace superoffload::train
