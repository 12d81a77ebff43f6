// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/train/engine/batch_staging.hpp>
#include <superoffload/train/engine/kept_activations.hpp>
#include <superoffload/train/engine/recompute.hpp>
#include <superoffload/train/planning/step_workload.hpp>
#include <superoffload/zero/gradient_layout.hpp>
#include <superoffload/zero/shard.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE offload::device_work device_work_of(autograd::work const& w) {
  return {w.flops, w.attention, w.bytes, w.grouped, w.float8, w.exchanged};
}

SUPEROFFLOAD_INLINE expected_step expected_of(step_shape const& s) {
  auto const full = std::int64_t{s.ranks} * s.micro_batches * s.micro_batch.rows;
  return s.expected.value_or(expected_step{s.micro_batch, s.tokens > 0 ? std::min(s.tokens, full) : full});
}

/// Fills in what leaves the device of an expected micro-batch with this `work`, if its blocks keep `kept`.
SUPEROFFLOAD_INLINE void add_leaving(std::vector<autograd::activation> const& work,
                                     autograd::activation_checkpointing const& kept,
                                     offload::checkpointing_level& level) {
  auto const& buffers = kept.buffers();
  level.buffers = buffers.count;
  if (buffers.leaving() == 0) {
    return;
  }
  level.leaving.resize(level.recompute.size());
  int block = -1, unit = -1;
  for (auto const& a : work) {
    block += a.unit == unit ? 0 : 1;
    unit = a.unit;
    if (block < buffers.leaving() && kept.keeps(a.unit, a.index)) {
      level.leaving[static_cast<std::size_t>(a.unit)] += static_cast<double>(a.bytes);
    }
  }
}

/// As zero::keeps_wide.
SUPEROFFLOAD_INLINE bool keeps_wide(dry_model const& model, autograd::unit_layout const& unit,
                                    bool accumulates) {
  return zero::keeps_wide(unit, accumulates, model.element_bytes, model.wide_bytes);
}

SUPEROFFLOAD_INLINE offload::collectives collectives_of(dry_model const& model, int ranks) {
  offload::collectives all;
  all.tied_to_last = model.config->tied_head ? 0 : -1;
  all.ranks = ranks;
  if (ranks == 1) {
    return all;
  }
  auto const element_bytes = static_cast<double>(model.element_bytes);
  auto const wide_bytes = static_cast<double>(model.wide_bytes);
  for (auto const& unit : *model.units) {
    auto const others = static_cast<double>(zero::shard_elements(unit, ranks)) * (ranks - 1);
    auto const trained = unit.trainable() ? others : 0.0;
    all.units.push_back({.weights = others * element_bytes,
                         .gradient = trained * (keeps_wide(model, unit, false) ? wide_bytes : element_bytes),
                         .sum = trained * wide_bytes});
  }
  return all;
}

/// The work of the functions inside blocks, for the expected micro-batch.
SUPEROFFLOAD_INLINE std::vector<autograd::activation> expected_work(dry_model const& model,
                                                                    step_shape const& s) {
  return model.activations(expected_of(s).micro_batch);
}

/// A level's memory, that of the largest micro-batch with what is `kept` of it, and its recompute work: that
/// of the functions in `work` which the expected micro-batch does not keep in this memory
/// (kept_activations). `offloading`: what `kept` offloads. `name`: of the level, instead of how many results
/// are computed again.
SUPEROFFLOAD_INLINE offload::checkpointing_level level_of(
    dry_model const& model, step_shape const& s, std::vector<autograd::activation> const& work,
    autograd::activation_checkpointing const& kept, autograd::activation_offloading const& offloading = {},
    std::string_view name = {}) {
  offload::checkpointing_level level;
  level.activations = model.peak(s.micro_batch, kept);
  level.recompute.resize(model.units->size());
  batch_shape const expected{expected_of(s).micro_batch.rows, s.micro_batch.positions,
                             s.micro_batch.sequence_ranks};
  bool const adapts = recompute::adapts(s.recompute) && expected.rows < s.micro_batch.rows;
  auto const kept_then = adapts ? kept_within(model, expected, work, level.activations, offloading) : kept;
  std::size_t recomputed = 0, recomputed_then = 0;
  for (auto const& a : work) {
    recomputed += kept.keeps(a.unit, a.index) ? 0 : 1;
    if (!kept_then.keeps(a.unit, a.index)) {
      auto& sum = level.recompute[static_cast<std::size_t>(a.unit)];
      sum = sum + device_work_of(a.recompute);
      ++recomputed_then;
    }
  }
  level.name = !name.empty()     ? std::string{name}
               : recomputed == 0 ? "none"
                                 : concat(recomputed, " of ", work.size(), " results of blocks");
  if (recomputed_then != recomputed) {
    level.name += concat("; of the expected micro-batch ", recomputed_then);
  }
  if (offloading.buffers > 0) {
    level.offloading = offloading;
    level.blocks = kept.buffers().blocks;
    level.on_host = kept.buffers().host_bytes();
    level.name += concat("; results of ", kept.buffers().leaving(), " of ", kept.buffers().blocks,
                         " blocks go to the host");
    add_leaving(work, kept_then, level);
  }
  return level;
}

