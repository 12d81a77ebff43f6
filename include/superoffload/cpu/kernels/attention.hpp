// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/product.hpp>
#include <superoffload/kernel/attention.hpp>

#include <cmath>
#include <limits>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Queries and keys that meet in one block of scores.
inline constexpr int64_t attention_block = 128;

/// The queries or keys [begin, end) of one document, counted from its first row.
struct attention_rows {
  int64_t begin, end;
  [[nodiscard]] int64_t count() const { return end - begin; }
};

inline attention_rows block_of(int64_t index, int64_t length) {
  auto const begin = index * attention_block;
  return {begin, begin + attention_block < length ? begin + attention_block : length};
}

/// The keys of block `keys` that `query` sees, as columns of the block.
inline attention_rows visible(kernel::attention_shape const& s, int64_t query, attention_rows keys) {
  auto const oldest = s.window > 0 && query >= s.window ? query - s.window + 1 : 0;
  auto const begin = oldest > keys.begin ? oldest - keys.begin : 0;
  auto const end = query + 1 < keys.end ? query + 1 - keys.begin : keys.count();
  return {begin < end ? begin : end, end};
}

/// The first block of keys that a query from `query` on sees.
inline int64_t first_key_block(kernel::attention_shape const& s, int64_t query) {
  return s.window > 0 && query >= s.window ? (query - s.window + 1) / attention_block : 0;
}

/// Where the operands of one document lie in the rows of q | k | v.
template <class T>
struct attention_operands {
  kernel::attention_shape const& s;
  T* qkv;
  int64_t start;  ///< the document's first row

  [[nodiscard]] T* at(attention_rows rows, int64_t head) const {
    return qkv + (start + rows.begin) * s.qkv_columns() + head * s.head_dim;
  }
  [[nodiscard]] operand<std::remove_const_t<T>> operator()(attention_rows rows, int64_t head) const {
    return {at(rows, head), rows.count(), s.head_dim, s.qkv_columns()};
  }
  [[nodiscard]] int64_t key(int64_t kv_head) const { return s.heads + kv_head; }
  [[nodiscard]] int64_t value(int64_t kv_head) const { return s.heads + s.kv_heads + kv_head; }
};

template <class W>
operand<W> transposed(operand<W> m) {
  return {m.data, m.columns, m.rows, m.stride, !m.transposed};
}

/// The weights of one query, behind softmax, times what dropout makes of them. `row` and `head` are the
/// query's, `key` the first key's in its document.
template <class W>
void drop(kernel::attention_shape const& s, int64_t row, int64_t head, int64_t key, W* weights,
          int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    weights[j] *= s.dropout.template of<W>(s.dropout_row(row, head), key + j);
  }
}

template <element T>
int64_t items(kernel::attention_forward<T> const& a) {
  return a.shape.documents * a.shape.heads * pieces_of(a.shape.longest, attention_block);
}

