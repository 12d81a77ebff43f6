// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/cross_entropy.hpp>

#include <cooperative_groups.h>
#include <limits>

namespace superoffload::cuda::kernels {

/// exp(x - highest) summed up, while the highest x is still being looked for.
template <class W>
struct exponential_sum {
  W highest = -std::numeric_limits<W>::infinity();
  W total = 0;

  /// What to subtract before exp: finite where nothing has been seen, so that no difference of infinities
  /// appears.
  __device__ static W shift_of(W top) { return top == -std::numeric_limits<W>::infinity() ? W{0} : top; }

  template <class T>
  __device__ void include(exponential_sum other) {
    auto const top = other.highest > highest ? other.highest : highest;
    auto const shift = shift_of(top);
    total = total * exp_for<T>(highest - shift) + other.total * exp_for<T>(other.highest - shift);
    highest = top;
  }
};

/// Blocks of a cluster that share one row, so that logits are read once: registers and shared memory of all
/// of them together hold it.
inline constexpr int most_row_blocks = 8;
inline constexpr int row_block_threads = 512;
/// Vectors of 4 logits that a thread has at most, and those of them in registers: with the others in shared
/// memory, two blocks fill a multiprocessor.
inline constexpr int row_vectors = 16;
inline constexpr int register_vectors = 3;

__device__ __forceinline__ void copy_word_async(void* to_shared, void const* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
               :
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(to_shared))), "l"(from)
               : "memory");
}
__device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Does the GPU have clusters, and has this code been compiled for them?
inline bool has_clusters(void const* kernel) {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.ptxVersion >= 90;
}

/// 4 numbers, rounded to nearest even; `to` is aligned to their size.
__device__ __forceinline__ void store_rounded(float* to, float const (&x)[4]) {
  *reinterpret_cast<float4*>(to) = float4{x[0], x[1], x[2], x[3]};
}
__device__ __forceinline__ void store_rounded(bfloat16* to, float const (&x)[4]) {
  *reinterpret_cast<uint2*>(to) = uint2{narrow_pair(x[0], x[1]), narrow_pair(x[2], x[3])};
}

/// Logits next to each other, which become their exponentials.
template <class W>
struct alignas(16) logit_vector {
  static constexpr int size = 4;
  W at[size];

  /// Logits of no weight.
  __device__ __forceinline__ static logit_vector nothing() {
    logit_vector x;
#pragma unroll
    for (int j = 0; j < size; ++j) { x.at[j] = -std::numeric_limits<W>::infinity(); }
    return x;
  }
  __device__ __forceinline__ void raise(W& highest) const {
#pragma unroll
    for (int j = 0; j < size; ++j) { highest = fmax(highest, at[j]); }  // no NaN
  }
  template <class T>
  __device__ __forceinline__ void exponentiate(W shift, W& total) {
#pragma unroll
    for (int j = 0; j < size; ++j) {
      at[j] = exp_for<T>(at[j] - shift);
      total += at[j];  // NaN stays in the sum
    }
  }
};

/// A thread's vectors of its block's slice of a row: every row_block_threads-th one.
template <class T>
struct row_part {
  using W = wide<T>;
  using vector = logit_vector<W>;
  static constexpr int stride = row_block_threads * vector::size;

  vector x[register_vectors];
  vector* held;  ///< the others, in shared memory: every row_block_threads-th is this thread's
  int shared_vectors;
  int left;  ///< elements from this thread's first one to the end of the slice

  __device__ __forceinline__ void fetch(int v, W const* from, bool wanted) {
    x[v] = vector::nothing();
    if (wanted && v * stride < left) {
      x[v] = *reinterpret_cast<vector const*>(from + v * stride);
    }
  }
  __device__ __forceinline__ void fetch_shared(int v, W const* from, bool wanted) {
    if (wanted && (register_vectors + v) * stride < left) {
      copy_word_async(held + v * row_block_threads, from + (register_vectors + v) * stride);
    } else {
      held[v * row_block_threads] = vector::nothing();
    }
  }
  __device__ __forceinline__ void fetch_all(W const* from) {
    for (int v = 0; v < shared_vectors; ++v) { fetch_shared(v, from, true); }
#pragma unroll
    for (int v = 0; v < register_vectors; ++v) { fetch(v, from, true); }
  }

