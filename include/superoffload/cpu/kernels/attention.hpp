// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/tile_gemm.hpp>
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

/// The keys outside `seen` get no weight.
template <class W>
void hide(W* weights, attention_rows seen, int64_t keys) {
  for (int64_t j = 0; j < seen.begin; ++j) { weights[j] = W{0}; }
  for (auto j = seen.end; j < keys; ++j) { weights[j] = W{0}; }
}

/// The running softmax of a block of queries, and the values that it has weighed so far.
template <class W>
struct running_softmax {
  int64_t dim;
  W *highest, *total;  ///< of each query
  W* sums;             ///< [queries, dim]

  template <class Sink>
  void begin(int64_t queries, Sink const* sink) {
    for (int64_t i = 0; i < queries; ++i) {
      highest[i] = sink != nullptr ? W(*sink) : -std::numeric_limits<W>::infinity();
      total[i] = sink != nullptr ? W{1} : W{0};
    }
    for (int64_t i = 0; i < queries * dim; ++i) { sums[i] = W{0}; }
  }

  /// The scores x of query i become weights relative to its highest so far; its sums follow a new highest.
  void step(int64_t i, W* x, int64_t count) {
    vector<W> most(highest[i]);
    for_vectors<W>(count, [&](int64_t j, auto extent) {
      most = max(most, filled<W>(load<W>(x + j, extent), highest[i], extent));
    });
    auto const top = max_of_lanes<W>(most);
    auto const correction = std::exp(highest[i] - top);
    highest[i] = top;
    vector<W> const shift(top);
    vector<W> row_sum(W{0});
    for_vectors<W>(count, [&](int64_t j, auto extent) {
      auto const weight = exp(load<W>(x + j, extent) - shift);
      row_sum = row_sum + filled<W>(weight, W{0}, extent);
      store(x + j, weight, extent);
    });
    total[i] = total[i] * correction + sum_of_lanes<W>(row_sum);
    if (correction != W{1}) {
      vector<W> const factor(correction);
      for_vectors<W>(dim, [&, out = sums + i * dim](int64_t j, auto extent) {
        store(out + j, load<W>(out + j, extent) * factor, extent);
      });
    }
  }

  /// Writes what softmax has made of query i; returns the logarithm of its sum of exponentials.
  template <class T>
  W write(int64_t i, T* out) const {
    vector<W> const factor(W{1} / total[i]);
    for_vectors<W>(dim, [&, from = sums + i * dim](int64_t j, auto extent) {
      store(out + j, load<W>(from + j, extent) * factor, extent);
    });
    return highest[i] + std::log(total[i]);
  }
};

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
  running_softmax<W> softmax{dim, highest, total, sums};

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
    softmax.begin(queries.count(), a.sinks != nullptr ? a.sinks + head : nullptr);

    for (auto key_block = first_key_block(s, queries.begin); key_block <= block; ++key_block) {
      auto const keys = block_of(key_block, length);
      auto const k = widened<T>(of(keys, of.key(kv_head)), k_panel);
      auto const v = widened<T>(of(keys, of.value(kv_head)), v_panel);
      multiply<W>(q, transposed(k), scores, keys.count(), false);
      for (int64_t i = 0; i < queries.count(); ++i) {
        auto* const row = scores + i * keys.count();
        auto const seen = visible(s, queries.begin + i, keys);
        hide(row, seen, keys.count());
        if (seen.count() == 0) {
          continue;
        }
        softmax.step(i, row + seen.begin, seen.count());
        if (s.dropout.dropped > 0) {
          drop(s, start + queries.begin + i, head, keys.begin + seen.begin, row + seen.begin, seen.count());
        }
      }
      multiply<W>({scores, queries.count(), keys.count(), keys.count()}, v, sums, dim, true);
    }

    for (int64_t i = 0; i < queries.count(); ++i) {
      auto const row = start + queries.begin + i;
      a.log_sum_exp[head * s.rows + row] = softmax.write(i, a.out + (row * s.heads + head) * dim);
    }
  }
}

/// A document and a head of keys and values: what their gradients sum over.
template <element T>
int64_t items(kernel::attention_backward<T> const& a) {
  return a.shape.documents * a.shape.kv_heads;
}

/// The gradients of one document and one head of keys and values, with all heads of queries that use it.
template <element T>
class attention_gradients {
public:
  using W = wide<T>;

  static std::size_t bytes(kernel::attention_shape const& s) {
    return 6 * arrays::bytes_of(attention_block * s.head_dim, sizeof(W)) +
           2 * arrays::bytes_of(attention_block * attention_block, sizeof(W)) +
           arrays::bytes_of(s.heads / s.kv_heads * s.longest * s.head_dim, sizeof(W));
  }
  attention_gradients(kernel::attention_backward<T> const& a, arrays scratch)
      : a_{a},
        q_panel_{scratch.take<W>(panel_)},
        k_panel_{scratch.take<W>(panel_)},
        v_panel_{scratch.take<W>(panel_)},
        d_out_panel_{scratch.take<W>(panel_)},
        d_k_{scratch.take<W>(panel_)},
        d_v_{scratch.take<W>(panel_)},
        weights_{scratch.take<W>(attention_block * attention_block)},
        d_weights_{scratch.take<W>(attention_block * attention_block)},
        d_q_{scratch.take<W>(group_ * s_.longest * dim_)} {}

