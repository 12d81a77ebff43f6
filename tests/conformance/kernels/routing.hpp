// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/routing.hpp>

#include "conformance/kernels/lab.hpp"

#include <numeric>

namespace superoffload::conformance {

/// Logits with few different values, so that many are equal, and rows of NaN.
enum class routing_logits { any, with_ties, with_nan };

template <element T, device_policy D>
void check_routing(lab<D>& in, kernel::routing_shape const& s, routing_logits kind, bool dense) {
  auto logits = in.template normal<T>(s.rows * s.experts, 2);
  if (kind == routing_logits::with_ties) {
    auto const values = in.integers(s.rows * s.experts, -1, 1);
    for (std::size_t i = 0; i < logits.size(); ++i) { logits[i] = rounded<T>(values[i]); }
  }
  if (kind == routing_logits::with_nan) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      auto const row = static_cast<std::int64_t>(i) / s.experts;
      if (row % 3 == 0 || (row % 3 == 1 && i % 2 == 0)) {
        logits[i] = rounded<T>(std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
  array<D, T> const device_logits{in, logits};
  array<D, std::int32_t> const device_chosen{in, s.choices()};
  array<D, wide<T>> const device_weights{in, s.choices()};
  array<D, T> const device_dense{in, s.rows * s.experts};
  launch(in.stream, kernel::route_forward<T>{s, device_logits.data(), device_chosen.data(),
                                             device_weights.data(), dense ? device_dense.data() : nullptr});
  auto const chosen = device_chosen.values();
  std::vector<std::int32_t> expected_choice;
  for (std::int64_t row = 0; row < s.rows; ++row) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(s.experts));
    std::iota(order.begin(), order.end(), 0);
    auto const key = [&](std::int32_t e) {
      double const logit = logits[static_cast<std::size_t>(row * s.experts + e)];
      return logit == logit ? logit : -std::numeric_limits<double>::infinity();
    };
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) > key(b); });
    expected_choice.insert(expected_choice.end(), order.begin(), order.begin() + s.each);
  }
  CHECK(chosen == expected_choice);
  if (kind == routing_logits::with_nan || chosen != expected_choice) {
    return;
  }

  std::vector<double> weights, dense_weights(static_cast<std::size_t>(s.rows * s.experts)),
      probabilities(dense_weights.size());
  for (std::int64_t row = 0; row < s.rows; ++row) {
    auto const logit = [&](std::int64_t e) {
      return double{logits[static_cast<std::size_t>(row * s.experts + e)]};
    };
    double total = 0;
    for (std::int64_t e = 0; e < s.experts; ++e) {
      auto const* const own = &chosen[static_cast<std::size_t>(row * s.each)];
      if (!s.normalised || std::find(own, own + s.each, e) != own + s.each) {
        total += std::exp(logit(e));
      }
    }
    for (std::int64_t e = 0; e < s.experts; ++e) {
      probabilities[static_cast<std::size_t>(row * s.experts + e)] = std::exp(logit(e)) / total;
    }
    for (std::int32_t c = 0; c < s.each; ++c) {
      auto const at = static_cast<std::size_t>(row * s.experts + chosen[row * s.each + c]);
      weights.push_back(probabilities[at]);
      dense_weights[at] = probabilities[at];
    }
  }
  auto const device_given = device_weights.values();
  check_near(device_given, weights, weights, 20, "route_forward");
  if (dense) {
    check_near(device_dense.values(), dense_weights, dense_weights, 20, "route_forward's dense weights");
  }

  auto const d_weights = in.template normal<wide<T>>(s.choices());
  auto const d_dense = in.template normal<T>(s.rows * s.experts);
  array<D, wide<T>> const device_d_weights{in, d_weights};
  array<D, T> const device_d_dense{in, d_dense};
  array<D, T> const device_d_logits{in, s.rows * s.experts};
  launch(in.stream,
         kernel::route_backward<T>{s, device_logits.data(), device_chosen.data(), device_weights.data(),
                                   device_d_weights.data(), dense ? device_d_dense.data() : nullptr,
                                   device_d_logits.data()});
  std::vector<double> d_logits(logits.size()), size(logits.size());
  for (std::int64_t row = 0; row < s.rows; ++row) {
    std::vector<double> d(static_cast<std::size_t>(s.each));
    double mean = 0, magnitude = 0;
    for (std::int32_t c = 0; c < s.each; ++c) {
      auto const i = static_cast<std::size_t>(row * s.each + c);
      d[static_cast<std::size_t>(c)] = d_weights[i];
      if (dense) {
        d[static_cast<std::size_t>(c)] += double{d_dense[row * s.experts + chosen[i]]};
      }
      mean += weights[i] * d[static_cast<std::size_t>(c)];
      magnitude += std::abs(weights[i] * d[static_cast<std::size_t>(c)]);
    }
    for (std::int64_t e = 0; e < s.experts; ++e) {
      auto const at = static_cast<std::size_t>(row * s.experts + e);
      d_logits[at] = s.normalised ? 0.0 : -probabilities[at] * mean;
      size[at] = probabilities[at] * magnitude;
    }
    for (std::int32_t c = 0; c < s.each; ++c) {
      auto const i = static_cast<std::size_t>(row * s.each + c);
      auto const at = static_cast<std::size_t>(row * s.experts + chosen[i]);
      d_logits[at] = weights[i] * (d[static_cast<std::size_t>(c)] - mean);
      size[at] = weights[i] * (std::abs(d[static_cast<std::size_t>(c)]) + magnitude);
    }
  }
  check_near(device_d_logits.values(), d_logits, size, 40, "route_backward");
}