/// Sums the work of blocks by unit. A backward takes twice the GEMMs and bytes of its forward, and 2.5 times
/// its attention (five GEMMs for two), and what functions run again. Returns the FLOPs of the blocks' GEMMs
/// in a forward.
SUPEROFFLOAD_INLINE double add_blocks(dry_model const& model,
                                      std::vector<autograd::activation> const& activations,
                                      step_shape const& s, offload::workload& w) {
  auto const& units = *model.units;
  double gemms = 0.0;
  std::vector<offload::device_work> again(units.size());
  for (auto const& a : activations) {
    auto const u = static_cast<std::size_t>(a.unit);
    w.units[u].forward = w.units[u].forward + device_work_of(a.recompute);
    again[u] = again[u] + device_work_of(a.again);
    gemms += a.recompute.flops + a.recompute.grouped + a.recompute.float8;
  }
  double const share = 1.0 / s.ranks;
  auto const element_bytes = static_cast<double>(model.element_bytes);
  auto const wide_bytes = static_cast<double>(model.wide_bytes);
  for (std::size_t u = 0; u < units.size(); ++u) {
    auto& [forward, backward] = w.units[u];
    backward = {2.0 * forward.gemms,   2.5 * forward.attention, 2.0 * forward.bytes,
                2.0 * forward.grouped, 2.0 * forward.float8,    forward.exchanged};
    backward = backward + again[u];
    if (units[u].trainable()) {  // the gradient norm
      backward.bytes +=
          share * static_cast<double>(units[u].elements()) *
          ((units[u].wide_gradient() && s.ranks == 1) || s.micro_batches > 1 ? wide_bytes : element_bytes);
    }
  }
  return gemms;
}

/// Adds the work outside of blocks. Rows of the embedding's table are copied, and added back into its
/// gradient, which is cleared first. The head's forward makes its logits and already its gradients.
SUPEROFFLOAD_INLINE void add_ends(dry_model const& model, step_shape const& s, double gemms_of_blocks,
                                  offload::workload& w) {
  auto const element_bytes = static_cast<double>(model.element_bytes);
  auto const wide_bytes = static_cast<double>(model.wide_bytes);
  auto const& config = *model.config;
  auto const& embedding = model.units->front();
  auto const expected_rows = expected_of(s).micro_batch.rows;
  auto const rows = static_cast<double>(expected_rows);
  double const table_row = static_cast<double>(config.hidden) * element_bytes;
  bool const cleared_wide = keeps_wide(model, embedding, s.ranks == 1 && s.micro_batches > 1);
  w.units.front().forward.bytes += 2.0 * rows * table_row;
  w.units.front().backward.bytes += 2.0 * rows * table_row + (cleared_wide ? wide_bytes : element_bytes) *
                                                                 static_cast<double>(embedding.elements());
  double const head = model.forward_flops(expected_rows, [](std::int32_t) { return 0; }) - gemms_of_blocks;
  double const logits = rows * static_cast<double>(config.vocabulary);
  w.units.back().forward.gemms += 3.0 * head;
  w.units.back().forward.bytes += logits * (2.0 * wide_bytes + 3.0 * element_bytes);
}

/// Levels at which blocks take turns in buffers, from most results kept to fewest. With the fewest buffers
/// all but a few blocks leave the device; with half as many as there are blocks, half of them.
SUPEROFFLOAD_INLINE std::vector<offload::checkpointing_level> offloading_levels_of(
    dry_model const& model, step_shape const& s, std::vector<autograd::activation> const& activations,
    std::vector<autograd::activation> const& work) {
  std::vector<offload::checkpointing_level> all;
  auto const least = recompute::inputs_offloaded.buffers;
  int const blocks = recompute::offloaded(activations, model.flops_per_byte, {}).buffers().blocks;
  for (int kept = recompute::most_kept(activations); kept >= 0; --kept) {
    for (int const buffers : {blocks / 2, least}) {
      autograd::activation_offloading const how{buffers, kept};
      if (buffers == least || (buffers > least && buffers < blocks)) {
        all.push_back(
            level_of(model, s, work, recompute::offloaded(activations, model.flops_per_byte, how), how));
      }
    }
  }
  return all;
}

