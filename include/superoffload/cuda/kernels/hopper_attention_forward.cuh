// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/hopper_attention.cuh>

namespace superoffload::cuda::kernels::hopper {

template <int Dim>
struct forward_sizes {
  static constexpr int warpgroups = Dim == 64 ? 3 : 2;
  static constexpr int rows = warpgroups * warpgroup_rows;
  static constexpr int stream = 128;
  static constexpr int stages = 2;
  static constexpr bool turns = warpgroups == 2;
  static constexpr int threads = attention_block<warpgroups>;
};

struct forward_arguments {
  kernel::attention_forward<bfloat16> a;
  CUtensorMap qkv;
};

template <int Dim>
struct alignas(1024) forward_memory {
  using sizes = forward_sizes<Dim>;
  using arguments = forward_arguments;
  bfloat16 q[sizes::rows * Dim];
  bfloat16 k[sizes::stages][sizes::stream * Dim];
  bfloat16 v[sizes::stages][sizes::stream * Dim];
  barrier q_full, q_empty, k_full[sizes::stages], k_empty[sizes::stages], v_full[sizes::stages],
      v_empty[sizes::stages];
  attention_tile tile;

  __device__ void init_barriers() {
    constexpr int warps = sizes::warpgroups * 4;
    init(q_full, 1);
    init(q_empty, warps * 32);
    for (int i = 0; i < sizes::stages; ++i) {
      init(k_full[i], 1);
      init(k_empty[i], warps);
      init(v_full[i], 1);
      init(v_empty[i], warps);
    }
  }
};

#if SUPEROFFLOAD_HOPPER

template <int Dim>
__device__ __forceinline__ void copies(forward_arguments const& p, forward_memory<Dim>& memory) {
  using sizes = forward_sizes<Dim>;
  constexpr int piece_bytes = sizeof(memory.k[0]);
  auto const& s = p.a.shape;
  bool const leader = threadIdx.x % 32 == 0;
  if (leader) {
    prefetch(p.qkv);
  }
  attention_tiles tiles{s, s.heads, sizes::rows, most_work::last};
  ring_position<sizes::stages> at_stage;
  for (int parity = 0;; parity ^= 1) {
    auto const at = tiles.next();
    if (at.head < 0) {
      wait(memory.q_empty, parity ^ 1);
      if (leader) {
        memory.tile = at;
        arrive(memory.q_full);
      }
      return;
    }
    key_range const keys{s, at, sizes::rows, sizes::stream};
    auto const k_head = s.heads + at.head / (s.heads / s.kv_heads);
    auto const row = static_cast<int>(at.start);
    for (int i = keys.end - 1; i >= keys.begin; --i, at_stage.advance()) {
      auto const stage = at_stage.stage;
      wait(memory.k_empty[stage], at_stage.parity ^ 1);
      if (leader) {
        arrive_with(memory.k_full[stage], piece_bytes);
        copy_rows<sizes::stream, Dim>(p.qkv, k_head, row + i * sizes::stream, memory.k[stage],
                                      memory.k_full[stage]);
      }
      if (i == keys.end - 1) {
        wait(memory.q_empty, parity ^ 1);
        if (leader) {
          memory.tile = at;
          arrive_with(memory.q_full, sizeof(memory.q));
          copy_rows<sizes::rows, Dim>(p.qkv, at.head, row + at.first, memory.q, memory.q_full);
        }
      }
      wait(memory.v_empty[stage], at_stage.parity ^ 1);
      if (leader) {
        arrive_with(memory.v_full[stage], piece_bytes);
        copy_rows<sizes::stream, Dim>(p.qkv, k_head + s.kv_heads, row + i * sizes::stream, memory.v[stage],
                                      memory.v_full[stage]);
      }
    }
  }
}

/// The running softmax of a thread's two rows.
struct running_softmax {
  float highest[2], total[2];  ///< of all columns, of this thread's columns
  float correction[2];         ///< of what was summed before the last step

  __device__ running_softmax(bfloat16 const* sink, float scale) {
    bool const counts = threadIdx.x % 4 == 0;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      highest[r] = sink != nullptr ? widen(*sink) / scale : -std::numeric_limits<float>::infinity();
      total[r] = sink != nullptr && counts ? 1.0F : 0.0F;
    }
  }

