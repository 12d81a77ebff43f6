// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/attention.hpp>
#include <superoffload/kernel/reduction.hpp>

#include "conformance/kernels/lab.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <ostream>
#include <vector>

namespace superoffload::conformance {

struct attention_case {
  std::vector<std::int32_t> lengths;
  std::int32_t heads, kv_heads, head_dim, window;
  bool sinks;
  double dropout = 0;

  /// The first row of each document, and the number of rows.
  [[nodiscard]] std::vector<std::int32_t> starts() const {
    std::vector<std::int32_t> first{0};
    for (auto const length : lengths) { first.push_back(first.back() + length); }
    return first;
  }
  /// `device_starts`: the same in device memory.
  [[nodiscard]] kernel::attention_shape shape(std::int32_t const* device_starts) const {
    return {.starts = device_starts,
            .documents = std::ssize(lengths),
            .rows = starts().back(),
            .heads = heads,
            .kv_heads = kv_heads,
            .head_dim = head_dim,
            .longest = *std::max_element(lengths.begin(), lengths.end()),
            .window = window,
            .scale = 1 / std::sqrt(static_cast<double>(head_dim)),
            .dropout = kernel::dropout_mask::with(dropout, 4711)};
  }
  friend std::ostream& operator<<(std::ostream& to, attention_case const& c) {
    for (auto const length : c.lengths) { to << length << ' '; }
    return to << "rows, " << c.heads << " and " << c.kv_heads << " heads of " << c.head_dim << ", window "
              << c.window << (c.sinks ? ", sinks" : "") << ", dropout " << c.dropout;
  }
};

/// Launches with the scratch memory that the device asks for.
template <device_policy D, class Arguments>
void launch_with_scratch(lab<D>& in, Arguments arguments) {
  buffer<D> const memory{in.device, scratch_bytes(in.device, arguments)};
  arguments.scratch = {memory.data(), memory.bytes()};
  launch(in.stream, arguments);
  in.stream.synchronize();
}

/// The gradient of the sinks, from results of forward.
template <element T, device_policy D>
std::vector<T> sinks_gradient(lab<D>& in, kernel::attention_sinks_backward<T> arguments) {
  auto const blocks = kernel::attention_sinks_blocks(arguments.shape.rows);
  auto const heads = arguments.shape.heads;
  array<D, wide<T>> const partial{in, blocks * heads};
  array<D, T> const d_sinks{in, heads};
  arguments.partial = partial.data();
  launch(in.stream, arguments);
  launch(in.stream, kernel::column_sum<wide<T>, T>{partial.data(), d_sinks.data(), blocks, heads, false});
  static_cast<void>(partial.values());  // its guards
  return d_sinks.values();
}

template <element T, device_policy D>
void check_attention(lab<D>& in, attention_case const& c) {
  CAPTURE(c);
  using W = wide<T>;
  auto const starts = c.starts();
  std::int64_t const dim = c.head_dim;
  array<D, std::int32_t> const device_starts{in, starts};
  auto const shape = c.shape(device_starts.data());
  auto const rows = shape.rows;
  auto const width = shape.qkv_columns();
  auto const qkv = in.template normal<T>(rows * width);
  auto const sinks = in.template normal<T>(c.heads);
  array<D, T> const device_qkv{in, qkv};
  array<D, T> const device_sinks{in, sinks};
  array<D, T> const device_out{in, rows * c.heads * dim};
  array<D, W> const device_lse{in, c.heads * rows};
  auto const* const used_sinks = c.sinks ? device_sinks.data() : nullptr;
  launch_with_scratch(in, kernel::attention_forward<T>{.shape = shape,
                                                       .qkv = device_qkv.data(),
                                                       .out = device_out.data(),
                                                       .log_sum_exp = device_lse.data(),
                                                       .sinks = used_sinks});
  auto const out = device_out.values();
  auto const lse = device_lse.values();
  auto const d_out = in.template normal<T>(rows * c.heads * dim);
  array<D, T> const device_d_out{in, d_out};
  array<D, W> const device_delta{in, c.heads * rows};
  array<D, T> const device_d_qkv{in, rows * width};
  launch_with_scratch(in, kernel::attention_backward<T>{.shape = shape,
                                                        .qkv = device_qkv.data(),
                                                        .out = device_out.data(),
                                                        .d_out = device_d_out.data(),
                                                        .log_sum_exp = device_lse.data(),
                                                        .delta = device_delta.data(),
                                                        .d_qkv = device_d_qkv.data(),
                                                        .sinks = used_sinks});

  std::vector<T> d_sinks(static_cast<std::size_t>(c.heads));
  if (c.sinks) {
    d_sinks = sinks_gradient<T>(in, {.shape = shape,
                                     .out = device_out.data(),
                                     .d_out = device_d_out.data(),
                                     .log_sum_exp = device_lse.data(),
                                     .sinks = used_sinks,
                                     .partial = nullptr});
  }

  std::vector<double> expected_sinks(d_sinks.size());
  std::vector<double> size_sinks(d_sinks.size());
  std::vector<double> expected_out(out.size());
  std::vector<double> size_out(out.size());
  std::vector<double> expected_lse(lse.size());
  std::vector<double> size_lse(lse.size(), 1.0);
  std::vector<double> expected_d(static_cast<std::size_t>(rows * width));
  std::vector<double> size_d(expected_d.size());
  auto const include = [](std::vector<double>& sums, std::vector<double>& sizes, std::int64_t at,
                          double term) {
    sums[static_cast<std::size_t>(at)] += term;
    sizes[static_cast<std::size_t>(at)] += std::abs(term);
  };
  for (std::size_t document = 0; document < c.lengths.size(); ++document) {
    for (std::int64_t row = starts[document]; row < starts[document + 1]; ++row) {
      for (std::int64_t head = 0; head < c.heads; ++head) {
        auto const kv_head = head / (c.heads / c.kv_heads);
        auto const query_at = row * width + head * dim;
        auto const out_at = (row * c.heads + head) * dim;
        auto const oldest = c.window > 0 ? std::max<std::int64_t>(starts[document], row - c.window + 1)
                                         : std::int64_t{starts[document]};
        auto const key_at = [&](std::int64_t j) { return j * width + (c.heads + kv_head) * dim; };
        auto const value_at = [&](std::int64_t j) { return key_at(j) + c.kv_heads * dim; };
        std::vector<double> scores;
        double total = c.sinks ? std::exp(double{sinks[head]}) : 0;
        for (auto j = oldest; j <= row; ++j) {
          double score = 0;
          for (std::int64_t d = 0; d < dim; ++d) {
            score += double{qkv[query_at + d]} * double{qkv[key_at(j) + d]};
          }
          scores.push_back(score * shape.scale);
          total += std::exp(scores.back());
        }
        expected_lse[static_cast<std::size_t>(head * rows + row)] = std::log(total);
        double delta = 0;
        double delta_size = 0;
        for (std::int64_t d = 0; d < dim; ++d) {
          double const product = double{out[out_at + d]} * double{d_out[out_at + d]};
          delta += product;
          delta_size += std::abs(product);
        }
        if (c.sinks) {
          auto const weight =
              std::exp(double{sinks[head]} - double{lse[static_cast<std::size_t>(head * rows + row)]});
          include(expected_sinks, size_sinks, head, -weight * delta);
          size_sinks[static_cast<std::size_t>(head)] += weight * delta_size;
        }
        for (auto j = oldest; j <= row; ++j) {
          auto const score = scores[static_cast<std::size_t>(j - oldest)];
          auto const weight = std::exp(score) / total;
          auto const kept = std::exp(score - double{lse[static_cast<std::size_t>(head * rows + row)]});
          auto const factor =
              shape.dropout.template of<double>(shape.dropout_row(row, head), j - starts[document]);
          double d_weight = 0;
          double d_weight_size = 0;
          for (std::int64_t d = 0; d < dim; ++d) {
            double const v = qkv[value_at(j) + d];
            double const g = d_out[out_at + d];
            include(expected_out, size_out, out_at + d, weight * factor * v);
            include(expected_d, size_d, value_at(j) + d, kept * factor * g);
            d_weight += g * v * factor;
            d_weight_size += std::abs(g * v) * factor;
          }
          auto const d_score = kept * (d_weight - delta) * shape.scale;
          auto const d_score_size = kept * (d_weight_size + delta_size) * shape.scale;
          for (std::int64_t d = 0; d < dim; ++d) {
            include(expected_d, size_d, query_at + d, d_score * double{qkv[key_at(j) + d]});
            include(expected_d, size_d, key_at(j) + d, d_score * double{qkv[query_at + d]});
            size_d[static_cast<std::size_t>(query_at + d)] += d_score_size;
            size_d[static_cast<std::size_t>(key_at(j) + d)] += d_score_size;
          }
        }
      }
    }
  }
  check_near(out, expected_out, size_out, 40, "attention: out");
  check_near(lse, expected_lse, size_lse, 40, "attention: log_sum_exp");
  check_near(device_d_qkv.values(), expected_d, size_d, 60, "attention: d_qkv");
  check_near(d_sinks, expected_sinks, size_sinks, 60, "attention: d_sinks");
}

template <device_policy D>
void check_attention(lab<D>& in) {
  attention_case const cases[] = {{{1}, 1, 1, 8, 0, false},
                                  {{5, 0, 131, 33}, 4, 2, 16, 0, false},
                                  {{300, 2}, 2, 1, 24, 0, true},
                                  {{129, 40}, 3, 3, 10, 7, false},
                                  {{290}, 2, 2, 8, 140, true},
                                  {{0}, 2, 1, 8, 0, false},
                                  {{5, 150}, 4, 2, 16, 0, false, 0.1},
                                  {{140}, 2, 1, 8, 60, true, 0.5}};
  for (auto const& c : cases) {
    check_attention<float>(in, c);
    check_attention<bfloat16>(in, c);
    check_attention<double>(in, c);
  }
}

}  // namespace superoffload::conformance
