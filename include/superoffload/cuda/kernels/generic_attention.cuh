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
  constexpr auto lowest = -std::numeric_limits<W>::infinity();
  auto const& s = a.shape;
  auto const at = place_of(s, s.heads, tiles, rows, most_work::last);
  if (at.first >= at.length) {
    return;
  }
  int const dim = s.head_dim;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const mine = static_cast<int>(threadIdx.x) / 32 * own;
  auto const stride = s.qkv_columns();
  auto const* const qkv = a.qkv + at.start * stride;
  auto const* const keys = qkv + static_cast<int64_t>(s.heads + at.head / (s.heads / s.kv_heads)) * dim;
  auto const* const values = keys + static_cast<int64_t>(s.kv_heads) * dim;

  extern __shared__ __align__(16) unsigned char shared_memory[];
  auto* const q = reinterpret_cast<W*>(shared_memory);  // [rows, dim]
  auto* const k = q + rows * dim;                       // [stream, dim + 1]: no two lanes meet in a bank
  auto* const v = k + attention_stream * (dim + 1);     // [stream, dim]
  auto* const p = v + attention_stream * dim;           // [rows, stream]
  stage(qkv + static_cast<int64_t>(at.head) * dim, stride, at.first, at.length, rows, dim, q, dim,
        static_cast<W>(s.scale));

  W sums[own][attention_pieces]{};
  W highest[own], total[own];
