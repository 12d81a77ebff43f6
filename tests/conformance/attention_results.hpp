// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

namespace superoffload::conformance {

struct attention_results {
  std::vector<double> out, log_sum_exp, d_q, d_k, d_v, d_sinks;
};

/// Attention and its gradient on inputs drawn in bfloat16 and, where T is wider, widened: the same for every
/// type and every implementation.
template <element T, device_policy D>
attention_results attend(lab<D>& in, attention_case const& c) {
  in.random.seed(7);
  array<D, std::int32_t> const device_starts{in, c.starts()};
  auto const shape = c.shape(device_starts.data());
  auto const rows = shape.rows;
  auto const draw = [&](std::int64_t count) {
    auto const values = in.template normal<bfloat16>(count);
    std::vector<T> widened;
    for (auto const value : values) { widened.push_back(rounded<T>(double{value})); }
    return widened;
  };
  auto const width = shape.qkv_columns();
  auto const out_width = std::int64_t{c.heads} * c.head_dim;
  array<D, T> const qkv{in, draw(rows * width)}, sinks{in, draw(c.heads)}, d_out{in, draw(rows * out_width)};
  array<D, T> const out{in, rows * out_width}, d_qkv{in, rows * width};
  array<D, wide<T>> const log_sum_exp{in, c.heads * rows}, delta{in, c.heads * rows};
  auto const* const used_sinks = c.sinks ? sinks.data() : nullptr;
  launch_with_scratch(in, kernel::attention_forward<T>{.shape = shape,
                                                       .qkv = qkv.data(),
                                                       .out = out.data(),
                                                       .log_sum_exp = log_sum_exp.data(),
                                                       .sinks = used_sinks});
  launch_with_scratch(in, kernel::attention_backward<T>{.shape = shape,
                                                        .qkv = qkv.data(),
                                                        .out = out.data(),
                                                        .d_out = d_out.data(),
                                                        .log_sum_exp = log_sum_exp.data(),
                                                        .delta = delta.data(),
                                                        .d_qkv = d_qkv.data(),
                                                        .sinks = used_sinks});
  attention_results r;
  if (c.sinks) {
    for (double const x : sinks_gradient<T>(in, {.shape = shape,
                                                 .out = out.data(),
                                                 .d_out = d_out.data(),
                                                 .log_sum_exp = log_sum_exp.data(),
                                                 .sinks = used_sinks,
                                                 .partial = nullptr})) {
      r.d_sinks.push_back(x);
    }
  }
  for (double const x : out.values()) { r.out.push_back(x); }
  for (double const x : log_sum_exp.values()) { r.log_sum_exp.push_back(x); }
  auto const gradient = d_qkv.values();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    auto const head = static_cast<std::int64_t>(i) % width / c.head_dim;
    (head < c.heads ? r.d_q : head < c.heads + c.kv_heads ? r.d_k : r.d_v).push_back(gradient[i]);
  }
  return r;
}

/// |actual - expected| / |expected|, infinite where something is not a number.
inline double relative_error(std::vector<double> const& actual, std::vector<double> const& expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::isfinite(error) ? std::sqrt(error / size) : std::numeric_limits<double>::infinity();
}

}  // namespace superoffload::conformance