template <element T>
void run(kernel::attention_forward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const& s = a.shape;
  int64_t const dim = s.head_dim;
  auto const blocks = pieces_of(s.longest, attention_block);
  auto const panel = attention_block * dim;
  arrays scratch{4 * arrays::bytes_of(panel, sizeof(W)) +
                 arrays::bytes_of(attention_block * attention_block, sizeof(W)) +
                 2 * arrays::bytes_of(attention_block, sizeof(W))};
  auto* const q_panel = scratch.take<W>(panel);
  auto* const k_panel = scratch.take<W>(panel);
  auto* const v_panel = scratch.take<W>(panel);
  auto* const sums = scratch.take<W>(panel);
  auto* const scores = scratch.take<W>(attention_block * attention_block);
  auto* const highest = scratch.take<W>(attention_block);
  auto* const total = scratch.take<W>(attention_block);

  for (auto item = first; item < last; ++item) {
    auto const document = item / (s.heads * blocks);
    auto const head = item / blocks % s.heads;
    int64_t const start = s.starts[document];
    int64_t const length = s.starts[document + 1] - start;
    auto const block = blocks - 1 - item % blocks;  // the longest first
    if (block * attention_block >= length) {
      continue;
    }
    attention_operands<T const> const of{s, a.qkv, start};
    auto const kv_head = head / (s.heads / s.kv_heads);
    auto const queries = block_of(block, length);
    auto const q = widened<T>(of(queries, head), q_panel, static_cast<W>(s.scale));
    for (int64_t i = 0; i < queries.count(); ++i) {
      highest[i] = a.sinks != nullptr ? W(a.sinks[head]) : -std::numeric_limits<W>::infinity();
      total[i] = a.sinks != nullptr ? W{1} : W{0};
    }
    for (int64_t i = 0; i < queries.count() * dim; ++i) { sums[i] = W{0}; }

    for (auto key_block = first_key_block(s, queries.begin); key_block <= block; ++key_block) {
      auto const keys = block_of(key_block, length);
      auto const k = widened<T>(of(keys, of.key(kv_head)), k_panel);
      auto const v = widened<T>(of(keys, of.value(kv_head)), v_panel);
      multiply<W>(q, transposed(k), scores, keys.count(), false);
      for (int64_t i = 0; i < queries.count(); ++i) {
        auto* const row = scores + i * keys.count();
        auto const seen = visible(s, queries.begin + i, keys);
        for (int64_t j = 0; j < seen.begin; ++j) { row[j] = W{0}; }
        for (auto j = seen.end; j < keys.count(); ++j) { row[j] = W{0}; }
        if (seen.count() == 0) {
          continue;
        }
        auto* const x = row + seen.begin;
        vector<W> most(highest[i]);
        for_vectors<W>(seen.count(), [&](int64_t j, auto extent) {
          most = max(most, filled<W>(load<W>(x + j, extent), highest[i], extent));
        });
        auto const top = max_of_lanes<W>(most);
        auto const correction = std::exp(highest[i] - top);
        highest[i] = top;
        vector<W> const shift(top);
        vector<W> row_sum(W{0});
        for_vectors<W>(seen.count(), [&](int64_t j, auto extent) {
          auto const weight = exp(load<W>(x + j, extent) - shift);
          row_sum = row_sum + filled<W>(weight, W{0}, extent);
          store(x + j, weight, extent);
        });
        total[i] = total[i] * correction + sum_of_lanes<W>(row_sum);
        if (s.dropout.dropped > 0) {
          drop(s, start + queries.begin + i, head, keys.begin + seen.begin, x, seen.count());
        }
        if (correction != W{1}) {
          vector<W> const factor(correction);
          for_vectors<W>(dim, [&, out = sums + i * dim](int64_t j, auto extent) {
            store(out + j, load<W>(out + j, extent) * factor, extent);
          });
        }
      }
      multiply<W>({scores, queries.count(), keys.count(), keys.count()}, v, sums, dim, true);
    }

    for (int64_t i = 0; i < queries.count(); ++i) {
      auto const row = start + queries.begin + i;
      auto* const out = a.out + (row * s.heads + head) * dim;
      vector<W> const factor(W{1} / total[i]);
      for_vectors<W>(dim, [&, from = sums + i * dim](int64_t j, auto extent) {
        store(out + j, load<W>(from + j, extent) * factor, extent);
      });
      a.log_sum_exp[head * s.rows + row] = highest[i] + std::log(total[i]);
    }
  }
}

/// A document and a head of keys and values: what their gradients sum over.
template <element T>
int64_t items(kernel::attention_backward<T> const& a) {
  return a.shape.documents * a.shape.kv_heads;
}

