// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/load_balancing.hpp>
#include <superoffload/kernel/routing.hpp>

#include "conformance/kernels/lab.hpp"

#include <numeric>

namespace superoffload::conformance {

/// The softmax of every row.
template <class T>
std::vector<double> softmax_of(std::vector<T> const& logits, std::int64_t experts) {
  std::vector<double> all;
  for (std::size_t row = 0; row < logits.size(); row += static_cast<std::size_t>(experts)) {
    double total = 0;
    for (std::int64_t e = 0; e < experts; ++e) {
      total += std::exp(double{logits[row + static_cast<std::size_t>(e)]});
    }
    for (std::int64_t e = 0; e < experts; ++e) {
      all.push_back(std::exp(double{logits[row + static_cast<std::size_t>(e)]}) / total);
    }
  }
  return all;
}

/// `padded`: about a third of the rows does not count; all: none counts.
enum class rows_that_count { every, padded, none };

template <element T, device_policy D>
void check_load_balancing(lab<D>& in, kernel::routing_shape const& s, rows_that_count which) {
  auto const logits = in.template normal<T>(s.rows * s.experts, 2);
  auto padding = in.integers(s.rows, 0, 2);  // 0 and 2: padding
  for (auto& p : padding) { p = which == rows_that_count::none ? 1 : p == 1 ? 0 : p; }
  array<D, T> const device_logits{in, logits};
  array<D, std::int32_t> const device_padding{in, padding}, device_chosen{in, s.choices()};
  array<D, wide<T>> const device_weights{in, s.choices()};
  auto const pieces = kernel::load_pieces(s.rows);
  array<D, double> const device_load{in, pieces * 2 * s.experts};
  auto const* const mask = which == rows_that_count::every ? nullptr : device_padding.data();
  launch(in.stream,
         kernel::route_forward<T>{s, device_logits.data(), device_chosen.data(), device_weights.data()});
  launch(in.stream,
         kernel::expert_load<T>{s, device_logits.data(), device_chosen.data(), mask, device_load.data()});

  auto const chosen = device_chosen.values();
  auto const probabilities = softmax_of(logits, s.experts);
  std::vector<double> load(static_cast<std::size_t>(pieces * 2 * s.experts)),
      choices(static_cast<std::size_t>(s.experts)), sums(choices.size());
  auto const counts = [&](std::int64_t row) { return mask == nullptr || padding[row] == 0; };
  for (std::int64_t row = 0; row < s.rows; ++row) {
    auto* const piece = load.data() + row / kernel::load_rows * 2 * s.experts;
    for (std::int32_t c = 0; counts(row) && c < s.each; ++c) {
      piece[chosen[row * s.each + c]] += 1.0;
      choices[chosen[row * s.each + c]] += 1.0;
    }
    for (std::int64_t e = 0; counts(row) && e < s.experts; ++e) {
      piece[s.experts + e] += probabilities[row * s.experts + e];
      sums[e] += probabilities[row * s.experts + e];
    }
  }
  double const of_probability = 20.0 * epsilon_of<wide<T>> / epsilon_of<double>;
  check_near(device_load.values(), load, load, of_probability, "expert_load");

  double const counted = std::accumulate(choices.begin(), choices.end(), 0.0) / s.each;
  double const weight = 0.7, divisor = 3.0, before = 5.0;
  array<D, double> const device_slope{in, s.experts}, device_total{in, std::vector<double>{before}};
  launch(in.stream, kernel::load_balancing_loss{device_load.data(), pieces, s.experts, s.each, weight,
                                                divisor, device_slope.data(), device_total.data()});
  std::vector<double> slope(choices.size());
  double loss = 0;
  for (std::size_t e = 0; e < slope.size() && counted > 0; ++e) {
    loss += static_cast<double>(s.experts) * (choices[e] / counted) * (sums[e] / counted);
    slope[e] = weight * static_cast<double>(s.experts) * choices[e] / counted / counted;
  }
  std::vector<double> const total{before + divisor * weight * loss};
  check_near(device_total.values(), total, total, of_probability, "load_balancing_loss");
  check_near(device_slope.values(), slope, slope, 8, "load_balancing_loss's slope");

  auto const given = in.template normal<T>(s.rows * s.experts, counted > 0 ? 1.0 / counted : 1.0);
  array<D, T> const device_d_logits{in, given};
  launch(in.stream, kernel::load_balancing_backward<T>{s, device_logits.data(), device_chosen.data(), mask,
                                                       device_slope.data(), device_d_logits.data()});
  std::vector<double> d_logits(given.size()), size(given.size());
  for (std::int64_t row = 0; row < s.rows; ++row) {
    auto const* const p = probabilities.data() + row * s.experts;
    double const mean = std::inner_product(p, p + s.experts, slope.begin(), 0.0);
    for (std::int64_t e = 0; e < s.experts; ++e) {
      auto const at = static_cast<std::size_t>(row * s.experts + e);
      d_logits[at] =
          double{given[at]} + (counts(row) ? p[e] * (slope[static_cast<std::size_t>(e)] - mean) : 0.0);
      size[at] = std::abs(double{given[at]}) + p[e] * (slope[static_cast<std::size_t>(e)] + mean);
    }
  }
  check_near(device_d_logits.values(), d_logits, size, 40, "load_balancing_backward");
}

template <device_policy D>
void check_load_balancing(lab<D>& in) {
  auto const check = [&]<class T>(T) {
    for (auto const which : {rows_that_count::every, rows_that_count::padded, rows_that_count::none}) {
      check_load_balancing<T>(in, {0, 4, 2}, which);
      check_load_balancing<T>(in, {1, 1, 1}, which);
      check_load_balancing<T>(in, {7, 8, 2, false}, which);
      check_load_balancing<T>(in, {256, 5, 5}, which);
      check_load_balancing<T>(in, {700, 33, 4}, which);
      check_load_balancing<T>(in, {40, 300, 8, false}, which);
    }
  };
  check(float{});
  check(bfloat16{});
  check(double{});
}

}  // namespace superoffload::conformance
