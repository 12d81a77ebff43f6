// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>
#include <superoffload/kernel/routing.hpp>

#include <limits>

namespace superoffload::cuda::kernels {

inline constexpr int routing_threads = 256;
inline constexpr int routing_rows = routing_threads / 32;  ///< of a block: one for each warp

__device__ inline float exponential_of(float x) { return expf(x); }
__device__ inline double exponential_of(double x) { return exp(x); }

/// A logit and whose it is, in the order in which they are chosen.
template <class W>
struct candidate {
  W key;
  int expert;

  __device__ bool before(candidate other) const {
    return key > other.key || (key == other.key && expert < other.expert);
  }
};

template <class T>
__device__ wide<T> routing_key(T const* logit) {
  auto const value = widen(*logit);
  return value == value ? value : -std::numeric_limits<wide<T>>::infinity();
}

/// The first over a warp, given to each lane.
template <class W>
__device__ candidate<W> first_of_warp(candidate<W> own) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    candidate<W> const other{__shfl_xor_sync(0xFFFFFFFFU, own.key, distance),
                             __shfl_xor_sync(0xFFFFFFFFU, own.expert, distance)};
    if (other.before(own)) {
      own = other;
    }
  }
  return own;
}

template <class T>
__global__ void route_forward_kernel(kernel::route_forward<T> a) {
  using W = wide<T>;
  auto const& s = a.shape;
  auto const row = static_cast<int64_t>(blockIdx.x) * routing_rows + threadIdx.x / 32;
  if (row >= s.rows) {
    return;
  }
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const experts = static_cast<int>(s.experts);
  auto const* const logits = a.logits + row * s.experts;
  auto* const chosen = a.chosen + row * s.each;
  candidate<W> last{};
  W highest = 0, total = 0;
  for (int choice = 0; choice < s.each; ++choice) {
    candidate<W> own{-std::numeric_limits<W>::infinity(), experts};
    for (int e = lane; e < experts; e += 32) {
      candidate<W> const one{routing_key(logits + e), e};
      if ((choice == 0 || last.before(one)) && one.before(own)) {
        own = one;
      }
    }
    last = first_of_warp(own);
    auto const logit = widen(logits[last.expert]);
    if (choice == 0) {
      highest = logit;
    }
    total += exponential_of(logit - highest);
    if (lane == 0) {
      chosen[choice] = last.expert;
    }
  }
  if (!s.normalised) {
    total = 0;
    for (int e = lane; e < experts; e += 32) { total += exponential_of(widen(logits[e]) - highest); }
    total = over_warp(total, sum_of{});
  }
  auto* const dense = a.dense == nullptr ? nullptr : a.dense + row * s.experts;
  if (dense != nullptr) {
    for (int e = lane; e < experts; e += 32) { dense[e] = narrow<T>(W{0}); }
  }
  __syncwarp();
  for (int choice = lane; choice < s.each; choice += 32) {
    auto const weight = exponential_of(widen(logits[chosen[choice]]) - highest) / total;
    a.weights[row * s.each + choice] = weight;
    if (dense != nullptr) {
      dense[chosen[choice]] = narrow<T>(weight);
    }
  }
}

template <class T>
__global__ void route_backward_kernel(kernel::route_backward<T> a) {
  using W = wide<T>;
  auto const& s = a.shape;
  auto const row = static_cast<int64_t>(blockIdx.x) * routing_rows + threadIdx.x / 32;
  if (row >= s.rows) {
    return;
  }
  int const lane = static_cast<int>(threadIdx.x) % 32;
  auto const* const logits = a.logits + row * s.experts;
  auto const* const chosen = a.chosen + row * s.each;
  auto const* const weights = a.weights + row * s.each;
  auto* const d_logits = a.d_logits + row * s.experts;
  auto const d_weight = [&](int choice) {
    auto const d = a.d_weights[row * s.each + choice];
    return a.d_dense == nullptr ? d : d + widen(a.d_dense[row * s.experts + chosen[choice]]);
  };
  W mean = 0;
  for (int choice = lane; choice < s.each; choice += 32) { mean += weights[choice] * d_weight(choice); }
  mean = over_warp(mean, sum_of{});
  auto const highest = widen(logits[chosen[0]]);
  for (int64_t e = lane; e < s.experts; e += 32) {
    auto const probability = s.normalised ? W{0} : weights[0] * exponential_of(widen(logits[e]) - highest);
    d_logits[e] = narrow<T>(-probability * mean);
  }
  __syncwarp();
  for (int choice = lane; choice < s.each; choice += 32) {
    d_logits[chosen[choice]] = narrow<T>(weights[choice] * (d_weight(choice) - mean));
  }
}