  /// Logits in shared memory become exponentials, relative to the highest of them.
  __device__ __forceinline__ exponential_sum<W> exponentiate_shared() {
    exponential_sum<W> sum;
#pragma unroll 4
    for (int v = 0; v < shared_vectors; ++v) { held[v * row_block_threads].raise(sum.highest); }
    auto const shift = sum.shift_of(sum.highest);
#pragma unroll 4
    for (int v = 0; v < shared_vectors; ++v) {
      auto y = held[v * row_block_threads];
      y.template exponentiate<T>(shift, sum.total);
      held[v * row_block_threads] = y;
    }
    return sum;
  }
  __device__ __forceinline__ exponential_sum<W> exponentiate_registers() {
    exponential_sum<W> sum;
#pragma unroll
    for (int v = 0; v < register_vectors; ++v) { x[v].raise(sum.highest); }
    auto const shift = sum.shift_of(sum.highest);
#pragma unroll
    for (int v = 0; v < register_vectors; ++v) { x[v].template exponentiate<T>(shift, sum.total); }
    return sum;
  }
};

template <class T>
__device__ __forceinline__ exponential_sum<wide<T>> over_lanes(exponential_sum<wide<T>> sum) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    exponential_sum<wide<T>> other;
    other.highest = __shfl_xor_sync(0xFFFFFFFFU, sum.highest, distance);
    other.total = __shfl_xor_sync(0xFFFFFFFFU, sum.total, distance);
    sum.template include<T>(other);
  }
  return sum;
}

/// The sums of all warps of a cluster, in the shared memory of each of its blocks.
template <class W>
struct cluster_sums {
  static constexpr int warps = row_block_threads / 32;
  struct {
    W highest, total;
  } of_warps[most_row_blocks][warps];

  /// The sum over all threads of the cluster, given to each of them.
  template <class T, class Cluster>
  __device__ __forceinline__ exponential_sum<W> combine(Cluster const& cluster, exponential_sum<W> sum) {
    auto const blocks = static_cast<int>(cluster.num_blocks());
    int const lane = static_cast<int>(threadIdx.x) % 32;
    auto const of_warp = over_lanes<T>(sum);
    if (lane < blocks) {
      auto& own = of_warps[static_cast<int>(cluster.block_rank())][static_cast<int>(threadIdx.x) / 32];
      *cluster.map_shared_rank(&own, lane) = {of_warp.highest, of_warp.total};
    }
    cluster.sync();
    exponential_sum<W> whole;
    for (int i = lane; i < blocks * warps; i += 32) {
      auto const part = of_warps[i / warps][i % warps];
      exponential_sum<W> other;
      other.highest = part.highest;
      other.total = part.total;
      whole.template include<T>(other);
    }
    return over_lanes<T>(whole);
  }
};

/// What a thread writes of a row's gradient.
template <class T>
struct row_gradient {
  using W = wide<T>;
  using vector = logit_vector<W>;
  T* to;  ///< of the thread's first logit; null: no gradient is wanted
  int left;
  int32_t target;   ///< negative: the row has none
  int target_here;  ///< counted from the thread's first logit
  W at_target;

