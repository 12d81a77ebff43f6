// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/attention.hpp>

#include <limits>

/// Attention for every type and any head dimension up to 256, after FlashAttention (Dao, arXiv 2307.08691):
/// scores exist a tile at a time. A warp owns a few rows (queries, or keys in the kernel of their gradients);
/// what they meet streams through shared memory 32 rows at a time, one for each lane.
namespace superoffload::cuda::kernels {

inline constexpr int attention_warps = 8;
inline constexpr int attention_threads = attention_warps * 32;
inline constexpr int attention_stream = 32;
inline constexpr int attention_dim = 256;
inline constexpr int attention_pieces = attention_dim / 32;  ///< dimensions that a lane owns, at most

/// Rows that a warp owns.
template <class T>
inline constexpr int attention_own = sizeof(wide<T>) == 8 ? 2 : 4;
template <class T>
inline constexpr int attention_rows = attention_warps * attention_own<T>;

/// Where a block stands.
struct attention_place {
  int64_t start, length;  ///< the document's first row, and its rows
  int64_t first;          ///< of the rows that the block owns, counted from the document's first
  int head;
};

/// Blocks are (document, head, tile), the tile with the most to do first: the last queries, the first keys.
enum class most_work { last, first };

__device__ inline attention_place place_of(kernel::attention_shape const& s, int heads, int tiles, int rows,
                                           most_work where) {
  int64_t const index = blockIdx.x;
  auto const document = index / tiles / heads;
  auto const tile = where == most_work::last ? tiles - 1 - index % tiles : index % tiles;
  int64_t const start = s.starts[document];
  return {start, s.starts[document + 1] - start, tile * rows, static_cast<int>(index / tiles % heads)};
}

__device__ inline bool sees(kernel::attention_shape const& s, int64_t query, int64_t key) {
  return key <= query && (s.window == 0 || key > query - s.window);
}

/// A document's first row of queries, keys and values, as one head meets them.
template <class T>
struct attention_operands {
  T const *queries, *keys, *values;

  __device__ attention_operands(kernel::attention_shape const& s, int dim, T const* qkv,
                                attention_place const& at) {
    auto const* const first = qkv + at.start * s.qkv_columns();
    queries = first + static_cast<int64_t>(at.head) * dim;
    keys = first + static_cast<int64_t>(s.heads + at.head / (s.heads / s.kv_heads)) * dim;
    values = keys + static_cast<int64_t>(s.kv_heads) * dim;
  }
};

/// Copies rows [first, first + count) of a matrix, `factor` times each element, to shared memory; zeros
/// behind `end`.
template <class T>
__device__ void stage(T const* from, int64_t stride, int64_t first, int64_t end, int count, int dim,
                      wide<T>* to, int to_stride, wide<T> factor = 1) {
  constexpr int n = lanes<T>;
  int const pieces = (dim + n - 1) / n;
  for (int item = static_cast<int>(threadIdx.x); item < count * pieces; item += attention_threads) {
    int const row = item / pieces;
    int const i = item % pieces * n;
    wide<T> x[n];
    load(from + (first + row) * stride + i, first + row < end ? dim - i : 0, x);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (i + j < dim) {
        to[row * to_stride + i + j] = x[j] * factor;
      }
    }
  }
}

/// What dropout multiplies the weight of a row's query and a key of its document with.
template <class W>
__device__ __forceinline__ W kept(kernel::attention_shape const& s, int64_t head, int64_t row, int64_t key) {
  return s.dropout.dropped == 0 ? W{1} : s.dropout.template of<W>(s.dropout_row(row, head), key);
}

template <class W>
__device__ __forceinline__ W exponential(W x) {
  if constexpr (sizeof(W) == 4) {
    return expf(x);
  } else {
    return exp(x);
  }
}

/// The running softmax of a warp's rows.
template <class W, int Own>
struct running_softmax {
  W highest[Own], total[Own];

  template <class T>
  __device__ explicit running_softmax(T const* sink) {
#pragma unroll
    for (int r = 0; r < Own; ++r) {
      highest[r] = sink != nullptr ? widen(*sink) : -std::numeric_limits<W>::infinity();
      total[r] = sink != nullptr ? W{1} : W{0};
    }
  }

