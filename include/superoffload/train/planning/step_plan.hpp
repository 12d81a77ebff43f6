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
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// The steps that the options ask for.
step_shape shape_of(training_options const& o);

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
std::vector<autograd::unit_layout> units_of_state(std::vector<autograd::unit_layout> const& units,
                                                  step_shape const& shape);

namespace detail {

/// A plan and the workload that it indexes.
struct planned_workload {
  offload::workload work;
  offload::plan plan;

  /// Takes over a plan of the same steps at this level alone, if it fits and takes at most `limit` seconds.
  bool take(std::vector<autograd::unit_layout> const& units, offload::checkpointing_level level, double limit,
            offload::machine const& m, offload::settings const& s);
};

/// What a refused plan does not say of another one that is refused, too: that it needs no larger device.
std::string also_fits(offload::plan const& refused, offload::plan const& other);

/// May any plan of such steps be clearly faster? None takes less than the passes of a step without recompute.
bool may_be_faster(planned_workload const& than, offload::machine const& m);

/// Do activations leave the device, if either is possible? If that is clearly faster, or fits alone; if
/// neither fits, where less is lacking. State that then leaves, too, must be worth it.
bool should_leave(offload::plan const& stay, offload::plan const& leave);

/// Plans steps whose activations stay on the device. A workload has few levels of recompute, with much memory
/// between two of them, so the chosen level is refined: more activations against less state on the device, if
/// a step is then clearly faster or takes no more of the host. Remaining memory goes to more kept
/// activations.
template <element T, device_policy D>
planned_workload plan_on_device(D const& device, model::as_view<D, T> const& model, step_shape const& shape,
                                std::vector<autograd::unit_layout> const& units, offload::machine const& m,
                                offload::settings const& s) {
  planned_workload p{workload_of<T>(device, model, shape), {}};
  p.plan = offload::make_plan(units, p.work, m, s);
  if (!p.plan.fits || p.plan.level == 0 || shape.recompute != recompute::choice::automatic) {
    return p;
  }
  auto const by_levels = p;
  auto const keep_within = [&](std::size_t activations) {
    p.take(units, level_within<T>(device, model, shape, activations), p.plan.step_time, m, s);
  };
  auto const& levels = by_levels.work.levels;
  auto const most = levels[by_levels.plan.level - 1].activations;
  auto const least = levels[std::min(by_levels.plan.level + 1, levels.size() - 1)].activations;
  constexpr int halvings = 5;
  auto step = most - least;
  for (int i = 0; i < halvings; ++i) {
    step /= 2;
    auto const at = p.plan.on_device.activations;
    keep_within(at + step);
    if (p.plan.on_device.activations == at && at >= least + step) {
      keep_within(at - step);
    }
  }
  if (p.plan.on_host.total() > by_levels.plan.on_host.total() &&
      !offload::clearly_faster(p.plan, by_levels.plan)) {
    p = by_levels;
  }
  auto const taken = p.plan.on_device.total() + (m.device.is_the_host ? p.plan.on_host.total() : 0);
  keep_within(p.plan.on_device.activations + p.plan.device_available - taken);
  return p;
}

/// Plans steps whose blocks take turns in buffers for their activations: what they keep by the levels of the
/// workload, then as many buffers as make a step fastest.
template <element T, device_policy D>
planned_workload plan_in_turns(D const& device, model::as_view<D, T> const& model, step_shape shape,
                               std::vector<autograd::unit_layout> const& units, offload::machine const& m,
                               offload::settings const& s) {
  shape.recompute = recompute::choice::offload;
  planned_workload p{workload_of<T>(device, model, shape), {}};
  p.plan = offload::make_plan(units, p.work, m, s);
  if (!p.plan.fits) {
    return p;
  }
  auto const take_turns_in = [&](int buffers) {
    auto const kept = p.plan.state.activations.kept;
    auto const level = offloading_level<T>(device, model, shape, {buffers, kept});
    return p.take(units, level, std::nextafter(p.plan.step_time, 0.0), m, s);
  };
  int const blocks = p.work.levels.front().blocks;
  for (int step = blocks / 4; step > 0; step /= 2) {
    int const at = p.plan.state.activations.buffers;
    if ((at + step > blocks || !take_turns_in(at + step)) &&
        at - step >= recompute::inputs_offloaded.buffers) {
      take_turns_in(at - step);
    }
  }
  return p;
}

}  // namespace detail

/// Does a plan of such steps fit the machine?
template <element T, device_policy D>
bool step_fits(D const& device, model::as_view<D, T> const& model, step_shape shape,
               offload::machine const& m, offload::settings const& s) {
  auto const units = units_of_state(model.units(), shape);
  auto const fits_with = [&](recompute::choice how) {
    shape.recompute = how;
    return offload::can_fit(units, workload_of<T>(device, model, shape), m, s);
  };
  using recompute::choice;
  if (shape.recompute != choice::automatic) {
    return fits_with(shape.recompute);
  }
  // Those that take the least memory: of the device alone, and with the host's.
  return fits_with(choice::every_block) ||
         (offload::activations_may_leave(m, s) && fits_with(choice::offload));
}

