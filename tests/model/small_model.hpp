// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A small model of any architecture in double, and the checks that all architectures share.
#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/nn/batch.hpp>

#include "support/graph.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

namespace superoffload::test {

/// Enough for two layers with grouped queries, whose heads together are wider than the hidden state.
inline model::config small_config(std::string const& type, bool tied = false) {
  model::config c{.model_type = type,
                  .vocabulary = 11,
                  .hidden = 8,
                  .intermediate = 10,
                  .layers = 2,
                  .heads = 4,
                  .kv_heads = 2,
                  .head_dim = 4,
                  .max_positions = 64};
  c.tied_head = tied;
  return c;
}

struct sample;
/// Sorts the rows of the sample by token, for the embedding's backward.
void order_tokens(sample& s);

/// Two documents, one row without a target, one token three times.
struct sample {
  std::vector<std::int32_t> tokens{3, 1, 3, 7, 0, 10, 3, 2}, targets{1, 3, 7, -1, 10, 3, 2, -1},
      positions{0, 1, 2, 3, 0, 1, 2, 3}, starts{0, 4, 8}, order, segment_starts, segment_ids;
  nn::batch batch;

  sample() {
    batch = {.rows = 8, .documents = 2, .longest = 4, .divisor = 6, .noise = 1};
    batch.tokens = tokens.data();
    batch.targets = targets.data();
    batch.positions = positions.data();
    batch.starts = starts.data();
    order_tokens(*this);
  }
};

inline void order_tokens(sample& s) {
  s.order.resize(s.tokens.size());
  std::iota(s.order.begin(), s.order.end(), 0);
  std::stable_sort(s.order.begin(), s.order.end(), [&](auto i, auto j) { return s.tokens[i] < s.tokens[j]; });
  s.segment_starts.clear();
  s.segment_ids.clear();
  for (std::size_t i = 0; i < s.order.size(); ++i) {
    if (s.segment_ids.empty() || s.segment_ids.back() != s.tokens[s.order[i]]) {
      s.segment_ids.push_back(s.tokens[s.order[i]]);
      s.segment_starts.push_back(static_cast<std::int32_t>(i));
    }
  }
  s.segment_starts.push_back(static_cast<std::int32_t>(s.order.size()));
  s.batch.segments = static_cast<std::int64_t>(s.segment_ids.size());
  s.batch.order = s.order.data();
  s.batch.segment_starts = s.segment_starts.data();
  s.batch.segment_ids = s.segment_ids.data();
}

template <model::architecture A>
struct small_model {
  using tables = typename A::template tables<cpu::device, double>;

  explicit small_model(model::config const& c)
      : model{c},
        g{model.units()},
        table{model.template make_tables<cpu::device, double>(g.device, g.stream, 8)} {}

  double loss(bool with_backward) {
    g.on.reset(with_backward);
    auto const sum = model.template loss<cpu::device, double>(g.on, s.batch, &table);
    g.stream.synchronize();
    return *sum.total / 6.0;
  }
  void gradients(autograd::activation_checkpointing const& kept = {}) {
    g.on.retain(&kept);
    g.on.forget_gradients();
    loss(true);
    g.on.backward();
    g.stream.synchronize();
    g.on.retain(nullptr);  // `kept` may be destroyed now
  }
  std::vector<double> all_gradients() {
    std::vector<double> all;
    for (auto const& unit : model.units()) {
      auto const* const gradient = static_cast<double const*>(g.store.gradient(unit.id()).data);
      all.insert(all.end(), gradient, gradient + unit.elements());
    }
    return all;
  }
  /// The peak of a dry pass.
  std::size_t dry_peak(autograd::activation_checkpointing const& kept,
                       std::vector<autograd::activation>* activations = nullptr) {
    autograd::tape<cpu::device, double> dry{g.device, static_cast<int>(model.units().size())};
    tables const none;
    dry.retain(&kept);
    dry.list_activations(activations);
    dry.reset();
    model.template loss<cpu::device, double>(dry, s.batch, &none);
    dry.backward();
    return dry.peak_bytes();
  }