  /// Vector v from its exponentials, `factor` times each.
  __device__ __forceinline__ void write(int v, vector y, W factor) const {
    constexpr int stride = row_part<T>::stride;
    if (to == nullptr || v * stride >= left) {
      return;
    }
#pragma unroll
    for (int j = 0; j < vector::size; ++j) { y.at[j] = target < 0 ? W{0} : y.at[j] * factor; }
    if (static_cast<unsigned>(target_here - v * stride) < vector::size) {
#pragma unroll
      for (int j = 0; j < vector::size; ++j) {
        y.at[j] = v * stride + j == target_here ? at_target : y.at[j];
      }
    }
    store_rounded(to + v * stride, y.at);
  }
};

/// Clusters of blocks take rows in turn, each block a slice. A thread has its own vectors, some in registers
/// and `shared_vectors` in shared memory, and as soon as one has been used it fetches that of the next row,
/// so that memory is never waited for in between. The gradient may replace the logits: each thread writes
/// what it alone has read.
template <class T>
__global__ void __launch_bounds__(row_block_threads, 2)
    cross_entropy_kernel(kernel::cross_entropy<T> a, int shared_vectors) {
#if __CUDA_ARCH__ >= 900
  using W = wide<T>;
  using vector = logit_vector<W>;
  extern __shared__ uint4 dynamic[];
  __shared__ cluster_sums<W> sums[2];
  auto const cluster = cooperative_groups::this_cluster();
  auto const blocks = static_cast<int>(cluster.num_blocks());
  auto const rank = static_cast<int>(cluster.block_rank());
  auto const slice = pieces_of(pieces_of(a.vocabulary, vector::size), blocks) * vector::size;
  auto const begin = rank * slice + static_cast<int>(threadIdx.x) * vector::size;
  auto row = static_cast<int64_t>(blockIdx.x) / blocks;
  auto const step = static_cast<int64_t>(gridDim.x) / blocks;

  row_part<T> part;
  part.held = reinterpret_cast<vector*>(dynamic) + threadIdx.x;
  part.shared_vectors = shared_vectors;
  part.left = static_cast<int>(min((rank + 1) * slice, a.vocabulary) - begin);
  auto const* next = a.logits + row * a.vocabulary + begin;
  part.fetch_all(next);
  cluster.sync();  // all blocks have started

  for (int parity = 0; row < a.rows; row += step, parity ^= 1) {
    auto const target = a.targets[row];
    auto const target_logit = target < 0 ? W{0} : a.logits[row * a.vocabulary + target];
    // What was fetched first comes first: the rest is still on its way.
    wait_for_copies();
    auto const of_shared = part.exponentiate_shared();
    auto const of_registers = part.exponentiate_registers();
    auto sum = of_shared;
    sum.template include<T>(of_registers);
    sum = sums[parity].template combine<T>(cluster, sum);
    auto const shift = sum.shift_of(sum.highest);
    if (threadIdx.x == 0 && rank == 0) {
      a.row_loss[row] = target < 0 ? W{0} : log(sum.total) + (sum.highest - target_logit);
    }
    auto const scale = static_cast<W>(a.scale);
    auto const share = target < 0 ? W{0} : scale / sum.total;
    row_gradient<T> const gradient{a.d_logits == nullptr ? nullptr : a.d_logits + row * a.vocabulary + begin,
                                   part.left, target, static_cast<int>(target - begin),
                                   (exp(target_logit - shift) / sum.total - W{1}) * scale};
    next += step * a.vocabulary;
    bool const more = row + step < a.rows;
    auto const shared_factor = exp_for<T>(sum.shift_of(of_shared.highest) - shift) * share;
#pragma unroll 4
    for (int v = 0; v < shared_vectors; ++v) {
      gradient.write(register_vectors + v, part.held[v * row_block_threads], shared_factor);
      part.fetch_shared(v, next, more);
    }
    auto const register_factor = exp_for<T>(sum.shift_of(of_registers.highest) - shift) * share;
#pragma unroll
    for (int v = 0; v < register_vectors; ++v) {
      gradient.write(v, part.x[v], register_factor);
      part.fetch(v, next, more);
    }
  }
#else
  __trap();
#endif
}