/// Levels of recompute, from everything kept to nothing kept, in even steps of memory. `everything`: the peak
/// of activations with all of them kept.
SUPEROFFLOAD_INLINE std::vector<offload::checkpointing_level> levels_of(
    dry_model const& model, step_shape const& s, std::vector<autograd::activation> const& activations,
    std::vector<autograd::activation> const& work, std::size_t everything) {
  if (s.recompute == recompute::choice::offload) {
    return offloading_levels_of(model, s, activations, work);
  }
  constexpr int levels = 6;
  std::vector<offload::checkpointing_level> all;
  auto const nothing = recompute::inputs_only(activations);
  auto const add = [&](autograd::activation_checkpointing const& kept, std::string_view name = {}) {
    auto level = level_of(model, s, work, kept, {}, name);
    if (all.empty() || all.back().name != level.name) {
      all.push_back(std::move(level));
    }
  };
  if (s.recompute != recompute::choice::every_block) {
    add({});
  }
  if (s.recompute == recompute::choice::automatic) {
    auto const least = model.peak(s.micro_batch, nothing);
    for (int i = 1; i + 1 < levels; ++i) {
      auto const budget = everything - (everything - std::min(everything, least)) *
                                           static_cast<std::size_t>(i) / static_cast<std::size_t>(levels - 1);
      add(recompute::fit(activations, model.flops_per_byte, budget,
                         [&](auto const& kept) { return model.peak(s.micro_batch, kept); }));
    }
  }
  if (s.recompute != recompute::choice::none) {
    add(nothing, "every block");
  }
  return all;
}

}  // namespace detail

SUPEROFFLOAD_INLINE offload::checkpointing_level level_within(dry_model const& model, step_shape const& s,
                                                              std::size_t activations) {
  auto const all = model.activations(s.micro_batch);
  auto const kept = recompute::fit(all, model.flops_per_byte, activations,
                                   [&](auto const& some) { return model.peak(s.micro_batch, some); });
  return detail::level_of(model, s, detail::expected_work(model, s), kept);
}

SUPEROFFLOAD_INLINE offload::checkpointing_level offloading_level(
    dry_model const& model, step_shape const& s, autograd::activation_offloading const& how) {
  auto const all = model.activations(s.micro_batch);
  return detail::level_of(model, s, detail::expected_work(model, s),
                          recompute::offloaded(all, model.flops_per_byte, how), how);
}

SUPEROFFLOAD_INLINE offload::workload workload_of(dry_model const& model, step_shape const& s) {
  auto const& units = *model.units;
  std::vector<autograd::activation> activations;
  auto const everything = model.dry_pass(s.micro_batch, {}, &activations);
  offload::workload w;
  w.units.resize(units.size());
  auto const work = detail::expected_work(model, s);
  double const gemms_of_blocks = detail::add_blocks(model, work, s, w);
  detail::add_ends(model, s, gemms_of_blocks, w);
  w.levels = detail::levels_of(model, s, activations, work, everything);
  w.with_ranks = detail::collectives_of(model, s.ranks);
  if (s.whole_gradients) {
    w.whole_gradients = *s.whole_gradients;
    for (auto const& unit : units) {
      w.whole_weights.push_back(zero::whole_weight_bytes(unit, s.ranks, model.element_bytes));
    }
  }
  w.micro_batches = s.micro_batches;
  auto const expected = detail::expected_of(s);
  w.tokens = expected.tokens;
  auto const documents =
      static_cast<double>(expected.tokens) / static_cast<double>(expected.micro_batch.positions);
  w.model_flops = 3.0 * model.forward_flops(expected.tokens, [&](std::int32_t window) {
    return std::llround(documents *
                        static_cast<double>(kernel::visible_pairs(expected.micro_batch.positions, window)));
  });
  auto const batches = staging_bytes(s.micro_batch.rows, s.micro_batch.sequence_ranks);
  w.workspaces = batches + model.table_bytes(s.micro_batch.positions) + model.gemm_workspace_bytes;
  w.host_workspaces = batches + sizeof(double);
  w.element_bytes = static_cast<int>(model.element_bytes);
  w.checks_gradient = s.checks_gradient;
  w.hit_rate = s.hit_rate;
  w.weights_may_leave = s.offloads && s.ranks == 1;
  w.gradients_may_leave = s.offloads;
  return w;
}

}  // namespace superoffload::train