  __device__ __forceinline__ float row_total(int r) const {
    auto sum = total[r];
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
    sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
    return sum;
  }
  /// Scores become weights relative to the highest so far.
  template <int N>
  __device__ __forceinline__ void step(float (&p)[N][4], float scale_log2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float top[2] = {highest[r], p[0][2 * r]};
#pragma unroll
      for (int i = 0; i < N; ++i) {
        top[0] = fmaxf(top[0], p[i][2 * r]);
        top[1] = fmaxf(top[1], p[i][2 * r + 1]);
      }
      top[0] = fmaxf(top[0], top[1]);
      top[0] = fmaxf(top[0], __shfl_xor_sync(0xFFFFFFFFU, top[0], 1));
      top[0] = fmaxf(top[0], __shfl_xor_sync(0xFFFFFFFFU, top[0], 2));
      auto const shift = top[0] == -std::numeric_limits<float>::infinity() ? 0.0F : top[0] * scale_log2;
      correction[r] = flash::power_of_two(highest[r] * scale_log2 - shift);
      highest[r] = top[0];
      total[r] *= correction[r];
#pragma unroll
      for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int j = 2 * r; j < 2 * r + 2; ++j) {
          p[i][j] = flash::power_of_two(p[i][j] * scale_log2 - shift);
          total[r] += p[i][j];
        }
      }
    }
  }
};