/// Any rows, each of them a block that reads it twice.
template <class T>
__global__ void cross_entropy_any_kernel(kernel::cross_entropy<T> a) {
  using W = wide<T>;
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x;
  auto const* const logits = a.logits + row * a.vocabulary;
  auto* const d_logits = a.d_logits == nullptr ? nullptr : a.d_logits + row * a.vocabulary;
  auto const target = a.targets[row];
  int64_t const step = static_cast<int64_t>(blockDim.x) * n;
  auto const begin = static_cast<int64_t>(threadIdx.x) * n;

  if (target < 0) {
    if (threadIdx.x == 0) {
      a.row_loss[row] = W{0};
    }
    if (d_logits != nullptr) {
      W const zero[n]{};
      for (auto i = begin; i < a.vocabulary; i += step) { store(d_logits + i, a.vocabulary - i, zero); }
    }
    return;
  }

  exponential_sum<W> mine;
  for (auto i = begin; i < a.vocabulary; i += step) {
    W x[n];
    load(logits + i, a.vocabulary - i, x, -std::numeric_limits<W>::infinity());
    auto top = mine.highest;
#pragma unroll
    for (int j = 0; j < n; ++j) { top = x[j] > top ? x[j] : top; }
    auto const shift = mine.shift_of(top);
    mine.total *= exp_for<T>(mine.highest - shift);
    mine.highest = top;
#pragma unroll
    for (int j = 0; j < n; ++j) { mine.total += exp_for<T>(x[j] - shift); }  // NaN stays in the sum
  }
  auto const target_logit = logits[target];
  auto const top = over_block(mine.highest, -std::numeric_limits<W>::infinity(), max_of{});
  auto const shift = mine.shift_of(top);
  auto const total = over_block(mine.total * exp_for<T>(mine.highest - shift), W{0}, sum_of{});
  if (threadIdx.x == 0) {
    a.row_loss[row] = log(total) + (top - target_logit);
  }
  if (d_logits == nullptr) {
    return;
  }
  auto const scale = static_cast<W>(a.scale);
  auto const factor = scale / total;
  auto const at_target = (exp(target_logit - shift) / total - W{1}) * scale;
  for (auto i = begin; i < a.vocabulary; i += step) {
    auto const left = a.vocabulary - i;
    W x[n];
    load(logits + i, left, x);
#pragma unroll
    for (int j = 0; j < n; ++j) { x[j] = i + j == target ? at_target : exp_for<T>(x[j] - shift) * factor; }
    store(d_logits + i, left, x);
  }
}

template <element T>
void run(stream& on, kernel::cross_entropy<T> const& a) {
  if constexpr (std::is_same_v<wide<T>, float>) {
    auto const kernel = cross_entropy_kernel<T>;
    constexpr int64_t vector_row = int64_t{4} * row_block_threads;
    int blocks = 1;
    while (blocks < most_row_blocks && pieces_of(a.vocabulary, blocks * vector_row) > row_vectors) {
      blocks *= 2;
    }
    auto const vectors = pieces_of(a.vocabulary, blocks * vector_row);
    static bool const clusters = has_clusters(reinterpret_cast<void const*>(kernel));
    if (clusters && vectors <= row_vectors && a.vocabulary % 4 == 0 && aligned_to(16, a.logits) &&
        aligned_to(4 * sizeof(T), a.d_logits)) {
      auto const shared = static_cast<int>(vectors > register_vectors ? vectors - register_vectors : 0);
      start_clusters(on, kernel, a.rows, blocks, row_block_threads,
                     static_cast<std::size_t>(shared) * row_block_threads * 16, a, shared);
      return;
    }
  }
  auto const threads = threads_for(pieces_of(a.vocabulary, lanes<T>), 1024);
  start(on, cross_entropy_any_kernel<T>, a.rows, threads, 0, a);
}

}  // namespace superoffload::cuda::kernels