  /// The weight of this lane's score, relative to the highest of row r so far; `sums` follow a new highest.
  __device__ __forceinline__ W step(int r, W score, W (&sums)[attention_pieces]) {
    auto const top = max_of{}(over_warp(score, max_of{}), highest[r]);
    auto const shift = top == -std::numeric_limits<W>::infinity() ? W{0} : top;
    auto const correction = exponential(highest[r] - shift);
    auto const weight = exponential(score - shift);
    highest[r] = top;
    total[r] = total[r] * correction + over_warp(weight, sum_of{});
#pragma unroll
    for (int i = 0; i < attention_pieces; ++i) { sums[i] *= correction; }
    return weight;
  }
};

/// step(i, d) for every dimension d that this lane owns, its i-th.
template <class Step>
__device__ __forceinline__ void for_own_dimensions(int dim, Step step) {
  int const lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < attention_pieces; ++i) {
    if (i * 32 + lane < dim) {
      step(i, i * 32 + lane);
    }
  }
}

/// score[r] += a[r] b: `a` has this warp's rows, b this lane's row of the stream.
template <class W, int Own>
__device__ __forceinline__ void meet(W (&score)[Own], W const* a, int mine, W const* b, int dim) {
  int const lane = static_cast<int>(threadIdx.x) % 32;
  for (int d = 0; d < dim; ++d) {
    auto const b_d = b[lane * (dim + 1) + d];
#pragma unroll
    for (int r = 0; r < Own; ++r) { score[r] += a[(mine + r) * dim + d] * b_d; }
  }
}

/// sums[r] += p[r] b: `p` has this warp's rows, b a piece of the stream whose rows are `stride` apart.
template <class W, int Own>
__device__ __forceinline__ void weigh(W (&sums)[Own][attention_pieces], W const* p, int mine, W const* b,
                                      int stride, int dim) {
  for (int j = 0; j < attention_stream; ++j) {
    for_own_dimensions(dim, [&](int i, int d) {
      auto const value = b[j * stride + d];
#pragma unroll
      for (int r = 0; r < Own; ++r) { sums[r][i] += p[(mine + r) * attention_stream + j] * value; }
    });
  }
}

template <class T>
constexpr std::size_t attention_forward_bytes(int dim) {
  return sizeof(wide<T>) * (attention_rows<T> * (dim + attention_stream) + attention_stream * (2 * dim + 1));
}

template <class T>
__global__ void __launch_bounds__(attention_threads)
    attention_forward_kernel(kernel::attention_forward<T> a, int tiles) {
  using W = wide<T>;
  constexpr int own = attention_own<T>;
  constexpr int rows = attention_rows<T>;
  auto const& s = a.shape;
  auto const at = place_of(s, s.heads, tiles, rows, most_work::last);
  if (at.first >= at.length) {
    return;
  }
  int const dim = s.head_dim;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const mine = static_cast<int>(threadIdx.x) / 32 * own;
  auto const stride = s.qkv_columns();
  attention_operands<T> const of{s, dim, a.qkv, at};

  extern __shared__ __align__(16) unsigned char shared_memory[];
  auto* const q = reinterpret_cast<W*>(shared_memory);  // [rows, dim]
  auto* const k = q + rows * dim;                       // [stream, dim + 1]: no two lanes meet in a bank
  auto* const v = k + attention_stream * (dim + 1);     // [stream, dim]
  auto* const p = v + attention_stream * dim;           // [rows, stream]
  stage(of.queries, stride, at.first, at.length, rows, dim, q, dim, static_cast<W>(s.scale));

  W sums[own][attention_pieces]{};
  running_softmax<W, own> softmax{a.sinks != nullptr ? a.sinks + at.head : nullptr};
  auto const oldest = s.window > 0 && at.first >= s.window ? at.first - s.window + 1 : 0;
  auto const end = at.first + rows < at.length ? at.first + rows : at.length;
  for (auto from = oldest / attention_stream * attention_stream; from < end; from += attention_stream) {
    __syncthreads();
    stage(of.keys, stride, from, at.length, attention_stream, dim, k, dim + 1);
    stage(of.values, stride, from, at.length, attention_stream, dim, v, dim);
    __syncthreads();
    W score[own]{};
    meet(score, q, mine, k, dim);
#pragma unroll
    for (int r = 0; r < own; ++r) {
      if (!sees(s, at.first + mine + r, from + lane)) {
        score[r] = -std::numeric_limits<W>::infinity();
      }
      auto const weight = softmax.step(r, score[r], sums[r]);
      p[(mine + r) * attention_stream + lane] =
          weight * kept<W>(s, at.head, at.start + at.first + mine + r, from + lane);
    }
    __syncwarp();
    weigh(sums, p, mine, v, dim, dim);
    __syncwarp();
  }
#pragma unroll
  for (int r = 0; r < own; ++r) {
    auto const query = at.first + mine + r;
    if (query >= at.length) {
      continue;
    }
    auto const row = at.start + query;
    auto* const out = a.out + (row * s.heads + at.head) * dim;
    for_own_dimensions(dim, [&](int i, int d) { out[d] = narrow<T>(sums[r][i] / softmax.total[r]); });
    if (lane == 0) {
      a.log_sum_exp[at.head * s.rows + row] = softmax.highest[r] + log(softmax.total[r]);
    }
  }
}

