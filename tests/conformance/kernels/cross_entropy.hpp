// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/cross_entropy.hpp>

#include "conformance/kernels/lab.hpp"

namespace superoffload::conformance {

enum class logits_gradient { none, separate, in_place };

template <element T, device_policy D>
void check_cross_entropy(lab<D>& in, std::int64_t rows, std::int32_t vocabulary, double deviation,
                         logits_gradient where) {
  using W = wide<T>;
  if (where == logits_gradient::in_place && !std::same_as<T, W>) {
    return;  // the contract has in place only for T that is wide
  }
  double const scale = 1.0 / 7;
  auto const logits = in.template normal<W>(rows * vocabulary, deviation);
  auto const targets = in.integers(rows, -1, vocabulary - 1);
  array<D, W> const device_logits{in, logits};
  array<D, std::int32_t> const device_targets{in, targets};
  array<D, W> const device_loss{in, rows};
  array<D, T> const separate{in, rows * vocabulary};
  T* const d_logits = where == logits_gradient::none ? nullptr
                      : where == logits_gradient::separate
                          ? separate.data()
                          : reinterpret_cast<T*>(device_logits.data());  // T is wide<T> then
  launch(in.stream, kernel::cross_entropy<T>{.logits = device_logits.data(),
                                             .targets = device_targets.data(),
                                             .row_loss = device_loss.data(),
                                             .d_logits = d_logits,
                                             .rows = rows,
                                             .vocabulary = vocabulary,
                                             .scale = scale});
  std::vector<double> loss, loss_size, gradient, gradient_size;
  for (std::int64_t row = 0; row < rows; ++row) {
    auto const first = logits.begin() + row * vocabulary;
    double const top = *std::max_element(first, first + vocabulary);
    double total = 0;
    for (std::int32_t i = 0; i < vocabulary; ++i) { total += std::exp(double{first[i]} - top); }
    auto const target = targets[row];
    loss.push_back(target < 0 ? 0 : std::log(total) + top - double{first[target]});
    loss_size.push_back(target < 0 ? 0 : 1 + std::abs(top) + std::abs(double{first[target]}));
    for (std::int32_t i = 0; i < vocabulary; ++i) {
      auto const probability = std::exp(double{first[i]} - top) / total;
      gradient.push_back(target < 0 ? 0 : (probability - (i == target ? 1 : 0)) * scale);
      // The shift of a logit by the largest one is exact to half a unit of the last place of either.
      gradient_size.push_back(
          target < 0 ? 0 : (probability * (1 + std::abs(top)) + (i == target ? 1 : 0)) * scale);
    }
  }
  check_near(device_loss.values(), loss, loss_size, 20, "cross_entropy: row_loss");
  if (where == logits_gradient::none) {
    return;
  }
  auto written = separate.values();
  if constexpr (std::same_as<T, W>) {
    if (where == logits_gradient::in_place) {
      written = device_logits.values();
    }
  }
  check_near(written, gradient, gradient_size, 20, "cross_entropy: d_logits");
}

/// Values that are not finite must stay so: the gradient check depends on it.
template <element T, device_policy D>
void check_cross_entropy_not_a_number(lab<D>& in, std::int32_t vocabulary) {
  using W = wide<T>;
  for (std::int32_t const at : {0, 5, vocabulary - 1}) {
    auto logits = in.template normal<W>(vocabulary);
    logits[static_cast<std::size_t>(at)] = std::numeric_limits<W>::quiet_NaN();
    array<D, W> const device_logits{in, logits};
    array<D, std::int32_t> const device_targets{in, std::vector<std::int32_t>{5}};
    array<D, W> const device_loss{in, 1};
    array<D, T> const device_gradient{in, vocabulary};
    launch(in.stream, kernel::cross_entropy<T>{.logits = device_logits.data(),
                                               .targets = device_targets.data(),
                                               .row_loss = device_loss.data(),
                                               .d_logits = device_gradient.data(),
                                               .rows = 1,
                                               .vocabulary = vocabulary,
                                               .scale = 1});
    CHECK(std::isnan(device_loss.values()[0]));
    auto const gradient = device_gradient.values();
    CHECK(std::all_of(gradient.begin(), gradient.end(), [](T x) { return std::isnan(double{x}); }));
  }
}

template <element T, device_policy D>
void check_cross_entropy_of(lab<D>& in) {
  check_cross_entropy_not_a_number<T>(in, 37);
  for (auto const where : {logits_gradient::none, logits_gradient::separate, logits_gradient::in_place}) {
    for (std::int64_t const rows : {0, 1, 13, 70}) {
      for (std::int32_t const vocabulary : {1, 2, 17, 100, 1003}) {
        check_cross_entropy<T>(in, rows, vocabulary, vocabulary == 17 ? 40 : 2, where);
      }
    }
  }
}

template <device_policy D>
void check_cross_entropy(lab<D>& in) {
  check_cross_entropy_of<float>(in);
  check_cross_entropy_of<bfloat16>(in);
  check_cross_entropy_of<double>(in);
}

}  // namespace superoffload::conformance
