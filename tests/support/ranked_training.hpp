// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A short training by any number of ranks, on any device.

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/data/batch.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/train/engine.hpp>

#include "conformance/communicator.hpp"
#include "support/engine_cores.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace superoffload::test::ranked {

/// A model whose units have one to four cells of the norm's grid: shards of all sizes, also empty ones.
inline model::config config_of(bool tied, int layers = 2) {
  return {.model_type = "llama",
          .vocabulary = 701,
          .hidden = 128,
          .intermediate = 256,
          .layers = layers,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 32,
          .max_positions = 64,
          .tied_head = tied};
}

inline void some_weights(std::string const& name, std::int64_t first, std::span<float> to) {
  for (auto& value : to) {
    auto const x = static_cast<float>((first++ * 7919 + static_cast<std::int64_t>(name.size()) * 31) % 10007);
    value = name.find("norm") != std::string::npos ? 1.0F : 0.06F * std::sin(x);
  }
}

/// The token of no sequence of sequences_of().
inline constexpr std::int32_t rare_token = 700;

/// A step's sequences, of odd lengths; some have no targets at all.
inline std::vector<std::vector<std::int32_t>> sequences_of(int step) {
  std::vector<std::vector<std::int32_t>> all;
  for (int s = 0; s < 5; ++s) {
    auto& tokens = all.emplace_back();
    for (int i = 0; i < 3 + (s * 5 + step) % 11; ++i) {
      tokens.push_back((s * 131 + i * i * 17 + step * 7) % rare_token);
    }
  }
  return all;
}
inline bool has_targets(int sequence) { return sequence != 3; }

/// Sequences [begin, end) of a step; an empty range is an empty batch.
inline data::batch batch_of(int step, std::size_t begin, std::size_t end) {
  data::batch b;
  b.starts = {0};
  auto const all = sequences_of(step);
  for (auto s = begin; s < end; ++s) {
    auto const& tokens = all[s];
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      b.tokens.push_back(tokens[i]);
      b.positions.push_back(static_cast<std::int32_t>(i));
      b.targets.push_back(i + 1 < tokens.size() && has_targets(static_cast<int>(s)) ? tokens[i + 1] : -1);
    }
    b.starts.push_back(static_cast<std::int32_t>(b.tokens.size()));
  }
  return b;
}
inline std::int64_t label_tokens_of(int step) { return batch_of(step, 0, 5).label_tokens(); }

struct settings {
  bool tied = false;
  int micro_batches = 1;
  recompute::choice recompute = recompute::choice::none;
  double max_grad_norm = 1.0;
  bool speculates = true;
  /// The immediate mode: no clipping, the learning rate is announced, and gradients are used as they become
  /// final.
  bool immediate = false;
  int layers = 2;
  int weight_buffers = 3;  ///< units that are gathered at once
  int weight_ranks = 0;    ///< that keep a copy of the weights; 0: all
  bool sums_in_copies = false;
  int sequence_ranks = 1;  ///< that share a micro-batch
  int kv_heads = 2;        ///< of four heads
  int tiled_mlp = 0;       ///< as in model::config
  /// Before every other step comes one in which this rank alone has a gradient that is not finite. It must be
  /// skipped and leave nothing behind. Not for a tied embedding; -1: there is none.
  int overflows_on = -1;
};

struct record {
  std::vector<double> losses, norms;
  double evaluation = 0.0;
  std::vector<float> weights, gradient, moments;

  friend bool operator==(record const&, record const&) = default;
};

/// The first part in which two records differ, with its values there; empty: they are equal.
inline std::string difference(record const& a, record const& b) {
  std::string found;
  auto const compare = [&](char const* part, auto const& of_a, auto const& of_b) {
    auto const [x, y] = std::mismatch(of_a.begin(), of_a.end(), of_b.begin(), of_b.end());
    if (!found.empty() || (x == of_a.end() && y == of_b.end())) {
      return;
    }
    found = concat(part, "[", x - of_a.begin(), "]");
    if (x != of_a.end() && y != of_b.end()) {
      found += concat(" is ", *x, " and ", *y);
    }
  };
  compare("losses", a.losses, b.losses);
  compare("norms", a.norms, b.norms);
  compare("evaluation", std::array{a.evaluation}, std::array{b.evaluation});
  compare("weights", a.weights, b.weights);
  compare("gradient", a.gradient, b.gradient);
  compare("moments", a.moments, b.moments);
  return found;
}

inline superoffload::train::engine_options options_of(settings const& s) {
  return {.max_grad_norm = s.immediate ? 0.0 : s.max_grad_norm,
          .max_rows = 80,
          .max_positions = 32,
          .sequence_ranks = s.sequence_ranks,
          .accumulates = s.micro_batches > 1,
          .recompute = s.recompute};
}

inline constexpr int steps = under_thread_sanitizer ? 2 : under_sanitizer ? 3 : 6;

/// Sets the first number of rare_token's embedding.
template <class Engine>
void set_rare_weight(Engine& e, float value) {
  for (auto const& field : e.state_fields()) {
    auto const offset = std::size_t{rare_token} * 128 * sizeof(float);
    auto const kept = e.kept_here(field);
    if (field.name == "unit0.master" && kept.offset <= offset && offset < kept.offset + kept.bytes) {
      e.write_state(field, offset, std::as_bytes(std::span{&value, 1}));
    }
  }
}