/// A warp is the row and head blockIdx.x * attention_warps + its number.
template <class T>
__global__ void attention_delta_kernel(kernel::attention_backward<T> a) {
  auto const& s = a.shape;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  auto const index = static_cast<int64_t>(blockIdx.x) * attention_warps + threadIdx.x / 32;
  if (index >= s.rows * s.heads) {
    return;
  }
  wide<T> products = 0;
  for (int d = lane; d < s.head_dim; d += 32) {
    products += widen(a.out[index * s.head_dim + d]) * widen(a.d_out[index * s.head_dim + d]);
  }
  products = over_warp(products, sum_of{});
  if (lane == 0) {
    a.delta[index % s.heads * s.rows + index / s.heads] = products;
  }
}

/// score[r] += a[r] b and d_weight[r] += d_a[r] d_b: `a` and d_a are this warp's rows, b and d_b this lane's
/// row of the stream.
template <class W, int Own>
__device__ __forceinline__ void meet(W (&score)[Own], W (&d_weight)[Own], W const* a, W const* d_a, int mine,
                                     W const* b, W const* d_b, int dim) {
  int const lane = static_cast<int>(threadIdx.x) % 32;
  for (int d = 0; d < dim; ++d) {
    auto const b_d = b[lane * (dim + 1) + d];
    auto const d_b_d = d_b[lane * (dim + 1) + d];
#pragma unroll
    for (int r = 0; r < Own; ++r) {
      score[r] += a[(mine + r) * dim + d] * b_d;
      d_weight[r] += d_a[(mine + r) * dim + d] * d_b_d;
    }
  }
}

/// `weigh` of two sums at once, both from rows that are dim + 1 apart.
template <class W, int Own>
__device__ __forceinline__ void weigh_both(W (&first)[Own][attention_pieces],
                                           W (&second)[Own][attention_pieces], W const* p, W const* q,
                                           int mine, W const* b, W const* c, int dim) {
  for (int j = 0; j < attention_stream; ++j) {
    for_own_dimensions(dim, [&](int i, int d) {
      auto const c_d = c[j * (dim + 1) + d];
      auto const b_d = b[j * (dim + 1) + d];
#pragma unroll
      for (int r = 0; r < Own; ++r) {
        first[r][i] += p[(mine + r) * attention_stream + j] * b_d;
        second[r][i] += q[(mine + r) * attention_stream + j] * c_d;
      }
    });
  }
}

template <class T>
constexpr std::size_t attention_d_query_bytes(int dim) {
  return sizeof(wide<T>) *
         (attention_rows<T> * (2 * dim + attention_stream) + attention_stream * 2 * (dim + 1));
}

/// What the forward pass and the sums of delta say of a warp's queries.
template <class W, int Own>
struct query_statistics {
  W log_sum[Own]{}, delta[Own]{};

  template <class T>
  __device__ query_statistics(kernel::attention_backward<T> const& a, attention_place const& at, int mine) {
#pragma unroll
    for (int r = 0; r < Own; ++r) {
      if (at.first + mine + r < at.length) {
        auto const index = at.head * a.shape.rows + at.start + at.first + mine + r;
        log_sum[r] = a.log_sum_exp[index];
        delta[r] = a.delta[index];
      }
    }
  }
};