/// Checks grouping, gathering and combining of given choices.
template <element T, device_policy D>
void check_grouping(lab<D>& in, std::vector<std::int32_t> const& chosen, std::int64_t experts,
                    std::int32_t each, std::int64_t columns, bool addend, bool in_place) {
  auto const choices = std::ssize(chosen);
  auto const rows = choices / each;
  array<D, std::int32_t> const device_chosen{in, chosen};
  array<D, std::int32_t> const device_starts{in, experts + 1};
  array<D, std::int32_t> const device_order{in, choices};
  array<D, std::int32_t> const device_places{in, choices};
  launch(in.stream, kernel::group_choices{device_chosen.data(), device_starts.data(), device_order.data(),
                                          device_places.data(), choices, experts});
  std::vector<std::int32_t> order(chosen.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return chosen[a] < chosen[b]; });
  std::vector<std::int32_t> places(chosen.size()), starts;
  for (std::size_t i = 0; i < order.size(); ++i) { places[order[i]] = static_cast<std::int32_t>(i); }
  for (std::int32_t e = 0; e <= experts; ++e) {
    starts.push_back(static_cast<std::int32_t>(
        std::count_if(chosen.begin(), chosen.end(), [&](auto expert) { return expert < e; })));
  }
  CHECK(device_starts.values() == starts);
  CHECK(device_order.values() == order);
  CHECK(device_places.values() == places);

  auto const x = in.template normal<T>(rows * columns);
  array<D, T> const device_x{in, x};
  array<D, T> const device_grouped{in, choices * columns};
  launch(in.stream, kernel::gather_rows<T>{device_x.data(), device_order.data(), device_grouped.data(),
                                           choices, columns, each});
  auto const grouped = device_grouped.values();
  bool same = true;
  for (std::int64_t i = 0; i < choices; ++i) {
    for (std::int64_t c = 0; c < columns; ++c) {
      same = same && grouped[i * columns + c] == x[order[i] / each * columns + c];
    }
  }
  CHECK(same);

  auto const terms = in.template normal<T>(choices * columns);
  auto const added = in.template normal<T>(rows * columns);
  array<D, T> const device_terms{in, terms};
  array<D, T> const device_added{in, added};
  array<D, T> const separate{in, rows * columns};
  auto const& device_out = addend && in_place ? device_added : separate;
  launch(in.stream, kernel::combine_rows<T>{device_terms.data(), device_places.data(),
                                            addend ? device_added.data() : nullptr, device_out.data(), rows,
                                            columns, each});
  std::vector<double> expected, size;
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    double sum = addend ? double{added[i]} : 0.0;
    double magnitude = std::abs(sum);
    for (std::int32_t c = 0; c < each; ++c) {
      double const term = terms[places[i / columns * each + c] * columns + i % columns];
      sum += term;
      magnitude += std::abs(term);
    }
    expected.push_back(sum);
    size.push_back(magnitude);
  }
  check_near(device_out.values(), expected, size, each + 2.0, "combine_rows");
}

template <device_policy D>
void check_routing(lab<D>& in) {
  auto const for_types = [&](auto const& check) {
    check(float{});
    check(bfloat16{});
    check(double{});
  };
  for_types([&]<class T>(T) {
    for (bool const normalised : {false, true}) {
      for (auto const kind : {routing_logits::any, routing_logits::with_ties, routing_logits::with_nan}) {
        check_routing<T>(in, {0, 4, 2, normalised}, kind, true);
        check_routing<T>(in, {1, 1, 1, normalised}, kind, true);
        check_routing<T>(in, {7, 8, 2, normalised}, kind, false);
        check_routing<T>(in, {300, 33, 5, normalised}, kind, true);
        check_routing<T>(in, {40, 128, 8, normalised}, kind, false);
        check_routing<T>(in, {9, 6, 6, normalised}, kind, true);
      }
    }
  });
  for_types([&]<class T>(T) {
    for (bool const flag : {false, true}) {
      check_grouping<T>(in, {}, 3, 2, 5, flag, flag);
      check_grouping<T>(in, {0}, 1, 1, 1, flag, flag);
      check_grouping<T>(in, {3, 1, 1, 3, 0, 3}, 5, 2, 33, flag, flag);
      check_grouping<T>(in, std::vector<std::int32_t>(260, 2), 4, 1, 40, flag, !flag);
      check_grouping<T>(in, in.integers(3000, 0, 15), 16, 3, 64, flag, flag);
    }
  });
}

}  // namespace superoffload::conformance