namespace detail {
/// Advice to store the optimizer's state in fewer bytes, if that helps and the refusal does not say so.
template <element T, device_policy D>
std::string with_fewer_bytes(D const& device, model::as_view<D, T> const& model, step_shape const& shape,
                             offload::machine const& m, offload::settings const& s,
                             std::string const& refusal) {
  if (refusal.find("--state ") != refusal.npos) {
    return {};
  }
  auto fewer = s;
  for (auto const format : state_formats) {
    fewer.state = format;
    if (format > s.state && step_fits<T>(device, model, shape, m, fewer)) {
      return concat("; or state in fewer bytes (--state ", name_of(format), ")");
    }
  }
  return {};
}
}  // namespace detail

namespace detail {
/// Advice to keep one copy of the weights, if that helps.
template <element T, device_policy D>
std::string with_one_copy(D const& device, model::as_view<D, T> const& model, step_shape const& shape,
                          offload::machine const& m, offload::settings s) {
  if (s.weight_ranks.value_or(shape.ranks) == shape.ranks) {
    return {};
  }
  s.weight_ranks.reset();
  return step_fits<T>(device, model, shape, m, s) ? "; or one copy of the weights (no --hybrid_sharding)"
                                                  : "";
}

/// Plans the steps with the copies of the weights that the settings ask for, else one.
template <element T, device_policy D>
offload::plan plan_with_copies(D const& device, model::as_view<D, T> const& model, step_shape const& shape,
                               offload::machine const& m, offload::settings const& s) {
  auto const units = units_of_state(model.units(), shape);
  auto const with = [&](bool leave) {
    return leave ? detail::plan_in_turns<T>(device, model, shape, units, m, s)
                 : detail::plan_on_device<T>(device, model, shape, units, m, s);
  };
  using recompute::choice;
  auto best = with(shape.recompute == choice::offload);
  bool const is_enough = best.plan.fits && !detail::may_be_faster(best, m);
  if (shape.recompute == choice::automatic && offload::activations_may_leave(m, s) && !is_enough) {
    if (auto other = with(true); detail::should_leave(best.plan, other.plan)) {
      best = std::move(other);
    } else if (!best.plan.fits) {
      best.plan.refusal += detail::also_fits(best.plan, other.plan);
    }
  }
  if (!best.plan.fits) {
    best.plan.refusal += detail::with_fewer_bytes<T>(device, model, shape, m, s, best.plan.refusal);
    best.plan.refusal += detail::with_one_copy<T>(device, model, shape, m, s);
  }
  return offload::keep_whole(std::move(best.plan), units, best.work, m, s);
}
}  // namespace detail

/// Plans the steps of a model. On a rank, weights stay gathered in the memory that remains. Ranks of several
/// hosts keep a copy of the weights on each, if the settings leave that open and it is clearly faster.
template <element T, device_policy D>
offload::plan plan_step(D const& device, model::as_view<D, T> const& model, step_shape const& shape,
                        offload::machine const& m, offload::settings const& s) {
  auto const one_copy = detail::plan_with_copies<T>(device, model, shape, m, s);
  int const of_host = m.peers.ranks_of_host;
  if (s.weight_ranks || !one_copy.fits || of_host == 0 || of_host == shape.ranks ||
      shape.ranks % of_host != 0) {
    return one_copy;
  }
  auto with_copies = s;
  with_copies.weight_ranks = of_host;
  auto on_each = detail::plan_with_copies<T>(device, model, shape, m, with_copies);
  return on_each.fits && offload::clearly_faster(on_each, one_copy) ? on_each : one_copy;
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
                   .float8 = c.gemms == gemm_format::float8,
                   .attention = {.starts = nullptr,
                                 .documents = std::max<std::int64_t>(1, expected.rows / expected.positions),
                                 .rows = expected.rows,
                                 .heads = static_cast<std::int32_t>(c.heads),
                                 .kv_heads = static_cast<std::int32_t>(c.kv_heads),
                                 .head_dim = static_cast<std::int32_t>(c.head_dim),
                                 .longest = static_cast<std::int32_t>(expected.positions),
                                 .scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim))},
                   .format = s.state,
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
                                  .columns = p.columns,
                                  .ranks_of_host = ranks_of_host(ranks)});
    }
  }
  // If device and host share one memory, nothing is offloaded unless the settings ask for it.
  bool const told = s.ratio.value_or(0.0) > 0.0 || s.offload_weights == offload::choice::on;
  if (shape.recompute == recompute::choice::offload ||
      (s.how != offload::mode::none && (told || !m.device.is_the_host))) {
    offload::measure_offloading<T>(device, p, m);
  }
  device.forget_peaks();
  return slowest_of(ranks, m);
}

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/step_plan_inl.hpp>
#endif