#pragma unroll
  for (int r = 0; r < own; ++r) {
    highest[r] = a.sinks != nullptr ? widen(a.sinks[at.head]) : lowest;
    total[r] = a.sinks != nullptr ? W{1} : W{0};
  }
  auto const oldest = s.window > 0 && at.first >= s.window ? at.first - s.window + 1 : 0;
  auto const end = at.first + rows < at.length ? at.first + rows : at.length;
  for (auto from = oldest / attention_stream * attention_stream; from < end; from += attention_stream) {
    __syncthreads();
    stage(keys, stride, from, at.length, attention_stream, dim, k, dim + 1);
    stage(values, stride, from, at.length, attention_stream, dim, v, dim);
    __syncthreads();
    W score[own]{};
    for (int d = 0; d < dim; ++d) {
      auto const key = k[lane * (dim + 1) + d];
#pragma unroll
      for (int r = 0; r < own; ++r) { score[r] += q[(mine + r) * dim + d] * key; }
    }
#pragma unroll
    for (int r = 0; r < own; ++r) {
      if (!sees(s, at.first + mine + r, from + lane)) {
        score[r] = lowest;
      }
      auto const top = max_of{}(over_warp(score[r], max_of{}), highest[r]);
      auto const shift = top == lowest ? W{0} : top;
      auto const correction = exponential(highest[r] - shift);
      auto const weight = exponential(score[r] - shift);
      highest[r] = top;
      total[r] = total[r] * correction + over_warp(weight, sum_of{});
      p[(mine + r) * attention_stream + lane] =
          weight * kept<W>(s, at.head, at.start + at.first + mine + r, from + lane);
#pragma unroll
      for (int i = 0; i < attention_pieces; ++i) { sums[r][i] *= correction; }
    }
    __syncwarp();
    for (int j = 0; j < attention_stream; ++j) {
#pragma unroll
      for (int i = 0; i < attention_pieces; ++i) {
        if (i * 32 + lane < dim) {
          auto const value = v[j * dim + i * 32 + lane];
#pragma unroll
          for (int r = 0; r < own; ++r) { sums[r][i] += p[(mine + r) * attention_stream + j] * value; }
        }
      }
    }
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
#pragma unroll
    for (int i = 0; i < attention_pieces; ++i) {
      if (i * 32 + lane < dim) {
        out[i * 32 + lane] = narrow<T>(sums[r][i] / total[r]);
      }
    }
    if (lane == 0) {
      a.log_sum_exp[at.head * s.rows + row] = highest[r] + log(total[r]);
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

template <class T>
constexpr std::size_t attention_d_query_bytes(int dim) {
  return sizeof(wide<T>) *
         (attention_rows<T> * (2 * dim + attention_stream) + attention_stream * 2 * (dim + 1));
}

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
  auto const* const qkv = a.qkv + at.start * stride;
  auto const* const keys = qkv + static_cast<int64_t>(s.heads + at.head / (s.heads / s.kv_heads)) * dim;
  auto const* const values = keys + static_cast<int64_t>(s.kv_heads) * dim;

  extern __shared__ __align__(16) unsigned char shared_memory[];
  auto* const q = reinterpret_cast<W*>(shared_memory);     // [rows, dim]
  auto* const d_out = q + rows * dim;                      // [rows, dim]
  auto* const k = d_out + rows * dim;                      // [stream, dim + 1]
  auto* const v = k + attention_stream * (dim + 1);        // [stream, dim + 1]
  auto* const d_score = v + attention_stream * (dim + 1);  // [rows, stream]
  stage(qkv + static_cast<int64_t>(at.head) * dim, stride, at.first, at.length, rows, dim, q, dim,
        static_cast<W>(s.scale));
  stage(a.d_out + at.start * out_stride + static_cast<int64_t>(at.head) * dim, out_stride, at.first,
        at.length, rows, dim, d_out, dim);

  W sums[own][attention_pieces]{};
  W log_sum[own]{}, delta[own]{};
#pragma unroll
  for (int r = 0; r < own; ++r) {
    if (at.first + mine + r < at.length) {
      auto const index = at.head * s.rows + at.start + at.first + mine + r;
      log_sum[r] = a.log_sum_exp[index];
      delta[r] = a.delta[index];
    }
  }
  auto const oldest = s.window > 0 && at.first >= s.window ? at.first - s.window + 1 : 0;
  auto const end = at.first + rows < at.length ? at.first + rows : at.length;
  for (auto from = oldest / attention_stream * attention_stream; from < end; from += attention_stream) {
    __syncthreads();
    stage(keys, stride, from, at.length, attention_stream, dim, k, dim + 1);
    stage(values, stride, from, at.length, attention_stream, dim, v, dim + 1);
    __syncthreads();
    W score[own]{}, d_weight[own]{};
    for (int d = 0; d < dim; ++d) {
      auto const key = k[lane * (dim + 1) + d];
      auto const value = v[lane * (dim + 1) + d];
#pragma unroll
      for (int r = 0; r < own; ++r) {
        score[r] += q[(mine + r) * dim + d] * key;
        d_weight[r] += d_out[(mine + r) * dim + d] * value;
      }
    }
#pragma unroll
    for (int r = 0; r < own; ++r) {
      auto const query = at.first + mine + r;
      auto const seen = query < at.length && sees(s, query, from + lane);
      d_score[(mine + r) * attention_stream + lane] =
          seen ? exponential(score[r] - log_sum[r]) *
                     (d_weight[r] * kept<W>(s, at.head, at.start + query, from + lane) - delta[r])
               : W{0};
    }
    __syncwarp();
    for (int j = 0; j < attention_stream; ++j) {
#pragma unroll
      for (int i = 0; i < attention_pieces; ++i) {
        if (i * 32 + lane < dim) {
          auto const key = k[j * (dim + 1) + i * 32 + lane];
#pragma unroll
          for (int r = 0; r < own; ++r) { sums[r][i] += d_score[(mine + r) * attention_stream + j] * key; }
        }
      }
    }
    __syncwarp();
  }
#pragma unroll
  for (int r = 0; r < own; ++r) {
    auto const query = at.first + mine + r;
    if (query >= at.length) {
      continue;
    }
    auto* const d_q = a.d_qkv + (at.start + query) * stride + static_cast<int64_t>(at.head) * dim;
#pragma unroll
    for (int i = 0; i < attention_pieces; ++i) {
      if (i * 32 + lane < dim) {
        d_q[i * 32 + lane] = narrow<T>(sums[r][i] * static_cast<W>(s.scale));
      }
    }
  }
}

template <class T>
constexpr std::size_t attention_d_key_bytes(int dim) {
  return sizeof(wide<T>) *
         (attention_rows<T> * 2 * (dim + attention_stream) + attention_stream * 2 * (dim + 1));
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
      for (int d = 0; d < dim; ++d) {
        auto const q_d = q[lane * (dim + 1) + d];
        auto const d_out_d = d_out[lane * (dim + 1) + d];
#pragma unroll
        for (int r = 0; r < own; ++r) {
          score[r] += q_d * k[(mine + r) * dim + d];
          d_weight[r] += d_out_d * v[(mine + r) * dim + d];
        }
      }
#pragma unroll
      for (int r = 0; r < own; ++r) {
        auto const seen = query < at.length && sees(s, query, at.first + mine + r);
        auto const weight = seen ? exponential(score[r] - log_sum) : W{0};
        auto const factor = kept<W>(s, head, at.start + query, at.first + mine + r);
        p[(mine + r) * attention_stream + lane] = weight * factor;
        d_score[(mine + r) * attention_stream + lane] = seen ? weight * (d_weight[r] * factor - delta) : W{0};
      }
      __syncwarp();
      for (int j = 0; j < attention_stream; ++j) {
#pragma unroll
        for (int i = 0; i < attention_pieces; ++i) {
          if (i * 32 + lane < dim) {
            auto const q_i = q[j * (dim + 1) + i * 32 + lane];
            auto const d_out_i = d_out[j * (dim + 1) + i * 32 + lane];
#pragma unroll
            for (int r = 0; r < own; ++r) {
              d_v[r][i] += p[(mine + r) * attention_stream + j] * d_out_i;
              d_k[r][i] += d_score[(mine + r) * attention_stream + j] * q_i;
            }
          }
        }
      }
      __syncwarp();
    }
  }
#pragma unroll
  for (int r = 0; r < own; ++r) {
    auto const key = at.first + mine + r;
    if (key >= at.length) {
      continue;
    }
    auto* const row = a.d_qkv + (at.start + key) * stride;
#pragma unroll
    for (int i = 0; i < attention_pieces; ++i) {
      if (i * 32 + lane < dim) {
        row[key_column + i * 32 + lane] = narrow<T>(d_k[r][i]);
        row[value_column + i * 32 + lane] = narrow<T>(d_v[r][i]);
      }
    }
  }
}

inline void check_attention(kernel::attention_shape const& s) {
  expect(s.head_dim >= 1 && s.head_dim <= attention_dim, exit_code::bad_input, "attention with head_dim ",
         s.head_dim, ": expected 1 to ", attention_dim, " on a CUDA device");
}

}  // namespace superoffload::cuda::kernels