  sample s;
  A model;
  graph g;
  tables table;
};

/// Every parameter has the gradient that finite differences give.
template <model::architecture A>
void check_gradients(model::config const& c) {
  small_model<A> m{c};
  m.gradients();
  // Some parts are there only if a backward follows.
  bool const records = c.attention_dropout > 0.0 || c.residual_dropout > 0.0 || c.load_balancing_weight > 0.0;
  std::vector<double> const gradients = m.all_gradients();
  std::int64_t unit_begin = 0;
  for (auto const& unit : m.model.units()) {
    for (auto const& tensor : unit.tensors()) {
      CAPTURE(tensor.name);
      std::span const gradient{gradients.data() + unit_begin + tensor.offset,
                               static_cast<std::size_t>(tensor.count())};
      check_derivatives(m.g.weights(unit.id(), tensor), gradient, [&] { return m.loss(records); });
    }
    unit_begin += unit.elements();
  }
}

/// The same configuration with more layers.
inline model::config with_layers(model::config c, std::int64_t layers) {
  auto const repeat = [&](auto& of_layers) {
    auto const given = of_layers;
    for (auto layer = given.size(); !given.empty() && layer < static_cast<std::size_t>(layers); ++layer) {
      of_layers.push_back(given[layer % given.size()]);
    }
  };
  repeat(c.windows);
  repeat(c.dense_layers);
  c.layers = layers;
  return c;
}

/// Checks that gradients are the same bit for bit if blocks take turns in buffers for what they keep, with
/// any number of buffers and any choice of what they keep, and that the peak is as planned.
template <model::architecture A>
void check_offloading(model::config const& small) {
  auto const c = with_layers(small, 6);
  small_model<A> m{c};
  std::vector<autograd::activation> activations;
  auto const whole = m.dry_peak({}, &activations);
  m.gradients();
  auto const expected = m.all_gradients();
  std::mt19937 generator{7};
  for (int const buffers : {2, 3, 6}) {
    for (int i = 0; i < 3; ++i) {
      autograd::activation_checkpointing kept;
      std::vector<std::size_t> bytes(m.model.units().size());
      for (auto const& a : activations) {
        if (i == 0 || (i > 1 && generator() % 2 == 0)) {
          kept.drop(a);
        }
        bytes[static_cast<std::size_t>(a.unit)] += kept.keeps(a.unit, a.index) ? a.bytes : 0;
      }
      kept.take_turns({buffers, *std::max_element(bytes.begin(), bytes.end()), 6});
      CHECK(kept.buffers().leaving() == 6 - buffers);
      CAPTURE(buffers);
      CAPTURE(i);
      small_model<A> again{c};
      again.gradients(kept);
      CHECK(again.all_gradients() == expected);
      CHECK(again.g.on.peak_bytes() == again.dry_peak(kept));
      CHECK((buffers > 2 || i > 0 || again.g.on.peak_bytes() < whole));
    }
  }
}

/// Checks that the choice of kept activations changes no bit of a gradient, and that the peak is as planned.
/// \returns the activations that can be kept.
template <model::architecture A>
std::vector<autograd::activation> check_recompute(model::config const& c) {
  small_model<A> m{c};
  std::vector<autograd::activation> activations;
  autograd::activation_checkpointing const everything;
  auto const whole = m.dry_peak(everything, &activations);
  m.gradients();
  CHECK(m.g.on.peak_bytes() == whole);
  auto const expected = m.all_gradients();
  std::mt19937 generator{5};
  for (int i = 0; i < 60; ++i) {
    autograd::activation_checkpointing kept;
    for (auto const& a : activations) {
      if (i == 0 || generator() % 2 == 0) {
        kept.drop(a);
      }
    }
    small_model<A> again{c};
    again.gradients(kept);
    CHECK(again.all_gradients() == expected);
    CHECK(again.g.on.peak_bytes() == again.dry_peak(kept));
    CHECK((i > 0 || again.g.on.peak_bytes() < whole));
  }
  check_offloading<A>(c);
  return activations;
}

}  // namespace superoffload::test
