// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/generic_attention.cuh>

/// Attention in bfloat16 on the matrix units (mma.sync, every GPU since sm_80) for head dimensions 64 and
/// 128. Four warps own 16 rows each; what they meet streams through two stages of shared memory. Weights are
/// rounded to bfloat16 before they meet values; sums, softmax and its statistics are float.
namespace superoffload::cuda::kernels::flash {

inline constexpr int threads = 128;
inline constexpr int own_rows = 64;

/// Elements from row to row in shared memory: an odd number of 16 bytes, so that eight rows touch all banks.
template <int Dim>
inline constexpr int stride = Dim + 8;

__device__ inline unsigned shared_address(void const* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Starts to copy rows [first, first + count) to shared memory; zeros behind `end`.
template <int Dim>
__device__ void fetch(bfloat16 const* from, int64_t from_stride, int64_t first, int64_t end, int count,
                      bfloat16* to) {
  constexpr int pieces = Dim / 8;
  for (int item = static_cast<int>(threadIdx.x); item < count * pieces; item += threads) {
    int const row = item / pieces;
    int const i = item % pieces * 8;
    bool const there = first + row < end;
    auto const* const source = from + (there ? first + row : 0) * from_stride + i;
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to + row * stride<Dim> + i)),
        "l"(source), "r"(there ? 16 : 0));
  }
}
__device__ inline void end_of_fetch() { asm volatile("cp.async.commit_group;"); }
/// Waits for all but the last `Later` groups.
template <int Later>
__device__ void wait_for_fetch() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Later));
}

using fragment = unsigned[4];

__device__ inline void load_matrices(fragment& to, bfloat16 const* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}
__device__ inline void load_transposed(fragment& to, bfloat16 const* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row)));
}
__device__ inline void multiply_add(float (&c)[4], fragment const& a, unsigned b0, unsigned b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline unsigned pair(float low, float high) {
  unsigned packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ inline float power_of_two(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// c = a b^T: `a` points to the warp's 16 rows, b has 8 * Tiles rows, all of Dim columns.
template <int Dim, int Tiles>
__device__ __forceinline__ void scores(float (&c)[Tiles][4], bfloat16 const* a, bfloat16 const* b) {
  int const lane = static_cast<int>(threadIdx.x) % 32;
  auto const* const a_row = a + lane % 16 * stride<Dim> + lane / 16 * 8;
  auto const* const b_row = b + (lane % 8 + lane / 16 * 8) * stride<Dim> + lane / 8 % 2 * 8;
#pragma unroll
  for (int i = 0; i < Tiles; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) { c[i][j] = 0; }
  }
#pragma unroll
  for (int k = 0; k < Dim; k += 16) {
    fragment left;
    load_matrices(left, a_row + k);
#pragma unroll
    for (int i = 0; i < Tiles; i += 2) {
      fragment right;
      load_matrices(right, b_row + i * 8 * stride<Dim> + k);
      multiply_add(c[i], left, right[0], right[1]);
      multiply_add(c[i + 1], left, right[2], right[3]);
    }
  }
}

/// c += p b: p are weights as `scores` leaves them, rounded to bfloat16; b has 8 * Tiles rows of Dim columns.
template <int Dim, int Tiles>
__device__ __forceinline__ void weigh(float (&c)[Dim / 8][4], float const (&p)[Tiles][4], bfloat16 const* b) {
  int const lane = static_cast<int>(threadIdx.x) % 32;
  auto const* const b_row = b + (lane % 8 + lane / 8 % 2 * 8) * stride<Dim> + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < Tiles; k += 2) {
    fragment const left = {pair(p[k][0], p[k][1]), pair(p[k][2], p[k][3]), pair(p[k + 1][0], p[k + 1][1]),
                           pair(p[k + 1][2], p[k + 1][3])};
#pragma unroll
    for (int i = 0; i < Dim / 8; i += 2) {
      fragment right;
      load_transposed(right, b_row + k * 8 * stride<Dim> + i * 8);
      multiply_add(c[i], left, right[0], right[1]);
      multiply_add(c[i + 1], left, right[2], right[3]);
    }
  }
}

/// Stores a warp's 16 rows; `row_of(0)` and `row_of(1)` are where this thread's two begin, null for none.
template <int Dim, class Row>
__device__ void write(float const (&c)[Dim / 8][4], float const (&factor)[2], Row row_of) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    bfloat16* const to = row_of(r);
    if (to == nullptr) {
      continue;
    }
#pragma unroll
    for (int i = 0; i < Dim / 8; ++i) {
      *reinterpret_cast<unsigned*>(to + i * 8 + threadIdx.x % 4 * 2) =
          pair(c[i][2 * r] * factor[r], c[i][2 * r + 1] * factor[r]);
    }
  }
}