  void run(int64_t document, int64_t kv_head) {
    start_ = s_.starts[document];
    length_ = s_.starts[document + 1] - start_;
    kv_head_ = kv_head;
    auto const blocks = pieces_of(length_, attention_block);
    attention_operands<T const> const of{s_, a_.qkv, start_};
    for (int64_t i = 0; i < group_ * length_ * dim_; ++i) { d_q_[i] = W{0}; }
    write_deltas();
    for (int64_t key_block = 0; key_block < blocks; ++key_block) {
      auto const keys = block_of(key_block, length_);
      auto const k = widened<T>(of(keys, of.key(kv_head)), k_panel_);
      auto const v = widened<T>(of(keys, of.value(kv_head)), v_panel_);
      for (int64_t i = 0; i < keys.count() * dim_; ++i) {
        d_k_[i] = W{0};
        d_v_[i] = W{0};
      }
      for (int64_t g = 0; g < group_; ++g) {
        for (auto block = key_block; block < blocks; ++block) {
          auto const queries = block_of(block, length_);
          if (first_key_block(s_, queries.begin) > key_block) {
            break;
          }
          add(g, queries, keys, k, v);
        }
      }
      write(d_k_, keys, of.key(kv_head), W{1});
      write(d_v_, keys, of.value(kv_head), W{1});
    }
    for (int64_t g = 0; g < group_; ++g) {
      write(d_q_ + g * length_ * dim_, {0, length_}, kv_head * group_ + g, static_cast<W>(s_.scale));
    }
  }

private:
  /// delta is the sum of an output times its gradient, which is what softmax subtracts.
  void write_deltas() const {
    for (int64_t g = 0; g < group_; ++g) {
      auto const head = kv_head_ * group_ + g;
      for (auto row = start_; row < start_ + length_; ++row) {
        auto const at = (row * s_.heads + head) * dim_;
        vector<W> products(W{0});
        for_vectors<W>(dim_, [&](int64_t j, auto extent) {
          products = products + load<W>(a_.out + at + j, extent) * load<W>(a_.d_out + at + j, extent);
        });
        a_.delta[head * s_.rows + row] = sum_of_lanes<W>(products);
      }
    }
  }

  /// What a block of queries of head g of the group adds where it meets a block of keys.
  void add(int64_t g, attention_rows queries, attention_rows keys, operand<W> const& k,
           operand<W> const& v) const {
    auto const head = kv_head_ * group_ + g;
    attention_operands<T const> const of{s_, a_.qkv, start_};
    auto const q = widened<T>(of(queries, head), q_panel_, static_cast<W>(s_.scale));
    auto const d_out = widened<T>({a_.d_out + ((start_ + queries.begin) * s_.heads + head) * dim_,
                                   queries.count(), dim_, s_.heads * dim_},
                                  d_out_panel_);
    operand<W> const p{weights_, queries.count(), keys.count(), keys.count()};
    operand<W> const d_p{d_weights_, queries.count(), keys.count(), keys.count()};
    multiply<W>(q, transposed(k), weights_, keys.count(), false);
    multiply<W>(d_out, transposed(v), d_weights_, keys.count(), false);
    for (int64_t i = 0; i < queries.count(); ++i) {
      differentiate(head, queries.begin + i, keys, weights_ + i * keys.count(),
                    d_weights_ + i * keys.count());
    }
    multiply<W>(transposed(p), d_out, d_v_, dim_, true);
    multiply<W>(transposed(d_p), q, d_k_, dim_, true);
    multiply<W>(d_p, k, d_q_ + (g * length_ + queries.begin) * dim_, dim_, true);
  }

  /// The scores x of a query become weights, and the gradients d of its weights those of its scores.
  void differentiate(int64_t head, int64_t query, attention_rows keys, W* x, W* d) const {
    auto const row = start_ + query;
    auto const at = head * s_.rows + row;
    auto const seen = visible(s_, query, keys);
    auto const first_seen = keys.begin + seen.begin;
    hide(x, seen, keys.count());
    hide(d, seen, keys.count());
    x += seen.begin;
    d += seen.begin;
    if (s_.dropout.dropped > 0) {
      drop(s_, row, head, first_seen, d, seen.count());
    }
    vector<W> const shift(a_.log_sum_exp[at]);
    vector<W> const delta(a_.delta[at]);
    for_vectors<W>(seen.count(), [&](int64_t j, auto extent) {
      auto const weight = exp(load<W>(x + j, extent) - shift);
      store(x + j, weight, extent);
      store(d + j, weight * (load<W>(d + j, extent) - delta), extent);
    });
    if (s_.dropout.dropped > 0) {
      drop(s_, row, head, first_seen, x, seen.count());
    }
  }

  void write(W const* from, attention_rows rows, int64_t head, W factor) const {
    attention_operands<T> const gradient_of{s_, a_.d_qkv, start_};
    vector<W> const scale(factor);
    for (int64_t i = 0; i < rows.count(); ++i) {
      auto* const to = gradient_of.at({rows.begin + i, rows.end}, head);
      for_vectors<W>(dim_, [&](int64_t j, auto extent) {
        store(to + j, load<W>(from + i * dim_ + j, extent) * scale, extent);
      });
    }
  }

  kernel::attention_backward<T> const& a_;
  kernel::attention_shape const& s_{a_.shape};
  int64_t dim_{s_.head_dim}, group_{s_.heads / s_.kv_heads}, panel_{attention_block * dim_};
  W *q_panel_, *k_panel_, *v_panel_, *d_out_panel_, *d_k_, *d_v_, *weights_, *d_weights_;
  W* d_q_;  ///< [group, length, dim]
  int64_t start_ = 0, length_ = 0, kv_head_ = 0;
};

template <element T>
void run(kernel::attention_backward<T> const& a, int64_t first, int64_t last) {
  attention_gradients<T> gradients{a, arrays{attention_gradients<T>::bytes(a.shape)}};
  for (auto item = first; item < last; ++item) {
    gradients.run(item / a.shape.kv_heads, item % a.shape.kv_heads);
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
