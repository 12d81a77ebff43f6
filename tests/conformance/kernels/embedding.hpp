// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/embedding.hpp>

#include "conformance/kernels/lab.hpp"

#include <numeric>
#include <utility>

namespace superoffload::conformance {

template <element T, element G, device_policy D>
void check_embedding(lab<D>& in, std::int64_t rows, std::int64_t columns, std::int32_t ignored = -1) {
  std::int32_t const vocabulary = 11;
  auto const table = in.template normal<T>(vocabulary * columns);
  auto const ids = in.integers(rows, 0, vocabulary - 1);
  array<D, T> const device_table{in, table};
  array<D, std::int32_t> const device_ids{in, ids};
  array<D, T> const device_out{in, rows * columns};
  launch(in.stream, kernel::embedding_forward<T>{.table = device_table.data(),
                                                 .ids = device_ids.data(),
                                                 .out = device_out.data(),
                                                 .rows = rows,
                                                 .columns = columns});
  auto const out = device_out.values();
  bool same = true;
  for (std::size_t i = 0; i < out.size(); ++i) {
    auto const row = static_cast<std::int64_t>(i) / columns;
    same = same && out[i] == table[ids[row] * columns + static_cast<std::int64_t>(i) % columns];
  }
  CHECK(same);

  std::vector<std::int32_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](auto a, auto b) { return std::pair{ids[a], a} < std::pair{ids[b], b}; });
  std::vector<std::int32_t> starts, segment_ids;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || ids[order[i]] != ids[order[i - 1]]) {
      starts.push_back(static_cast<std::int32_t>(i));
      segment_ids.push_back(ids[order[i]]);
    }
  }
  starts.push_back(static_cast<std::int32_t>(order.size()));
  auto const d_out = in.template normal<T>(rows * columns);
  auto const before = in.template normal<G>(vocabulary * columns);
  array<D, T> const device_d_out{in, d_out};
  array<D, std::int32_t> const device_order{in, order};
  array<D, std::int32_t> const device_starts{in, starts};
  array<D, std::int32_t> const device_segment_ids{in, segment_ids};
  array<D, G> const device_gradient{in, before};
  launch(in.stream, kernel::embedding_backward<T, G>{.d_out = device_d_out.data(),
                                                     .order = device_order.data(),
                                                     .starts = device_starts.data(),
                                                     .segment_ids = device_segment_ids.data(),
                                                     .gradient = device_gradient.data(),
                                                     .segments = std::ssize(segment_ids),
                                                     .columns = columns,
                                                     .ignored = ignored});
  std::vector<double> expected(before.begin(), before.end());
  auto size = absolute(expected);
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    if (ids[i / columns] == ignored) {
      continue;
    }
    auto const at = static_cast<std::size_t>(ids[i / columns] * columns + i % columns);
    expected[at] += double{d_out[i]};
    size[at] += std::abs(double{d_out[i]});
  }
  check_near(device_gradient.values(), expected, size, 20, "embedding_backward");
}

template <device_policy D>
void check_embedding(lab<D>& in) {
  for (std::int64_t const rows : {0, 1, 100}) {
    for (std::int64_t const columns : {1, 33, 1030}) {
      check_embedding<float, float>(in, rows, columns);
      check_embedding<bfloat16, bfloat16>(in, rows, columns);
      check_embedding<bfloat16, float>(in, rows, columns);
      check_embedding<bfloat16, float>(in, rows, columns, 3);
      check_embedding<double, double>(in, rows, columns);
    }
  }
}

}  // namespace superoffload::conformance