/// kept() of two neighbouring keys, the first one even.
__device__ __forceinline__ float2 kept_pair(kernel::attention_shape const& s, int64_t head, int64_t row,
                                            int64_t key) {
  auto const drawn =
      s.dropout.draw(s.dropout_row(row, head), static_cast<std::uint64_t>(key) / 4) >> (key % 4 * 16);
  auto const factor = s.dropout.template factor<float>();
  return {s.dropout.keeps(drawn, 0) ? factor : 0.0F, s.dropout.keeps(drawn, 1) ? factor : 0.0F};
}

/// Streamed rows at a time.
inline constexpr int forward_stream = 64;
inline constexpr int d_query_stream = 64;
template <int Dim>
inline constexpr int d_key_stream = Dim == 64 ? 64 : 32;  ///< what fits in registers

template <int Dim>
constexpr std::size_t bytes(int owned, int stream) {
  return sizeof(bfloat16) * stride<Dim> * (owned * own_rows + 4 * stream);
}

/// Pieces of `Stream` keys and their values, in two stages of shared memory.
template <int Dim, int Stream>
struct key_stream {
  attention_operands<bfloat16> of;
  int64_t row_stride, length;
  bfloat16* memory;

  __device__ bfloat16* k(int stage) const { return memory + stage * 2 * Stream * stride<Dim>; }
  __device__ bfloat16* v(int stage) const { return k(stage) + Stream * stride<Dim>; }
  __device__ __forceinline__ void fetch(int64_t from, int stage) const {
    flash::fetch<Dim>(of.keys, row_stride, from, length, Stream, k(stage));
    flash::fetch<Dim>(of.values, row_stride, from, length, Stream, v(stage));
  }
  /// Starts to copy the piece after the one at `from`, if there is one before `end`, and waits for that one.
  __device__ __forceinline__ void advance(int64_t from, int64_t end, int stage) const {
    if (from + Stream < end) {
      fetch(from + Stream, stage ^ 1);
    }
    end_of_fetch();
    wait_for_fetch<1>();
    __syncthreads();
  }
};

/// Scores of `query`, and of the one eight rows on, with keys that they do not see are made to weigh nothing.
/// The first score is that of the key `from`.
template <int Tiles>
__device__ __forceinline__ void hide(float (&p)[Tiles][4], kernel::attention_shape const& s, int64_t query,
                                     int64_t from) {
  int const lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < Tiles; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (!sees(s, query + j / 2 * 8, from + i * 8 + lane % 4 * 2 + j % 2)) {
        p[i][j] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

/// p times what dropout makes of it: `row` is that of the thread's first query, `from` the first key.
template <int Tiles>
__device__ __forceinline__ void drop(float (&p)[Tiles][4], kernel::attention_shape const& s, int64_t head,
                                     int64_t row, int64_t from) {
  int const lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < Tiles; ++i) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      auto const factor = kept_pair(s, head, row + r * 8, from + i * 8 + lane % 4 * 2);
      p[i][2 * r] *= factor.x;
      p[i][2 * r + 1] *= factor.y;
    }
  }
}

/// The running softmax of a thread's two rows.
struct running_softmax {
  float highest[2], total[2];  ///< of all columns, of this thread's columns

  __device__ running_softmax(bfloat16 const* sink, float scale) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      highest[r] = sink != nullptr ? widen(*sink) / scale : -std::numeric_limits<float>::infinity();
      total[r] = sink != nullptr && threadIdx.x % 4 == 0 ? 1.0F : 0.0F;
    }
  }

  __device__ __forceinline__ float row_total(int r) const {
    auto sum = total[r];
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
    return sum;
  }
  /// Scores become weights relative to the highest so far; `sums` follow a new highest.
  template <int Tiles, int Columns>
  __device__ __forceinline__ void step(float (&p)[Tiles][4], float (&sums)[Columns][4], float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      auto top = highest[r];
#pragma unroll
      for (int i = 0; i < Tiles; ++i) { top = fmaxf(top, fmaxf(p[i][2 * r], p[i][2 * r + 1])); }
      top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, 1));
      top = fmaxf(top, __shfl_xor_sync(0xFFFFFFFFU, top, 2));
      auto const shift = top == -std::numeric_limits<float>::infinity() ? 0.0F : top * scale_log2;
      auto const correction = power_of_two(highest[r] * scale_log2 - shift);
      highest[r] = top;
      total[r] *= correction;