/// Owns queries, streams keys and values.
template <class T>
__global__ void __launch_bounds__(attention_threads)
    attention_d_query_kernel(kernel::attention_backward<T> a, int tiles) {
  using W = wide<T>;
  constexpr int own = attention_own<T>;
  constexpr int rows = attention_rows<T>;
  auto const& s = a.shape;
  auto const at = place_of(s, s.heads, tiles, rows, most_work::last);
  if (at.first >= at.length) {
    return;
  }
  int const dim = s.head_dim;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const mine = static_cast<int>(threadIdx.x) / 32 * own;
  auto const stride = s.qkv_columns();
  auto const out_stride = static_cast<int64_t>(s.heads) * dim;
  attention_operands<T> const of{s, dim, a.qkv, at};

  extern __shared__ __align__(16) unsigned char shared_memory[];
  auto* const q = reinterpret_cast<W*>(shared_memory);     // [rows, dim]
  auto* const d_out = q + rows * dim;                      // [rows, dim]
  auto* const k = d_out + rows * dim;                      // [stream, dim + 1]
  auto* const v = k + attention_stream * (dim + 1);        // [stream, dim + 1]
  auto* const d_score = v + attention_stream * (dim + 1);  // [rows, stream]
  stage(of.queries, stride, at.first, at.length, rows, dim, q, dim, static_cast<W>(s.scale));
  stage(a.d_out + at.start * out_stride + static_cast<int64_t>(at.head) * dim, out_stride, at.first,
        at.length, rows, dim, d_out, dim);

  W sums[own][attention_pieces]{};
  query_statistics<W, own> const of_queries{a, at, mine};
  auto const oldest = s.window > 0 && at.first >= s.window ? at.first - s.window + 1 : 0;
  auto const end = at.first + rows < at.length ? at.first + rows : at.length;
  for (auto from = oldest / attention_stream * attention_stream; from < end; from += attention_stream) {
    __syncthreads();
    stage(of.keys, stride, from, at.length, attention_stream, dim, k, dim + 1);
    stage(of.values, stride, from, at.length, attention_stream, dim, v, dim + 1);
    __syncthreads();
    W score[own]{}, d_weight[own]{};
    meet(score, d_weight, q, d_out, mine, k, v, dim);
#pragma unroll
    for (int r = 0; r < own; ++r) {
      auto const query = at.first + mine + r;
      auto const seen = query < at.length && sees(s, query, from + lane);
      d_score[(mine + r) * attention_stream + lane] =
          seen ? exponential(score[r] - of_queries.log_sum[r]) *
                     (d_weight[r] * kept<W>(s, at.head, at.start + query, from + lane) - of_queries.delta[r])
               : W{0};
    }
    __syncwarp();
    weigh(sums, d_score, mine, k, dim + 1, dim);
    __syncwarp();
  }
#pragma unroll
  for (int r = 0; r < own; ++r) {
    auto const query = at.first + mine + r;
    if (query >= at.length) {
      continue;
    }
    auto* const d_q = a.d_qkv + (at.start + query) * stride + static_cast<int64_t>(at.head) * dim;
    for_own_dimensions(dim, [&](int i, int d) { d_q[d] = narrow<T>(sums[r][i] * static_cast<W>(s.scale)); });
  }
}

template <class T>
constexpr std::size_t attention_d_key_bytes(int dim) {
  return sizeof(wide<T>) *
         (attention_rows<T> * 2 * (dim + attention_stream) + attention_stream * 2 * (dim + 1));
}

/// Stores the gradients of the keys and values that a warp owns.
template <class T, int Own>
__device__ __forceinline__ void store_keys(kernel::attention_backward<T> const& a, attention_place const& at,
                                           int mine, wide<T> const (&d_k)[Own][attention_pieces],
                                           wide<T> const (&d_v)[Own][attention_pieces]) {
  auto const& s = a.shape;
  auto const key_column = static_cast<int64_t>(s.heads + at.head) * s.head_dim;
  auto const value_column = key_column + static_cast<int64_t>(s.kv_heads) * s.head_dim;
  int const lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int r = 0; r < Own; ++r) {
    auto const key = at.first + mine + r;
    if (key >= at.length) {
      continue;
    }
    auto* const row = a.d_qkv + (at.start + key) * s.qkv_columns();
#pragma unroll
    for (int i = 0; i < attention_pieces; ++i) {
      if (i * 32 + lane < s.head_dim) {
        row[key_column + i * 32 + lane] = narrow<T>(d_k[r][i]);
        row[value_column + i * 32 + lane] = narrow<T>(d_v[r][i]);
      }
    }
  }
}