/// A step that every rank must skip, because one rank's sequence has a weight that is infinite.
template <class Engine>
void overflow(Engine& e, settings const& s, int step, int rank) {
  set_rare_weight(e, std::numeric_limits<float>::infinity());
  e.begin_step(label_tokens_of(step), s.micro_batches, s.immediate ? std::optional{2e-4} : std::nullopt);
  for (int b = 0; b < s.micro_batches; ++b) {
    auto batch = batch_of(step, 0, 1);
    if (rank == s.overflows_on) {
      batch.tokens.front() = rare_token;
    }
    auto const loss = e.forward(batch);
    conformance::require(!std::isfinite(loss), "the loss is ", loss, " with an infinite weight");
    e.backward();
  }
  conformance::require(!e.step(2e-4).accepted, "step ", step, " was accepted with an infinite weight");
  set_rare_weight(e, 0.0F);
}

/// Trains the engine of rank `rank` of `ranks`. Ranks that share micro-batches count as one.
template <class Engine>
record train(Engine& e, settings const& s, int rank, int ranks) {
  rank /= s.sequence_ranks;
  ranks /= s.sequence_ranks;
  record r;
  e.initialize(some_weights);
  set_rare_weight(e, 0.0F);
  for (int step = 0; step < steps; ++step) {
    if (s.overflows_on >= 0 && step % 2 == 1) {
      overflow(e, s, step, rank);
    }
    e.begin_step(label_tokens_of(step), s.micro_batches, s.immediate ? std::optional{2e-4} : std::nullopt);
    double loss = 0.0;
    for (int b = 0; b < s.micro_batches; ++b) {
      // As data::loader cuts a step.
      auto const parts = static_cast<std::size_t>(s.micro_batches * ranks);
      auto const part = static_cast<std::size_t>(b * ranks + rank);
      loss += e.forward(batch_of(step, 5 * part / parts, 5 * (part + 1) / parts));
      e.backward();
    }
    auto const result = e.step(2e-4);
    conformance::require(result.accepted, "step ", step, " was skipped");
    r.losses.push_back(loss);
    r.norms.push_back(result.grad_norm);
  }
  auto const n = static_cast<std::size_t>(ranks);
  auto const own = static_cast<std::size_t>(rank);
  r.evaluation = e.evaluate(batch_of(9, 5 * own / n, 5 * (own + 1) / n));
  std::size_t elements = 0, state_bytes = 0;
  for (auto const& unit : e.model().units()) { elements += static_cast<std::size_t>(unit.elements()); }
  for (auto const& field : e.state_fields()) { state_bytes += field.bytes; }
  r.weights.resize(elements);
  r.gradient.resize(s.immediate ? 0 : elements);
  std::size_t begin = 0;
  for (auto const& unit : e.model().units()) {
    auto const size = static_cast<std::size_t>(unit.elements());
    e.read_weights(unit, 0, std::span{r.weights}.subspan(begin, size));
    if (!s.immediate) {
      e.read_gradient(unit, 0, std::span{r.gradient}.subspan(begin, size));
    }
    begin += size;
  }
  r.moments.resize(state_bytes / sizeof(float));
  auto moments = std::as_writable_bytes(std::span{r.moments});
  for (auto const& field : e.state_fields()) {
    e.read_state(field, 0, moments.first(field.bytes));
    moments = moments.subspan(field.bytes);
  }
  e.synchronize();
  return r;
}

/// Some buckets in each tier, others on each rank.
inline offload::placement mixed(std::vector<autograd::unit_layout> const& shards, int rank) {
  auto buckets = offload::buckets_of(shards, 1);
  constexpr offload::tier tiers[] = {offload::tier::host, offload::tier::device_updated,
                                     offload::tier::resident};
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    buckets[i].where = tiers[(i + static_cast<std::size_t>(rank)) % 3];
  }
  return buckets;
}

/// The configuration of the settings: state in every tier, if the engine's policies place it.
template <class Engine>
offload::configuration configuration_of(Engine const& e, settings const& s, int rank) {
  offload::configuration a;
  a.buffers.weights = s.weight_buffers;
  a.weight_ranks = s.weight_ranks;
  a.sums_in_copies = s.sums_in_copies;
  if constexpr (Engine::configures) {
    a.buckets = mixed(e.units_of_state(), rank);
    a.speculates = s.speculates;
  }
  return a;
}

/// An engine takes the device memory of its plan.
template <class Device, class Engine>
void require_planned_memory(Device const& device, Engine const& e) {
  auto const planned = static_cast<double>(e.allocation().total());
  auto const taken = static_cast<double>(device.bytes_in_use());
  conformance::require(std::abs(taken - planned) < 0.03 * planned, "planned ", planned, ", took ", taken);
}

/// The largest relative difference.
inline double worst(std::vector<double> const& a, std::vector<double> const& b) {
  if (a.size() != b.size()) {
    return std::numeric_limits<double>::infinity();
  }
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]) / std::abs(b[i]));
  }
  return most;
}

}  // namespace superoffload::test::ranked