#pragma unroll
      for (int i = 0; i < Tiles; ++i) {
#pragma unroll
        for (int j = 2 * r; j < 2 * r + 2; ++j) {
          p[i][j] = power_of_two(p[i][j] * scale_log2 - shift);
          total[r] += p[i][j];
        }
      }
#pragma unroll
      for (int i = 0; i < Columns; ++i) {
        sums[i][2 * r] *= correction;
        sums[i][2 * r + 1] *= correction;
      }
    }
  }
};

template <int Dim, bool Drops>
__global__ void __launch_bounds__(threads) forward_kernel(kernel::attention_forward<bfloat16> a, int tiles) {
  constexpr int stream = forward_stream;
  constexpr int columns = stream / 8;
  auto const& s = a.shape;
  auto const at = place_of(s, s.heads, tiles, own_rows, most_work::last);
  if (at.first >= at.length) {
    return;
  }
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  int64_t const query = at.first + warp_row + lane / 4;  // and the one eight rows on
  auto const row_stride = s.qkv_columns();
  attention_operands<bfloat16> const of{s, Dim, a.qkv, at};

  extern __shared__ __align__(16) unsigned char shared_memory[];
  auto* const q = reinterpret_cast<bfloat16*>(shared_memory);
  key_stream<Dim, stream> const streamed{of, row_stride, at.length, q + own_rows * stride<Dim>};
  auto const oldest = s.window > 0 && at.first >= s.window ? at.first - s.window + 1 : 0;
  auto const begin = oldest / stream * stream;
  auto const end = at.first + own_rows < at.length ? at.first + own_rows : at.length;
  fetch<Dim>(of.queries, row_stride, at.first, at.length, own_rows, q);
  streamed.fetch(begin, 0);
  end_of_fetch();

  auto const scale = static_cast<float>(s.scale);
  auto const scale_log2 = static_cast<float>(s.scale * 1.4426950408889634);
  float sums[Dim / 8][4]{};
  running_softmax softmax{a.sinks != nullptr ? a.sinks + at.head : nullptr, scale};
  int stage = 0;
  for (auto from = begin; from < end; from += stream, stage ^= 1) {
    streamed.advance(from, end, stage);
    float p[columns][4];
    scores<Dim, columns>(p, q + warp_row * stride<Dim>, streamed.k(stage));
    if (s.window > 0 || from + stream > at.first + warp_row) {
      hide(p, s, query, from);
    }
    softmax.step(p, sums, scale_log2);
    if constexpr (Drops) {
      drop(p, s, at.head, at.start + query, from);
    }
    weigh<Dim, columns>(sums, p, streamed.v(stage));
    __syncthreads();
  }
  float factor[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    auto const total = softmax.row_total(r);
    factor[r] = 1.0F / total;
    if (lane % 4 == 0 && query + r * 8 < at.length) {
      a.log_sum_exp[at.head * s.rows + at.start + query + r * 8] = softmax.highest[r] * scale + logf(total);
    }
  }
  write<Dim>(sums, factor, [&](int r) -> bfloat16* {
    auto const row = query + r * 8;
    return row < at.length ? a.out + ((at.start + row) * s.heads + at.head) * Dim : nullptr;
  });
}

inline constexpr int delta_threads = 256;

/// A few threads share a row of a head.
template <int Dim>
__global__ void __launch_bounds__(delta_threads) delta_kernel(kernel::attention_backward<bfloat16> a) {
  constexpr int n = lanes<bfloat16>;
  constexpr int sharers = Dim / n;
  auto const& s = a.shape;
  auto const item = static_cast<int64_t>(blockIdx.x) * delta_threads + threadIdx.x;
  auto const index = item / sharers;
  float products = 0;
  if (index < s.rows * s.heads) {
    float out[n], d_out[n];
    load_aligned(a.out + item * n, out);
    load_aligned(a.d_out + item * n, d_out);
#pragma unroll
    for (int i = 0; i < n; ++i) { products += out[i] * d_out[i]; }
  }
#pragma unroll
  for (int distance = sharers / 2; distance > 0; distance /= 2) {
    products += __shfl_xor_sync(0xFFFFFFFFU, products, distance);
  }
  if (item % sharers == 0 && index < s.rows * s.heads) {
    a.delta[index % s.heads * s.rows + index / s.heads] = products;
  }
}