template <element T>
void run(kernel::attention_backward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const& s = a.shape;
  int64_t const dim = s.head_dim;
  int64_t const group = s.heads / s.kv_heads;
  auto const panel = attention_block * dim;
  arrays scratch{6 * arrays::bytes_of(panel, sizeof(W)) +
                 2 * arrays::bytes_of(attention_block * attention_block, sizeof(W)) +
                 arrays::bytes_of(group * s.longest * dim, sizeof(W))};
  auto* const q_panel = scratch.take<W>(panel);
  auto* const k_panel = scratch.take<W>(panel);
  auto* const v_panel = scratch.take<W>(panel);
  auto* const d_out_panel = scratch.take<W>(panel);
  auto* const d_k = scratch.take<W>(panel);
  auto* const d_v = scratch.take<W>(panel);
  auto* const weights = scratch.take<W>(attention_block * attention_block);
  auto* const d_weights = scratch.take<W>(attention_block * attention_block);
  auto* const d_q = scratch.take<W>(group * s.longest * dim);  // [group, length, dim]

  for (auto item = first; item < last; ++item) {
    auto const document = item / s.kv_heads;
    auto const kv_head = item % s.kv_heads;
    int64_t const start = s.starts[document];
    int64_t const length = s.starts[document + 1] - start;
    auto const blocks = pieces_of(length, attention_block);
    attention_operands<T const> const of{s, a.qkv, start};
    attention_operands<T> const gradient_of{s, a.d_qkv, start};
    auto const write = [&](W const* from, attention_rows rows, int64_t head, W factor) {
      vector<W> const scale(factor);
      for (int64_t i = 0; i < rows.count(); ++i) {
        auto* const to = gradient_of.at({rows.begin + i, rows.end}, head);
        for_vectors<W>(dim, [&](int64_t j, auto extent) {
          store(to + j, load<W>(from + i * dim + j, extent) * scale, extent);
        });
      }
    };

    for (int64_t i = 0; i < group * length * dim; ++i) { d_q[i] = W{0}; }
    for (int64_t g = 0; g < group; ++g) {
      auto const head = kv_head * group + g;
      for (auto row = start; row < start + length; ++row) {
        auto const at = (row * s.heads + head) * dim;
        vector<W> products(W{0});
        for_vectors<W>(dim, [&](int64_t j, auto extent) {
          products = products + load<W>(a.out + at + j, extent) * load<W>(a.d_out + at + j, extent);
        });
        a.delta[head * s.rows + row] = sum_of_lanes<W>(products);
      }
    }

    for (int64_t key_block = 0; key_block < blocks; ++key_block) {
      auto const keys = block_of(key_block, length);
      auto const k = widened<T>(of(keys, of.key(kv_head)), k_panel);
      auto const v = widened<T>(of(keys, of.value(kv_head)), v_panel);
      for (int64_t i = 0; i < keys.count() * dim; ++i) {
        d_k[i] = W{0};
        d_v[i] = W{0};
      }
      for (int64_t g = 0; g < group; ++g) {
        auto const head = kv_head * group + g;
        for (auto block = key_block; block < blocks; ++block) {
          auto const queries = block_of(block, length);
          if (first_key_block(s, queries.begin) > key_block) {
            break;
          }
          auto const q = widened<T>(of(queries, head), q_panel, static_cast<W>(s.scale));
          auto const d_out = widened<T>({a.d_out + ((start + queries.begin) * s.heads + head) * dim,
                                         queries.count(), dim, s.heads * dim},
                                        d_out_panel);
          operand<W> const p{weights, queries.count(), keys.count(), keys.count()};
          operand<W> const d_p{d_weights, queries.count(), keys.count(), keys.count()};
          multiply<W>(q, transposed(k), weights, keys.count(), false);
          multiply<W>(d_out, transposed(v), d_weights, keys.count(), false);
          for (int64_t i = 0; i < queries.count(); ++i) {
            auto const at = head * s.rows + start + queries.begin + i;
            auto* const row = weights + i * keys.count();
            auto* const d_row = d_weights + i * keys.count();
            auto const seen = visible(s, queries.begin + i, keys);
            for (int64_t j = 0; j < seen.begin; ++j) { row[j] = d_row[j] = W{0}; }
            for (auto j = seen.end; j < keys.count(); ++j) { row[j] = d_row[j] = W{0}; }
            auto const row_of_query = start + queries.begin + i;
            auto const first_seen = keys.begin + seen.begin;
            if (s.dropout.dropped > 0) {
              drop(s, row_of_query, head, first_seen, d_row + seen.begin, seen.count());
            }
            vector<W> const shift(a.log_sum_exp[at]);
            vector<W> const delta(a.delta[at]);
            for_vectors<W>(seen.count(),
                           [&, x = row + seen.begin, d = d_row + seen.begin](int64_t j, auto extent) {
                             auto const weight = exp(load<W>(x + j, extent) - shift);
                             store(x + j, weight, extent);
                             store(d + j, weight * (load<W>(d + j, extent) - delta), extent);
                           });
            if (s.dropout.dropped > 0) {
              drop(s, row_of_query, head, first_seen, row + seen.begin, seen.count());
            }
          }
          multiply<W>(transposed(p), d_out, d_v, dim, true);
          multiply<W>(transposed(d_p), q, d_k, dim, true);
          multiply<W>(d_p, k, d_q + (g * length + queries.begin) * dim, dim, true);
        }
      }
      write(d_k, keys, of.key(kv_head), W{1});
      write(d_v, keys, of.value(kv_head), W{1});
    }
    for (int64_t g = 0; g < group; ++g) {
      write(d_q + g * length * dim, {0, length}, kv_head * group + g, static_cast<W>(s.scale));
    }
  }
}

template <element T>
int64_t items(kernel::attention_sinks_backward<T> const& a) {
  return kernel::attention_sinks_blocks(a.shape.rows);
}

template <element T>
void run(kernel::attention_sinks_backward<T> const& a, int64_t first, int64_t last) {
  using W = wide<T>;
  auto const& s = a.shape;
  auto const together = a.rows_together == 0 ? s.rows : a.rows_together;
  for (auto block = first; block < last; ++block) {
    auto const [begin, end] = range_of(block, block + 1, kernel::attention_sinks_block_rows, s.rows);
    auto* const partial = a.partial + block * s.heads;
    for (std::int32_t head = 0; head < s.heads; ++head) { partial[head] = W{0}; }
    for (auto row = begin; row < end; ++row) {
      for (std::int32_t head = 0; head < s.heads; ++head) {
        auto const at = (row * s.heads + head) * s.head_dim;
        vector<W> products(W{0});
        for_vectors<W>(s.head_dim, [&](int64_t j, auto extent) {
          products = products + load<W>(a.out + at + j, extent) * load<W>(a.d_out + at + j, extent);
        });
        auto const log_sum_exp = a.log_sum_exp[(row / together * s.heads + head) * together + row % together];
        partial[head] -= std::exp(W(a.sinks[head]) - log_sum_exp) * sum_of_lanes<W>(products);
      }
    }
  }
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
