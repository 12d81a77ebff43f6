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

/// Clusters of blocks take rows in turn, each block a slice. A thread has its own vectors, some in registers
/// and `shared_vectors` in shared memory, and as soon as one has been used it fetches that of the next row,
/// so that memory is never waited for in between. The gradient may replace the logits: each thread writes
/// what it alone has read.
template <class T>
__global__ void __launch_bounds__(row_block_threads, 2)
    cross_entropy_kernel(kernel::cross_entropy<T> a, int shared_vectors) {
#if __CUDA_ARCH__ >= 900
  namespace cg = cooperative_groups;
  using W = wide<T>;
  constexpr int n = 4;
  constexpr int threads = row_block_threads;
  constexpr int warps = threads / 32;
  struct alignas(16) vector {
    W at[n];
  };
  struct partial_sum {
    W highest, total;
  };
  extern __shared__ uint4 dynamic[];
  __shared__ partial_sum of_warps[2][most_row_blocks][warps];
  auto* const held = reinterpret_cast<vector*>(dynamic) + threadIdx.x;  // every `threads`-th is this thread's

  auto const cluster = cg::this_cluster();
  auto const blocks = static_cast<int>(cluster.num_blocks());
  auto const rank = static_cast<int>(cluster.block_rank());
  int const warp = static_cast<int>(threadIdx.x) / 32;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  auto const slice = pieces_of(pieces_of(a.vocabulary, n), blocks) * n;
  auto const begin = rank * slice + static_cast<int>(threadIdx.x) * n;
  /// Elements from this thread's first one to the end of the slice.
  auto const left = static_cast<int>(min((rank + 1) * slice, a.vocabulary) - begin);
  constexpr int stride = threads * n;
  auto row = static_cast<int64_t>(blockIdx.x) / blocks;
  auto const step = static_cast<int64_t>(gridDim.x) / blocks;

  vector nothing;
#pragma unroll
  for (int j = 0; j < n; ++j) { nothing.at[j] = -std::numeric_limits<W>::infinity(); }
  vector x[register_vectors];
  auto const fetch = [&](vector& to, int v, W const* from, bool wanted) {
    to = nothing;
    if (wanted && v * stride < left) {
      to = *reinterpret_cast<vector const*>(from + v * stride);
    }
  };
  auto const fetch_shared = [&](int v, W const* from, bool wanted) {
    if (wanted && (register_vectors + v) * stride < left) {
      copy_word_async(held + v * threads, from + (register_vectors + v) * stride);
    } else {
      held[v * threads] = nothing;
    }
  };
  auto const* next = a.logits + row * a.vocabulary + begin;
  for (int v = 0; v < shared_vectors; ++v) { fetch_shared(v, next, true); }
#pragma unroll
  for (int v = 0; v < register_vectors; ++v) { fetch(x[v], v, next, true); }
  cluster.sync();  // all blocks have started

  for (int parity = 0; row < a.rows; row += step, parity ^= 1) {
    auto const target = a.targets[row];
    auto const target_logit = target < 0 ? W{0} : a.logits[row * a.vocabulary + target];
    // What was fetched first comes first: the rest is still on its way.
    exponential_sum<W> of_shared, of_registers;
    wait_for_copies();
#pragma unroll 4
    for (int v = 0; v < shared_vectors; ++v) {
      auto const y = held[v * threads];
#pragma unroll
      for (int j = 0; j < n; ++j) { of_shared.highest = fmax(of_shared.highest, y.at[j]); }  // no NaN
    }
    auto const shared_shift = of_shared.shift_of(of_shared.highest);
#pragma unroll 4
    for (int v = 0; v < shared_vectors; ++v) {
      auto y = held[v * threads];
#pragma unroll
      for (int j = 0; j < n; ++j) {
        y.at[j] = exp_for<T>(y.at[j] - shared_shift);
        of_shared.total += y.at[j];  // NaN stays in the sum
      }
      held[v * threads] = y;
    }
#pragma unroll
    for (int v = 0; v < register_vectors; ++v) {
#pragma unroll
      for (int j = 0; j < n; ++j) { of_registers.highest = fmax(of_registers.highest, x[v].at[j]); }
    }
    auto const register_shift = of_registers.shift_of(of_registers.highest);
#pragma unroll
    for (int v = 0; v < register_vectors; ++v) {
#pragma unroll
      for (int j = 0; j < n; ++j) {
        x[v].at[j] = exp_for<T>(x[v].at[j] - register_shift);
        of_registers.total += x[v].at[j];
      }
    }

    auto const over_lanes = [](exponential_sum<W> sum) {
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) {
        exponential_sum<W> other;
        other.highest = __shfl_xor_sync(0xFFFFFFFFU, sum.highest, distance);
        other.total = __shfl_xor_sync(0xFFFFFFFFU, sum.total, distance);
        sum.template include<T>(other);
      }
      return sum;
    };
    // Every warp of the cluster leaves its sum in every block.
    of_shared.template include<T>(of_registers);
    auto const of_warp = over_lanes(of_shared);
    if (lane < blocks) {
      *cluster.map_shared_rank(&of_warps[parity][rank][warp], lane) = {of_warp.highest, of_warp.total};
    }
    cluster.sync();
    exponential_sum<W> whole;
    for (int i = lane; i < blocks * warps; i += 32) {
      auto const part = of_warps[parity][i / warps][i % warps];
      exponential_sum<W> other;
      other.highest = part.highest;
      other.total = part.total;
      whole.template include<T>(other);
    }
    whole = over_lanes(whole);
    auto const shift = whole.shift_of(whole.highest);
    if (threadIdx.x == 0 && rank == 0) {
      a.row_loss[row] = target < 0 ? W{0} : log(whole.total) + (whole.highest - target_logit);
    }
    auto const scale = static_cast<W>(a.scale);
    auto const share = target < 0 ? W{0} : scale / whole.total;
    auto const at_target = (exp(target_logit - shift) / whole.total - W{1}) * scale;
    auto const target_here = static_cast<int>(target - begin);
    auto* const to = a.d_logits == nullptr ? nullptr : a.d_logits + row * a.vocabulary + begin;
    auto const write = [&](int v, vector y, W factor) {
      if (to == nullptr || v * stride >= left) {
        return;
      }
#pragma unroll
      for (int j = 0; j < n; ++j) { y.at[j] = target < 0 ? W{0} : y.at[j] * factor; }
      if (static_cast<unsigned>(target_here - v * stride) < n) {
#pragma unroll
        for (int j = 0; j < n; ++j) { y.at[j] = v * stride + j == target_here ? at_target : y.at[j]; }
      }
      store_rounded(to + v * stride, y.at);
    };
    next += step * a.vocabulary;
    bool const more = row + step < a.rows;
    auto const shared_factor = exp_for<T>(shared_shift - shift) * share;
#pragma unroll 4
    for (int v = 0; v < shared_vectors; ++v) {
      write(register_vectors + v, held[v * threads], shared_factor);
      fetch_shared(v, next, more);
    }
    auto const register_factor = exp_for<T>(register_shift - shift) * share;
#pragma unroll
    for (int v = 0; v < register_vectors; ++v) {
      write(v, x[v], register_factor);
      fetch(x[v], v, next, more);
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