inline constexpr float log2_e = 1.4426950408889634F;

/// Of a thread's two queries: the logarithm to base 2 of the sum of exponentials, and delta.
struct query_statistics {
  float log_sum[2]{}, delta[2]{};

  template <class Tile, class Row>
  __device__ query_statistics(kernel::attention_backward<bfloat16> const& a, Tile const& at, Row query) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (query + r * 8 < at.length) {
        auto const index = at.head * a.shape.rows + at.start + query + r * 8;
        log_sum[r] = a.log_sum_exp[index] * log2_e;
        delta[r] = a.delta[index];
      }
    }
  }
};

/// Owns queries, streams keys and values.
template <int Dim, bool Drops>
__global__ void __launch_bounds__(threads) d_query_kernel(kernel::attention_backward<bfloat16> a, int tiles) {
  constexpr int stream = d_query_stream;
  constexpr int columns = stream / 8;
  auto const& s = a.shape;
  auto const at = place_of(s, s.heads, tiles, own_rows, most_work::last);
  if (at.first >= at.length) {
    return;
  }
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  int64_t const query = at.first + warp_row + lane / 4;
  auto const row_stride = s.qkv_columns();
  auto const out_stride = static_cast<int64_t>(s.heads) * Dim;
  attention_operands<bfloat16> const of{s, Dim, a.qkv, at};

  extern __shared__ __align__(16) unsigned char shared_memory[];
  auto* const q = reinterpret_cast<bfloat16*>(shared_memory);
  auto* const d_out = q + own_rows * stride<Dim>;
  key_stream<Dim, stream> const streamed{of, row_stride, at.length, d_out + own_rows * stride<Dim>};
  auto const oldest = s.window > 0 && at.first >= s.window ? at.first - s.window + 1 : 0;
  auto const begin = oldest / stream * stream;
  auto const end = at.first + own_rows < at.length ? at.first + own_rows : at.length;
  fetch<Dim>(of.queries, row_stride, at.first, at.length, own_rows, q);
  fetch<Dim>(a.d_out + at.start * out_stride + static_cast<int64_t>(at.head) * Dim, out_stride, at.first,
             at.length, own_rows, d_out);
  streamed.fetch(begin, 0);
  end_of_fetch();

  auto const scale = static_cast<float>(s.scale);
  float sums[Dim / 8][4]{};
  query_statistics const of_queries{a, at, query};
  int stage = 0;
  for (auto from = begin; from < end; from += stream, stage ^= 1) {
    streamed.advance(from, end, stage);
    float p[columns][4], d[columns][4];
    scores<Dim, columns>(p, q + warp_row * stride<Dim>, streamed.k(stage));
    scores<Dim, columns>(d, d_out + warp_row * stride<Dim>, streamed.v(stage));
    if constexpr (Drops) {
      drop(d, s, at.head, at.start + query, from);
    }
    bool const whole = s.window == 0 && from + stream <= at.first + warp_row;
#pragma unroll
    for (int i = 0; i < columns; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        auto const weight = power_of_two(p[i][j] * (scale * log2_e) - of_queries.log_sum[j / 2]);
        auto const seen = whole || sees(s, query + j / 2 * 8, from + i * 8 + lane % 4 * 2 + j % 2);
        d[i][j] = seen ? weight * (d[i][j] - of_queries.delta[j / 2]) : 0.0F;
      }
    }
    weigh<Dim, columns>(sums, d, streamed.k(stage));
    __syncthreads();
  }
  write<Dim>(sums, {scale, scale}, [&](int r) -> bfloat16* {
    auto const row = query + r * 8;
    return row < at.length ? a.d_qkv + (at.start + row) * row_stride + static_cast<int64_t>(at.head) * Dim
                           : nullptr;
  });
}

