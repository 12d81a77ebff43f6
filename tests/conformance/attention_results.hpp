// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <vector>

namespace superoffload::conformance {

struct attention_results {
  std::vector<double> out, log_sum_exp, d_q, d_k, d_v, d_sinks;
  std::vector<double> sinks_size;  ///< root of the sum of squares of the terms of d_sinks
};

/// Attention and its gradient on inputs drawn in bfloat16 and widened to T: the same for every type and every
/// implementation. The document `spoiled` has no finite value.
// one piece: draws, launches and results of one attention, which share all of its arrays.
template <element T, device_policy D>
attention_results attend(lab<D>& in, attention_case const& c,
                         std::optional<std::size_t> spoiled = std::nullopt) {
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
  auto const draw_rows = [&](std::int64_t columns) {
    auto values = draw(rows * columns);
    if (spoiled) {
      auto const starts = c.starts();
      for (auto i = starts[*spoiled] * columns; i < starts[*spoiled + 1] * columns; ++i) {
        values[static_cast<std::size_t>(i)] =
            rounded<T>(i % 3 == 0 ? std::numeric_limits<double>::quiet_NaN()
                                  : (i % 3 == 1 ? -1.0 : 1.0) * std::numeric_limits<double>::infinity());
      }
    }
    return values;
  };
  array<D, T> const qkv{in, draw_rows(width)}, sinks{in, draw(c.heads)}, d_out{in, draw_rows(out_width)};
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
  if (c.sinks) {
    auto const sink = sinks.values(), gradient = d_out.values();
    for (std::int64_t head = 0; head < c.heads; ++head) {
      double squares = 0;
      for (std::int64_t row = 0; row < rows; ++row) {
        auto const weight = std::exp(double{sink[static_cast<std::size_t>(head)]} -
                                     r.log_sum_exp[static_cast<std::size_t>(head * rows + row)]);
        for (auto at = row * out_width + head * c.head_dim, end = at + c.head_dim; at < end; ++at) {
          auto const i = static_cast<std::size_t>(at);
          auto const term = weight * r.out[i] * double{gradient[i]};
          squares += term * term;
        }
      }
      r.sinks_size.push_back(std::sqrt(squares));
    }
  }
  auto const gradient = d_qkv.values();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    auto const head = static_cast<std::int64_t>(i) % width / c.head_dim;
    (head < c.heads ? r.d_q : head < c.heads + c.kv_heads ? r.d_k : r.d_v).push_back(gradient[i]);
  }
  return r;
}

/// Checks that a document with values that are not finite changes no bit of other documents' results.
template <element T, device_policy D>
void check_isolation(D& device, attention_case const& c, std::size_t spoiled) {
  CAPTURE(c);
  lab<D> first{device}, second{device};
  auto const expected = attend<T>(first, c), actual = attend<T>(second, c, spoiled);
  auto const starts = c.starts();
  auto const same = [&](std::vector<double> const& a, std::vector<double> const& b) {
    auto const columns = static_cast<std::int64_t>(a.size()) / starts.back();
    for (std::size_t i = 0; i < a.size(); ++i) {
      auto const row = static_cast<std::int64_t>(i) / columns;
      if ((row < starts[spoiled] || row >= starts[spoiled + 1]) && a[i] != b[i]) {
        return false;
      }
    }
    return true;
  };
  CHECK(same(actual.out, expected.out));
  CHECK(same(actual.d_q, expected.d_q));
  CHECK(same(actual.d_k, expected.d_k));
  CHECK(same(actual.d_v, expected.d_v));
}

/// The largest error of a sink's gradient, relative to the size of its terms, since the sum itself may
/// cancel.
inline double sinks_error(attention_results const& actual, attention_results const& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < expected.d_sinks.size(); ++i) {
    auto const error = std::abs(actual.d_sinks[i] - expected.d_sinks[i]) / expected.sinks_size[i];
    worst = std::isfinite(error) ? std::max(worst, error) : std::numeric_limits<double>::infinity();
  }
  return worst;
}

/// |actual - expected| / |expected|; infinite if any value is NaN.
inline double relative_error(std::vector<double> const& actual, std::vector<double> const& expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::isfinite(error) ? std::sqrt(error / size) : std::numeric_limits<double>::infinity();
}

}  // namespace superoffload::conformance
