// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/bytes_text.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/sequence_slice.hpp>
#include <superoffload/offload/planning/plan_candidates.hpp>
#include <superoffload/offload/planning/planner.hpp>
#include <superoffload/train/engine/recompute.hpp>
#include <superoffload/train/planning/step_plan.hpp>
#include <superoffload/train/run/run_data.hpp>
#include <superoffload/zero/shard.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {
namespace detail {

/// A plan and the workload that it indexes.
struct planned_workload {
  offload::workload work;
  offload::plan plan;

  /// Takes over a plan of the same steps at this level alone, if it fits and takes at most `limit` seconds.
  bool take(std::vector<autograd::unit_layout> const& units, offload::checkpointing_level level, double limit,
            offload::machine const& m, offload::settings const& s, offload::shared_counts& shared) {
    auto finer = work;
    finer.levels = {std::move(level)};
    auto other = offload::make_plan(units, finer, m, s, limit, &shared);
    bool const better = other.fits && other.step_time <= limit;
    if (better) {
      plan = std::move(other);
      work = std::move(finer);
    }
    return better;
  }
};

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

/// What a refused plan does not say of another one that is refused, too: that it needs no larger device.
SUPEROFFLOAD_INLINE std::string also_fits(offload::plan const& refused, offload::plan const& other) {
  excess const lacks{other};
  return excess{refused}.device > 0 && lacks.device == 0 && lacks.host > 0
             ? concat("; with activations on the host, this device and a host with ",
                      bytes_text(lacks.host, 1), " more")
             : std::string{};
}

/// May any plan of such steps be clearly faster? None takes less than the passes of a step without recompute.
SUPEROFFLOAD_INLINE bool may_be_faster(planned_workload const& than, offload::machine const& m) {
  double passes = 0.0;
  auto const rested = offload::with_gemms_for(m, 0.0);
  for (auto const& unit : offload::unit_times(rested, than.work, {})) {
    passes += unit.forward + unit.backward;
  }
  return than.work.micro_batches * passes < offload::clearly_less * than.plan.step_time;
}

/// Do activations leave the device, if either is possible? If that is clearly faster, or fits alone; if
/// neither fits, where less is lacking. State that then leaves, too, must be worth it.
SUPEROFFLOAD_INLINE bool should_leave(offload::plan const& stay, offload::plan const& leave) {
  if (!stay.fits || !leave.fits) {
    return leave.fits || (!stay.fits && excess{leave}.total() < excess{stay}.total());
  }
  bool const state_leaves = !stay.state.any_off_the_device() && leave.state.any_off_the_device();
  auto const limit = state_leaves ? offload::worth_leaving * stay.step_time : stay.step_time;
  return offload::clearly_faster(leave, stay) && leave.step_time < limit;
}

/// Plans steps whose activations stay on the device. A workload has few levels of recompute, with much memory
/// between two of them, so the chosen level is refined: more activations against less state on the device, if
/// a step is then clearly faster or takes no more of the host. Remaining memory goes to more kept
/// activations.
SUPEROFFLOAD_INLINE planned_workload plan_on_device(dry_model const& model, step_shape const& shape,
                                                    std::vector<autograd::unit_layout> const& units,
                                                    offload::machine const& m, offload::settings const& s,
                                                    offload::shared_counts& shared) {
  planned_workload p{workload_of(model, shape), {}};
  p.plan = offload::make_plan(units, p.work, m, s, std::numeric_limits<double>::infinity(), &shared);
  if (!p.plan.fits || p.plan.level == 0 || shape.recompute != recompute::choice::automatic) {
    return p;
  }
  auto const by_levels = p;
  auto const keep_within = [&](std::size_t activations) {
    p.take(units, level_within(model, shape, activations), p.plan.step_time, m, s, shared);
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
SUPEROFFLOAD_INLINE planned_workload plan_in_turns(dry_model const& model, step_shape shape,
                                                   std::vector<autograd::unit_layout> const& units,
                                                   offload::machine const& m, offload::settings const& s,
                                                   offload::shared_counts& shared) {
  shape.recompute = recompute::choice::offload;
  planned_workload p{workload_of(model, shape), {}};
  p.plan = offload::make_plan(units, p.work, m, s, std::numeric_limits<double>::infinity(), &shared);
  if (!p.plan.fits) {
    return p;
  }
  auto const take_turns_in = [&](int buffers) {
    auto const kept = p.plan.state.activations.kept;
    auto const level = offloading_level(model, shape, {buffers, kept});
    return p.take(units, level, std::nextafter(p.plan.step_time, 0.0), m, s, shared);
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

/// Advice to store the optimizer's state in fewer bytes, if that helps and the refusal does not say so.
SUPEROFFLOAD_INLINE std::string with_fewer_bytes(dry_model const& model, step_shape const& shape,
                                                 offload::machine const& m, offload::settings const& s,
                                                 std::string const& refusal) {
  if (refusal.find("--state ") != refusal.npos) {
    return {};
  }
  auto fewer = s;
  for (auto const format : state_formats) {
    fewer.state = format;
    if (format > s.state && step_fits(model, shape, m, fewer)) {
      return concat("; or state in fewer bytes (--state ", name_of(format), ")");
    }
  }
  return {};
}

/// Advice to keep one copy of the weights, if that helps.
SUPEROFFLOAD_INLINE std::string with_one_copy(dry_model const& model, step_shape const& shape,
                                              offload::machine const& m, offload::settings s) {
  if (s.weight_ranks.value_or(shape.ranks) == shape.ranks) {
    return {};
  }
  s.weight_ranks.reset();
  return step_fits(model, shape, m, s) ? "; or one copy of the weights (no --hybrid_sharding)" : "";
}

/// Plans the steps with the copies of the weights that the settings ask for, else one.
SUPEROFFLOAD_INLINE offload::plan plan_with_copies(dry_model const& model, step_shape const& shape,
                                                   offload::machine const& m, offload::settings const& s) {
  auto const units = units_of_state(*model.units, shape);
  offload::shared_counts shared;
  auto const with = [&](bool leave) {
    return leave ? plan_in_turns(model, shape, units, m, s, shared)
                 : plan_on_device(model, shape, units, m, s, shared);
  };
  using recompute::choice;
  auto best = with(shape.recompute == choice::offload);
  bool const is_enough = best.plan.fits && !may_be_faster(best, m);
  if (shape.recompute == choice::automatic && offload::activations_may_leave(m, s) && !is_enough) {
    if (auto other = with(true); should_leave(best.plan, other.plan)) {
      best = std::move(other);
    } else if (!best.plan.fits) {
      best.plan.refusal += also_fits(best.plan, other.plan);
    }
  }
  if (!best.plan.fits) {
    best.plan.refusal += with_fewer_bytes(model, shape, m, s, best.plan.refusal);
    best.plan.refusal += with_one_copy(model, shape, m, s);
  }
  return offload::keep_whole(std::move(best.plan), units, best.work, m, s);
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

SUPEROFFLOAD_INLINE bool step_fits(dry_model const& model, step_shape shape, offload::machine const& m,
                                   offload::settings const& s) {
  auto const units = units_of_state(*model.units, shape);
  auto const fits_with = [&](recompute::choice how) {
    shape.recompute = how;
    return offload::can_fit(units, workload_of(model, shape), m, s);
  };
  using recompute::choice;
  if (shape.recompute != choice::automatic) {
    return fits_with(shape.recompute);
  }
  // Those that take the least memory: of the device alone, and with the host's.
  return fits_with(choice::every_block) ||
         (offload::activations_may_leave(m, s) && fits_with(choice::offload));
}

SUPEROFFLOAD_INLINE offload::plan plan_step(dry_model const& model, step_shape const& shape,
                                            offload::machine const& m, offload::settings const& s) {
  auto const one_copy = detail::plan_with_copies(model, shape, m, s);
  int const of_host = m.peers.ranks_of_host;
  if (s.weight_ranks || !one_copy.fits || of_host == 0 || of_host == shape.ranks ||
      shape.ranks % of_host != 0) {
    return one_copy;
  }
  auto with_copies = s;
  with_copies.weight_ranks = of_host;
  auto on_each = detail::plan_with_copies(model, shape, m, with_copies);
  return on_each.fits && offload::clearly_faster(on_each, one_copy) ? on_each : one_copy;
}

}  // namespace superoffload::train