/// Pieces of `Stream` queries, of all heads that use a head of keys, in their order: in two stages of shared
/// memory.
template <int Dim, int Stream>
struct query_stream {
  kernel::attention_backward<bfloat16> const& a;
  attention_place const& at;
  bfloat16 const *queries, *d_outs;  ///< the document's first rows
  bfloat16* memory;
  float (*log_sums)[Stream], (*deltas)[Stream];
  int group;                ///< heads that use the head of keys
  int64_t begin, per_head;  ///< the first query, pieces of each head

  __device__ query_stream(kernel::attention_backward<bfloat16> const& a, attention_place const& at,
                          bfloat16* memory, float (&log_sums)[2][Stream], float (&deltas)[2][Stream])
      : a{a}, at{at}, memory{memory}, log_sums{log_sums}, deltas{deltas} {
    auto const& s = a.shape;
    queries = a.qkv + at.start * s.qkv_columns();
    d_outs = a.d_out + at.start * (static_cast<int64_t>(s.heads) * Dim);
    group = s.heads / s.kv_heads;
    auto const last_key = (at.first + own_rows < at.length ? at.first + own_rows : at.length) - 1;
    auto const end = s.window > 0 && last_key + s.window < at.length ? last_key + s.window : at.length;
    begin = at.first / Stream * Stream;
    per_head = pieces_of(end - begin, Stream);
  }

  __device__ bfloat16* q(int stage) const { return memory + stage * 2 * Stream * stride<Dim>; }
  __device__ bfloat16* d_out(int stage) const { return q(stage) + Stream * stride<Dim>; }
  __device__ int64_t steps() const { return per_head * group; }
  __device__ int64_t head(int64_t step) const { return at.head * group + step / per_head; }
  __device__ int64_t from(int64_t step) const { return begin + step % per_head * Stream; }

  __device__ __forceinline__ void fetch(int64_t step, int stage) const {
    auto const& s = a.shape;
    auto const head = this->head(step);
    auto const from = this->from(step);
    flash::fetch<Dim>(queries + head * Dim, s.qkv_columns(), from, at.length, Stream, q(stage));
    flash::fetch<Dim>(d_outs + head * Dim, static_cast<int64_t>(s.heads) * Dim, from, at.length, Stream,
                      d_out(stage));
    if (threadIdx.x < Stream) {
      auto const query = from + threadIdx.x;
      auto const index = head * s.rows + at.start + query;
      log_sums[stage][threadIdx.x] = query < at.length ? a.log_sum_exp[index] * log2_e : 0.0F;
      deltas[stage][threadIdx.x] = query < at.length ? a.delta[index] : 0.0F;
    }
  }

  /// Scores p become weights, and the gradients d of weights those of scores. `whole`: each query sees each
  /// key.
  template <bool Drops>
  __device__ __forceinline__ void differentiate(float (&p)[Stream / 8][4], float (&d)[Stream / 8][4],
                                                float scale, int64_t step, int stage, bool whole,
                                                int64_t key) const {
    auto const& s = a.shape;
    int const lane = static_cast<int>(threadIdx.x) % 32;
    auto const from = this->from(step);
#pragma unroll
    for (int i = 0; i < Stream / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        int const column = i * 8 + lane % 4 * 2 + j % 2;
        auto const seen = whole || sees(s, from + column, key + j / 2 * 8);
        auto const weight = seen ? power_of_two(p[i][j] * (scale * log2_e) - log_sums[stage][column]) : 0.0F;
        float factor = 1.0F;
        if constexpr (Drops) {
          factor = kept<float>(s, head(step), at.start + from + column, key + j / 2 * 8);
        }
        p[i][j] = weight * factor;
        d[i][j] = seen ? weight * (d[i][j] * factor - deltas[stage][column]) : 0.0F;
      }
    }
  }
};