template <int N>
__device__ __forceinline__ void mask(float (&p)[N][4], attention_mask const& visible, int query,
                                     int first_key) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (visible.hides(query + j / 2 * 8, first_key + i * 8 + j % 2)) {
        p[i][j] = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

/// What a warpgroup keeps in registers: it multiplies the scores of one piece of keys while it weighs the
/// values of the piece before.
template <int Dim>
struct forward_pipeline {
  using sizes = forward_sizes<Dim>;
  static constexpr int stream = sizes::stream;
  static constexpr int piece_bytes = sizeof(forward_memory<Dim>::k[0]);

  forward_memory<Dim>& memory;
  attention_mask visible;
  float scale_log2;
  std::uint64_t q, k, v;
  gemm_turns<sizes::turns> turns;
  ring_position<sizes::stages> at_stage;
  ring_position<sizes::stages> before;  ///< where the values are that `rounded` belongs to
  float sums[Dim / 8][4], weights[stream / 8][4];
  unsigned rounded[stream / 16][4];

  __device__ __forceinline__ forward_pipeline(kernel::attention_shape const& s, forward_memory<Dim>& m,
                                              int warpgroup)
      : memory{m},
        visible{s},
        scale_log2{static_cast<float>(s.scale * 1.4426950408889634)},
        q{operand(m.q + warpgroup * warpgroup_rows * box_columns, 0)},
        k{operand(m.k, 0)},
        v{operand(m.v, stream * box_columns * static_cast<int>(sizeof(bfloat16)))},
        turns{warpgroup} {}

  /// Passes pieces over of which no query here sees a key; returns the first piece of another kind.
  __device__ __forceinline__ int skip_unseen(int piece, int last_query) {
    for (; piece * stream > last_query; --piece, at_stage.advance()) {
      wait(memory.k_full[at_stage.stage], at_stage.parity);
      wait(memory.v_full[at_stage.stage], at_stage.parity);
      release(memory.k_empty[at_stage.stage]);
      release(memory.v_empty[at_stage.stage]);
    }
    return piece;
  }
  __device__ __forceinline__ void start_scores() {
    begin_gemms();
    scores<Dim, sizes::rows>(weights, q, ahead(k, at_stage.stage * piece_bytes));
    end_gemms();
  }
  __device__ __forceinline__ void start_values() {
    begin_gemms();
    weigh(sums, rounded, ahead(v, before.stage * piece_bytes));
    end_gemms();
  }
  /// Scores become weights. Then this waits for the keys of the next piece, `piece` - 1. Its caller waits for
  /// a GEMM only afterwards: this wait is a branch, behind which the compiler does not move the softmax.
  __device__ __forceinline__ void weigh_keys(running_softmax& softmax, thread_rows const& rows, int piece,
                                             int first_piece) {
    pin(weights);
    release(memory.k_empty[at_stage.stage]);
    auto const first_key = piece * stream;
    if (!visible.hides_none(rows.first, rows.first + warpgroup_rows - 1, first_key, first_key + stream - 1)) {
      mask(weights, visible, rows.row, first_key + static_cast<int>(threadIdx.x) % 4 * 2);
    }
    softmax.step(weights, scale_log2);
    auto next = at_stage;
    next.advance();
    if (piece - 1 >= first_piece) {
      wait(memory.k_full[next.stage], next.parity);
    }
  }

  __device__ __forceinline__ void first_step(running_softmax& softmax, thread_rows const& rows, int piece,
                                             int first_piece) {
    wait(memory.k_full[at_stage.stage], at_stage.parity);
    turns.wait();
    start_scores();
    turns.pass();
    clear(sums);
    wait_for_gemms<0>();
    weigh_keys(softmax, rows, piece, first_piece);
    round_to(rounded, weights);
    before = at_stage;
  }
  __device__ __forceinline__ void step(running_softmax& softmax, thread_rows const& rows, int piece,
                                       int first_piece) {
    at_stage.advance();
    pin(rounded);
    pin(sums);
    turns.wait();
    start_scores();
    wait(memory.v_full[before.stage], before.parity);
    start_values();
    turns.pass();
    wait_for_gemms<1>();
    weigh_keys(softmax, rows, piece, first_piece);
    wait_for_gemms<0>();
    pin(sums);
    release(memory.v_empty[before.stage]);
    round_to(rounded, weights);
#pragma unroll
    for (int c = 0; c < Dim / 8; ++c) {
#pragma unroll
      for (int j = 0; j < 4; ++j) { sums[c][j] *= softmax.correction[j / 2]; }
    }
    before = at_stage;
  }
  __device__ __forceinline__ void start_last_values() {
    at_stage.advance();
    arrive(memory.q_empty);
    wait(memory.v_full[before.stage], before.parity);
    pin(rounded);
    pin(sums);
    start_values();
  }
};

template <int Dim>
__device__ __forceinline__ void products(forward_arguments const& p, forward_memory<Dim>& memory,
                                         int warpgroup) {
  using sizes = forward_sizes<Dim>;
  auto const& s = p.a.shape;
  auto const scale = static_cast<float>(s.scale);
  forward_pipeline<Dim> pipeline{s, memory, warpgroup};
  for (int parity = 0;; parity ^= 1) {
    wait(memory.q_full, parity);
    thread_rows const rows{memory.tile, warpgroup};
    auto const& at = rows.at;
    if (at.head < 0) {
      return;
    }
    key_range const keys{s, at, sizes::rows, sizes::stream};
    int i = keys.end - 1;
    if constexpr (sizes::rows > sizes::stream) {
      i = pipeline.skip_unseen(i, rows.first + warpgroup_rows - 1);
    }
    running_softmax softmax{p.a.sinks != nullptr ? p.a.sinks + at.head : nullptr, scale};
    pipeline.first_step(softmax, rows, i, keys.begin);
    for (--i; i >= keys.begin; --i) { pipeline.step(softmax, rows, i, keys.begin); }
    pipeline.start_last_values();
    float factor[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      auto const total = softmax.row_total(r);
      factor[r] = 1.0F / total;
      if (threadIdx.x % 4 == 0 && rows.row + r * 8 < at.length) {
        p.a.log_sum_exp[at.head * s.rows + at.start + rows.row + r * 8] =
            softmax.highest[r] * scale + logf(total);
      }
    }
    wait_for_gemms<0>();
    pin(pipeline.sums);
    release(memory.v_empty[pipeline.before.stage]);
    write(pipeline.sums, factor, [&](int r) -> bfloat16* {
      auto const row = rows.row + r * 8;
      return row < at.length ? p.a.out + ((at.start + row) * s.heads + at.head) * Dim : nullptr;
    });
  }
}

#endif

template <int Dim>
bool run(stream& on, kernel::attention_forward<bfloat16> const& a) {
  using memory = forward_memory<Dim>;
  static bool const there = compiled_for_hopper<memory>();
  if (!there) {
    return false;
  }
  auto const& s = a.shape;
  if (s.rows > 0) {
    start_tiles<memory>(on, s, s.heads, {a, map_of(on, a.qkv, s.rows, s.heads + 2 * s.kv_heads, Dim)});
  }
  return true;
}

}  // namespace superoffload::cuda::kernels::hopper