template <element T>
void run(stream& on, kernel::route_forward<T> const& a) {
  start(on, route_forward_kernel<T>, pieces_of(a.shape.rows, routing_rows), routing_threads, 0, a);
}
template <element T>
void run(stream& on, kernel::route_backward<T> const& a) {
  start(on, route_backward_kernel<T>, pieces_of(a.shape.rows, routing_rows), routing_threads, 0, a);
}

inline constexpr int grouping_threads = 1024;
inline constexpr int choices_of_thread = 4;

/// A block is an expert, which looks through all choices twice: they stay in the second cache.
template <class = void>
__global__ void __launch_bounds__(grouping_threads) group_choices_kernel(kernel::group_choices a) {
  __shared__ int of_warps[grouping_threads / 32];
  auto const expert = static_cast<int>(blockIdx.x);
  int const lane = static_cast<int>(threadIdx.x) % 32;
  int const warp = static_cast<int>(threadIdx.x) / 32;
  int before = 0;
  for (auto c = static_cast<int64_t>(threadIdx.x); c < a.choices; c += grouping_threads) {
    before += a.chosen[c] < expert ? 1 : 0;
  }
  int place = over_block(before, 0, sum_of{});
  if (threadIdx.x == 0) {
    a.starts[expert] = place;
    if (expert + 1 == a.experts) {
      a.starts[a.experts] = static_cast<int32_t>(a.choices);
    }
  }
  constexpr int64_t step = grouping_threads * choices_of_thread;
  for (int64_t begin = 0; begin < a.choices; begin += step) {
    auto const first = begin + static_cast<int64_t>(threadIdx.x) * choices_of_thread;
    bool own[choices_of_thread];
    int count = 0;
#pragma unroll
    for (int i = 0; i < choices_of_thread; ++i) {
      own[i] = first + i < a.choices && a.chosen[first + i] == expert;
      count += own[i] ? 1 : 0;
    }
    int up_to = count;  // with those of the lanes before
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) {
      int const other = __shfl_up_sync(0xFFFFFFFFU, up_to, distance);
      up_to += lane >= distance ? other : 0;
    }
    if (lane == 31) {
      of_warps[warp] = up_to;
    }
    __syncthreads();
    int const of_lane = of_warps[lane];
    int const in_front = over_warp(lane < warp ? of_lane : 0, sum_of{});
    int const all = over_warp(of_lane, sum_of{});
    auto at = place + in_front + up_to - count;
#pragma unroll
    for (int i = 0; i < choices_of_thread; ++i) {
      if (own[i]) {
        a.order[at] = static_cast<int32_t>(first + i);
        a.places[first + i] = at++;
      }
    }
    place += all;
    __syncthreads();
  }
}

inline void run(stream& on, kernel::group_choices const& a) {
  start(on, group_choices_kernel<>, a.experts, grouping_threads, 0, a);
}

inline constexpr int gather_threads = 128;

/// A block is a row.
template <class T>
__global__ void gather_rows_kernel(kernel::gather_rows<T> a, bool whole) {
  int64_t const row = blockIdx.x;
  auto const* const from = a.x + a.order[row] / a.each * a.columns;
  auto* const to = a.out + row * a.columns;
  if (whole) {
    constexpr int n = word<T>;
#pragma unroll 4
    for (auto i = static_cast<int64_t>(threadIdx.x) * n; i < a.columns; i += gather_threads * n) {
      row_word<T>::load(from + i).store(to + i);
    }
    return;
  }
  for (auto i = static_cast<int64_t>(threadIdx.x); i < a.columns; i += gather_threads) { to[i] = from[i]; }
}

template <element T>
void run(stream& on, kernel::gather_rows<T> const& a) {
  start(on, gather_rows_kernel<T>, a.choices, gather_threads, 0, a, whole_words(a.columns, a.x, a.out));
}

/// A row is cut into `across` blocks.
template <class T>
__global__ void combine_rows_kernel(kernel::combine_rows<T> a, int64_t across) {
  constexpr int n = lanes<T>;
  int64_t const row = blockIdx.x / across;
  auto const i = (blockIdx.x % across * gather_threads + threadIdx.x) * n;
  auto const left = a.columns - i;
  if (left <= 0) {
    return;
  }
  auto const* const places = a.places + row * a.each;
  wide<T> sum[n]{};
  if (a.addend != nullptr) {
    load(a.addend + row * a.columns + i, left, sum);
  }
#pragma unroll 4
  for (int c = 0; c < a.each; ++c) {
    wide<T> x[n];
    load(a.grouped + places[c] * a.columns + i, left, x);
#pragma unroll
    for (int j = 0; j < n; ++j) { sum[j] += x[j]; }
  }
  store(a.out + row * a.columns + i, left, sum);
}

template <element T>
void run(stream& on, kernel::combine_rows<T> const& a) {
  auto const across = pieces_of(a.columns, gather_threads * lanes<T>);
  start(on, combine_rows_kernel<T>, a.rows * across, gather_threads, 0, a, across);
}

}  // namespace superoffload::cuda::kernels