/// Owns keys and values of one head, streams the queries of all heads that use it, in their order. Scores are
/// transposed: a row is a key.
template <int Dim, bool Drops>
__global__ void __launch_bounds__(threads) d_key_kernel(kernel::attention_backward<bfloat16> a, int tiles) {
  constexpr int stream = d_key_stream<Dim>;
  constexpr int columns = stream / 8;
  auto const& s = a.shape;
  auto const at = place_of(s, s.kv_heads, tiles, own_rows, most_work::first);
  if (at.first >= at.length) {
    return;
  }
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  int64_t const key = at.first + warp_row + lane / 4;
  auto const row_stride = s.qkv_columns();
  auto const* const qkv = a.qkv + at.start * row_stride;
  auto const key_column = static_cast<int64_t>(s.heads + at.head) * Dim;
  auto const value_column = key_column + static_cast<int64_t>(s.kv_heads) * Dim;

  extern __shared__ __align__(16) unsigned char shared_memory[];
  __shared__ float log_sums[2][stream], deltas[2][stream];
  auto* const k = reinterpret_cast<bfloat16*>(shared_memory);
  auto* const v = k + own_rows * stride<Dim>;
  query_stream<Dim, stream> const streamed{a, at, v + own_rows * stride<Dim>, log_sums, deltas};
  fetch<Dim>(qkv + key_column, row_stride, at.first, at.length, own_rows, k);
  fetch<Dim>(qkv + value_column, row_stride, at.first, at.length, own_rows, v);
  streamed.fetch(0, 0);
  end_of_fetch();

  auto const scale = static_cast<float>(s.scale);
  float d_k[Dim / 8][4]{}, d_v[Dim / 8][4]{};
  auto const steps = streamed.steps();
  int stage = 0;
  for (int64_t step = 0; step < steps; ++step, stage ^= 1) {
    if (step + 1 < steps) {
      streamed.fetch(step + 1, stage ^ 1);
    }
    end_of_fetch();
    wait_for_fetch<1>();
    __syncthreads();
    float p[columns][4], d[columns][4];
    scores<Dim, columns>(p, k + warp_row * stride<Dim>, streamed.q(stage));
    scores<Dim, columns>(d, v + warp_row * stride<Dim>, streamed.d_out(stage));
    bool const whole = s.window == 0 && streamed.from(step) >= at.first + warp_row + 15;
    streamed.template differentiate<Drops>(p, d, scale, step, stage, whole, key);
    weigh<Dim, columns>(d_v, p, streamed.d_out(stage));
    weigh<Dim, columns>(d_k, d, streamed.q(stage));
    __syncthreads();
  }
  auto const row_of = [&](int64_t column) {
    return [&, column](int r) -> bfloat16* {
      auto const row = key + r * 8;
      return row < at.length ? a.d_qkv + (at.start + row) * row_stride + column : nullptr;
    };
  };
  write<Dim>(d_k, {scale, scale}, row_of(key_column));
  write<Dim>(d_v, {1.0F, 1.0F}, row_of(value_column));
}

/// Rows are copied 16 bytes at a time.
template <class... Operand>
bool serves(kernel::attention_shape const& s, Operand const*... operands) {
  return ((reinterpret_cast<std::uintptr_t>(operands) % 16 == 0) && ...) &&
         (s.head_dim == 64 || s.head_dim == 128);
}

template <int Dim>
void run(cuda::stream& on, kernel::attention_forward<bfloat16> const& a) {
  auto const tiles = pieces_of(a.shape.longest, own_rows);
  start(on, a.shape.dropout.dropped > 0 ? forward_kernel<Dim, true> : forward_kernel<Dim, false>,
        a.shape.documents * a.shape.heads * tiles, threads, bytes<Dim>(1, forward_stream), a,
        static_cast<int>(tiles));
}

template <int Dim>
void run_delta(cuda::stream& on, kernel::attention_backward<bfloat16> const& a) {
  auto const items = a.shape.rows * a.shape.heads * (Dim / lanes<bfloat16>);
  start(on, delta_kernel<Dim>, pieces_of(items, delta_threads), delta_threads, 0, a);
}

template <int Dim>
void run(cuda::stream& on, kernel::attention_backward<bfloat16> const& a) {
  run_delta<Dim>(on, a);
  auto const tiles = pieces_of(a.shape.longest, own_rows);
  bool const drops = a.shape.dropout.dropped > 0;
  start(on, drops ? d_query_kernel<Dim, true> : d_query_kernel<Dim, false>,
        a.shape.documents * a.shape.heads * tiles, threads, bytes<Dim>(2, d_query_stream), a,
        static_cast<int>(tiles));
  start(on, drops ? d_key_kernel<Dim, true> : d_key_kernel<Dim, false>,
        a.shape.documents * a.shape.kv_heads * tiles, threads, bytes<Dim>(2, d_key_stream<Dim>), a,
        static_cast<int>(tiles));
}

}  // namespace superoffload::cuda::kernels::flash