/// Owns keys and values of one head, streams the queries of all heads that use it, in their order.
template <class T>
__global__ void __launch_bounds__(attention_threads)
    attention_d_key_kernel(kernel::attention_backward<T> a, int tiles) {
  using W = wide<T>;
  constexpr int own = attention_own<T>;
  constexpr int rows = attention_rows<T>;
  auto const& s = a.shape;
  auto const at = place_of(s, s.kv_heads, tiles, rows, most_work::first);
  if (at.first >= at.length) {
    return;
  }
  int const dim = s.head_dim;
  int const group = s.heads / s.kv_heads;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const mine = static_cast<int>(threadIdx.x) / 32 * own;
  auto const stride = s.qkv_columns();
  auto const out_stride = static_cast<int64_t>(s.heads) * dim;
  auto const* const qkv = a.qkv + at.start * stride;
  auto const key_column = static_cast<int64_t>(s.heads + at.head) * dim;
  auto const value_column = key_column + static_cast<int64_t>(s.kv_heads) * dim;

  extern __shared__ __align__(16) unsigned char shared_memory[];
  auto* const k = reinterpret_cast<W*>(shared_memory);   // [rows, dim]
  auto* const v = k + rows * dim;                        // [rows, dim]
  auto* const q = v + rows * dim;                        // [stream, dim + 1]
  auto* const d_out = q + attention_stream * (dim + 1);  // [stream, dim + 1]
  auto* const p = d_out + attention_stream * (dim + 1);  // [rows, stream]
  auto* const d_score = p + rows * attention_stream;     // [rows, stream]
  stage(qkv + key_column, stride, at.first, at.length, rows, dim, k, dim);
  stage(qkv + value_column, stride, at.first, at.length, rows, dim, v, dim);

  W d_k[own][attention_pieces]{}, d_v[own][attention_pieces]{};
  auto const last_key = (at.first + rows < at.length ? at.first + rows : at.length) - 1;
  auto const end = s.window > 0 && last_key + s.window < at.length ? last_key + s.window : at.length;
  for (int g = 0; g < group; ++g) {
    auto const head = at.head * group + g;
    for (auto from = at.first / attention_stream * attention_stream; from < end; from += attention_stream) {
      __syncthreads();
      stage(qkv + static_cast<int64_t>(head) * dim, stride, from, at.length, attention_stream, dim, q,
            dim + 1, static_cast<W>(s.scale));
      stage(a.d_out + at.start * out_stride + static_cast<int64_t>(head) * dim, out_stride, from, at.length,
            attention_stream, dim, d_out, dim + 1);
      auto const query = from + lane;
      auto const index = head * s.rows + at.start + query;
      auto const log_sum = query < at.length ? a.log_sum_exp[index] : W{0};
      auto const delta = query < at.length ? a.delta[index] : W{0};
      __syncthreads();
      W score[own]{}, d_weight[own]{};
      meet(score, d_weight, k, v, mine, q, d_out, dim);
#pragma unroll
      for (int r = 0; r < own; ++r) {
        auto const seen = query < at.length && sees(s, query, at.first + mine + r);
        auto const weight = seen ? exponential(score[r] - log_sum) : W{0};
        auto const factor = kept<W>(s, head, at.start + query, at.first + mine + r);
        p[(mine + r) * attention_stream + lane] = weight * factor;
        d_score[(mine + r) * attention_stream + lane] = seen ? weight * (d_weight[r] * factor - delta) : W{0};
      }
      __syncwarp();
      weigh_both(d_v, d_k, p, d_score, mine, d_out, q, dim);
      __syncwarp();
    }
  }
  store_keys(a, at, mine, d_k, d_v);
}

inline void check_attention(kernel::attention_shape const& s) {
  expect(s.head_dim >= 1 && s.head_dim <= attention_dim, exit_code::bad_input, "attention with head_dim ",
         s.head_dim, ": expected 1 to ", attention_dim, " on a CUDA device");
}

}  // namespace superoffload::cuda::kernels
