// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/hopper_attention.cuh>

/// Queries, and keys with values, have a kernel each: scores are computed twice, but every gradient has one
/// writer that adds in a fixed order.
namespace superoffload::cuda::kernels::hopper {

struct backward_arguments {
  kernel::attention_backward<bfloat16> a;
  CUtensorMap qkv, d_out;
};

template <int Dim>
struct d_query_sizes {
  static constexpr int warpgroups = 2;
  static constexpr int rows = warpgroups * warpgroup_rows;
  static constexpr int stream = 128;
  static constexpr int stages = 2;
  static constexpr int threads = attention_block<warpgroups>;
};

template <int Dim>
struct alignas(1024) d_query_memory {
  using sizes = d_query_sizes<Dim>;
  using arguments = backward_arguments;
  bfloat16 q[sizes::rows * Dim], d_out[sizes::rows * Dim];
  bfloat16 k[sizes::stages][sizes::stream * Dim];
  bfloat16 v[sizes::stages][sizes::stream * Dim];
  barrier own_full, own_empty, k_full[sizes::stages], k_empty[sizes::stages], v_full[sizes::stages],
      v_empty[sizes::stages];
  attention_tile tile;

  __device__ void init_barriers() {
    constexpr int warps = sizes::warpgroups * 4;
    init(own_full, 1);
    init(own_empty, warps * 32);
    for (int i = 0; i < sizes::stages; ++i) {
      init(k_full[i], 1);
      init(k_empty[i], warps);
      init(v_full[i], 1);
      init(v_empty[i], warps);
    }
  }
};

template <int Dim>
struct d_key_sizes {
  static constexpr int warpgroups = 2;
  static constexpr int rows = warpgroups * warpgroup_rows;
  static constexpr int stream = 64;
  static constexpr int stages = 4;
  static constexpr int threads = attention_block<warpgroups>;
};

template <int Dim>
struct alignas(1024) d_key_memory {
  using sizes = d_key_sizes<Dim>;
  using arguments = backward_arguments;
  bfloat16 k[sizes::rows * Dim], v[sizes::rows * Dim];
  bfloat16 q[sizes::stages][sizes::stream * Dim];
  bfloat16 d_out[sizes::stages][sizes::stream * Dim];
  float log_sum[sizes::stages][sizes::stream], delta[sizes::stages][sizes::stream];
  barrier own_full, own_empty, full[sizes::stages], empty[sizes::stages];
  attention_tile tile;

  __device__ void init_barriers() {
    constexpr int warps = sizes::warpgroups * 4;
    init(own_full, 1);
    init(own_empty, warps * 32);
    for (int i = 0; i < sizes::stages; ++i) {
      init(full[i], 32);
      init(empty[i], warps * 32);
    }
  }
};

/// Queries that see keys of a tile.
struct query_range {
  int begin, end;
  __device__ query_range(kernel::attention_shape const& s, attention_tile const& at, int rows)
      : begin{at.first},
        end{s.window > 0 ? min(min(at.first + rows, at.length) - 1 + s.window, at.length) : at.length} {}
};

#if SUPEROFFLOAD_HOPPER

using flash::log2_e;

template <int Dim>
__device__ __forceinline__ void copies(backward_arguments const& p, d_query_memory<Dim>& memory) {
  using sizes = d_query_sizes<Dim>;
  constexpr int piece_bytes = sizeof(memory.k[0]);
  auto const& s = p.a.shape;
  bool const leader = threadIdx.x % 32 == 0;
  if (leader) {
    prefetch(p.qkv);
    prefetch(p.d_out);
  }
  attention_tiles tiles{s, s.heads, sizes::rows, most_work::last};
  ring_position<sizes::stages> at_stage;
  for (int parity = 0;; parity ^= 1) {
    auto const at = tiles.next();
    wait(memory.own_empty, parity ^ 1);
    if (at.head < 0) {
      if (leader) {
        memory.tile = at;
        arrive(memory.own_full);
      }
      return;
    }
    auto const row = static_cast<int>(at.start);
    if (leader) {
      memory.tile = at;
      arrive_with(memory.own_full, sizeof(memory.q) + sizeof(memory.d_out));
      copy_rows<sizes::rows, Dim>(p.qkv, at.head, row + at.first, memory.q, memory.own_full);
      copy_rows<sizes::rows, Dim>(p.d_out, at.head, row + at.first, memory.d_out, memory.own_full);
    }
    key_range const keys{s, at, sizes::rows, sizes::stream};
    auto const k_head = s.heads + at.head / (s.heads / s.kv_heads);
    for (int i = keys.end - 1; i >= keys.begin; --i, at_stage.advance()) {
      auto const stage = at_stage.stage;
      wait(memory.k_empty[stage], at_stage.parity ^ 1);
      if (leader) {
        arrive_with(memory.k_full[stage], piece_bytes);
        copy_rows<sizes::stream, Dim>(p.qkv, k_head, row + i * sizes::stream, memory.k[stage],
                                      memory.k_full[stage]);
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

/// What a warpgroup keeps in registers for the gradients of its queries.
template <int Dim>
struct d_query_pipeline {
  using sizes = d_query_sizes<Dim>;
  static constexpr int stream = sizes::stream;
  static constexpr int box_row = box_columns * sizeof(bfloat16);
  static constexpr int piece_bytes = sizeof(d_query_memory<Dim>::k[0]);

  d_query_memory<Dim>& memory;
  attention_mask visible;
  float scale;
  std::uint64_t q, d_out, k, v;
  ring_position<sizes::stages> at_stage;
  int before;  ///< the stage of the keys that the last GEMM into sums reads, negative for none
  float sums[Dim / 8][4], weights[stream / 8][4], d_weights[stream / 8][4];
  unsigned d_scores[stream / 16][4];

  __device__ __forceinline__ d_query_pipeline(kernel::attention_shape const& s, d_query_memory<Dim>& m,
                                              int warpgroup)
      : memory{m},
        visible{s},
        scale{static_cast<float>(s.scale)},
        q{operand(m.q + warpgroup * warpgroup_rows * box_columns, 0)},
        d_out{operand(m.d_out + warpgroup * warpgroup_rows * box_columns, 0)},
        k{operand(m.k, stream * box_row)},
        v{operand(m.v, stream * box_row)} {}

  __device__ __forceinline__ void begin() {
    clear(sums);
    before = -1;
  }
  __device__ __forceinline__ void start_scores(int stage) {
    wait(memory.k_full[stage], at_stage.parity);
    begin_gemms();
    scores<Dim, sizes::rows>(weights, q, ahead(k, stage * piece_bytes));
    end_gemms();
    wait_for_gemms<1>();
    pin(sums);
    if (before >= 0) {
      release(memory.k_empty[before]);
    }
    wait(memory.v_full[stage], at_stage.parity);
    begin_gemms();
    scores<Dim, sizes::rows>(d_weights, d_out, ahead(v, stage * piece_bytes));
    end_gemms();
  }
  /// Scores become weights.
  __device__ __forceinline__ void weigh_keys(flash::query_statistics const& of_queries,
                                             thread_rows const& rows, int first_key) {
    int const lane = static_cast<int>(threadIdx.x) % 32;
    bool const whole =
        visible.hides_none(rows.first, rows.first + warpgroup_rows - 1, first_key, first_key + stream - 1);
#pragma unroll
    for (int c = 0; c < stream / 8; ++c) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        weights[c][j] = flash::power_of_two(weights[c][j] * (scale * log2_e) - of_queries.log_sum[j / 2]);
      }
    }
    if (!whole) {
#pragma unroll
      for (int c = 0; c < stream / 8; ++c) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (visible.hides(rows.row + j / 2 * 8, first_key + c * 8 + lane % 4 * 2 + j % 2)) {
            weights[c][j] = 0;
          }
        }
      }
    }
  }
  /// `last`: the tile has no further piece.
  __device__ __forceinline__ void step(flash::query_statistics const& of_queries, thread_rows const& rows,
                                       int piece, bool last) {
    auto const stage = at_stage.stage;
    start_scores(stage);
    wait_for_gemms<1>();
    pin(weights);
    weigh_keys(of_queries, rows, piece * stream);
    wait_for_gemms<0>();
    pin(d_weights);
    release(memory.v_empty[stage]);
    if (last) {
      arrive(memory.own_empty);
    }
#pragma unroll
    for (int c = 0; c < stream / 8; ++c) {
#pragma unroll
      for (int j = 0; j < 4; ++j) { weights[c][j] *= d_weights[c][j] - of_queries.delta[j / 2]; }
    }
    round_to(d_scores, weights);
    pin(d_scores);
    pin(sums);
    begin_gemms();
    weigh(sums, d_scores, ahead(k, stage * piece_bytes));
    end_gemms();
    before = stage;
    at_stage.advance();
  }
  __device__ __forceinline__ void finish() {
    wait_for_gemms<0>();
    pin(sums);
    release(memory.k_empty[before]);
  }
};

template <int Dim>
__device__ __forceinline__ void products(backward_arguments const& p, d_query_memory<Dim>& memory,
                                         int warpgroup) {
  using sizes = d_query_sizes<Dim>;
  auto const& s = p.a.shape;
  d_query_pipeline<Dim> pipeline{s, memory, warpgroup};
  for (int parity = 0;; parity ^= 1) {
    wait(memory.own_full, parity);
    thread_rows const rows{memory.tile, warpgroup};
    auto const& at = rows.at;
    if (at.head < 0) {
      return;
    }
    key_range const keys{s, at, sizes::rows, sizes::stream};
    flash::query_statistics const of_queries{p.a, at, rows.row};
    pipeline.begin();
    for (int i = keys.end - 1; i >= keys.begin; --i) { pipeline.step(of_queries, rows, i, i == keys.begin); }
    pipeline.finish();
    write(pipeline.sums, {pipeline.scale, pipeline.scale}, [&](int r) -> bfloat16* {
      auto const row = rows.row + r * 8;
      return row < at.length
                 ? p.a.d_qkv + (at.start + row) * s.qkv_columns() + static_cast<int64_t>(at.head) * Dim
                 : nullptr;
    });
  }
}

template <int Dim>
__device__ __forceinline__ void copies(backward_arguments const& p, d_key_memory<Dim>& memory) {
  using sizes = d_key_sizes<Dim>;
  constexpr int stream = sizes::stream;
  auto const& s = p.a.shape;
  int const lane = static_cast<int>(threadIdx.x) % 32;
  bool const leader = lane == 0;
  if (leader) {
    prefetch(p.qkv);
    prefetch(p.d_out);
  }
  int const group = s.heads / s.kv_heads;
  attention_tiles tiles{s, s.kv_heads, sizes::rows, most_work::first};
  ring_position<sizes::stages> at_stage;
  for (int parity = 0;; parity ^= 1) {
    auto const at = tiles.next();
    wait(memory.own_empty, parity ^ 1);
    if (at.head < 0) {
      if (leader) {
        memory.tile = at;
        arrive(memory.own_full);
      }
      return;
    }
    auto const row = static_cast<int>(at.start);
    if (leader) {
      memory.tile = at;
      arrive_with(memory.own_full, sizeof(memory.k) + sizeof(memory.v));
      copy_rows<sizes::rows, Dim>(p.qkv, s.heads + at.head, row + at.first, memory.k, memory.own_full);
      copy_rows<sizes::rows, Dim>(p.qkv, s.heads + s.kv_heads + at.head, row + at.first, memory.v,
                                  memory.own_full);
    }
    query_range const queries{s, at, sizes::rows};
    for (int head = at.head * group; head < (at.head + 1) * group; ++head) {
      auto const statistics = head * s.rows + at.start;
      for (int from = queries.begin; from < queries.end; from += stream, at_stage.advance()) {
        auto const stage = at_stage.stage;
        float log_sum[stream / 32], delta[stream / 32];
#pragma unroll
        for (int i = 0; i < stream / 32; ++i) {
          auto const query = from + i * 32 + lane;
          bool const there = query < at.length;  // what is not gets no weight
          log_sum[i] =
              there ? p.a.log_sum_exp[statistics + query] * log2_e : std::numeric_limits<float>::infinity();
          delta[i] = there ? p.a.delta[statistics + query] : 0.0F;
        }
        wait(memory.empty[stage], at_stage.parity ^ 1);
#pragma unroll
        for (int i = 0; i < stream / 32; ++i) {
          memory.log_sum[stage][i * 32 + lane] = log_sum[i];
          memory.delta[stage][i * 32 + lane] = delta[i];
        }
        if (!leader) {
          arrive(memory.full[stage]);
        } else {
          arrive_with(memory.full[stage], sizeof(memory.q[0]) + sizeof(memory.d_out[0]));
          copy_rows<stream, Dim>(p.qkv, head, row + from, memory.q[stage], memory.full[stage]);
          copy_rows<stream, Dim>(p.d_out, head, row + from, memory.d_out[stage], memory.full[stage]);
        }
      }
    }
  }
}

/// What a warpgroup keeps in registers for the gradients of its keys and values. Scores are transposed: a row
/// is a key.
template <int Dim>
struct d_key_pipeline {
  using sizes = d_key_sizes<Dim>;
  static constexpr int stream = sizes::stream;
  static constexpr int box_row = box_columns * sizeof(bfloat16);
  static constexpr int piece_bytes = sizeof(d_key_memory<Dim>::q[0]);

  d_key_memory<Dim>& memory;
  attention_mask visible;
  float scale;
  std::uint64_t k, v, q_base, d_out_base;
  ring_position<sizes::stages> at_stage;
  int before;  ///< the stage that the last GEMMs into d_k and d_v read, negative for none
  gemm_turns<true> turns;
  float d_k[Dim / 8][4], d_v[Dim / 8][4], weights[stream / 8][4], d_weights[stream / 8][4];
  unsigned rounded[stream / 16][4], d_scores[stream / 16][4];

  __device__ __forceinline__ d_key_pipeline(kernel::attention_shape const& s, d_key_memory<Dim>& m,
                                            int warpgroup)
      : memory{m},
        visible{s},
        scale{static_cast<float>(s.scale)},
        k{operand(m.k + warpgroup * warpgroup_rows * box_columns, 0)},
        v{operand(m.v + warpgroup * warpgroup_rows * box_columns, 0)},
        q_base{operand(m.q, stream * box_row)},
        d_out_base{operand(m.d_out, stream * box_row)},
        turns{warpgroup} {}

  __device__ __forceinline__ void begin() {
    clear(d_k);
    clear(d_v);
    before = -1;
  }
  __device__ __forceinline__ void start_scores(std::uint64_t q, std::uint64_t d_out) {
    begin_gemms();
    scores<Dim, sizes::rows>(weights, k, q);
    end_gemms();
    scores<Dim, sizes::rows>(d_weights, v, d_out);
    end_gemms();
  }
  /// Scores become weights.
  __device__ __forceinline__ void weigh_queries(thread_rows const& rows, int from, int stage) {
    int const column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int c = 0; c < stream / 8; ++c) {
      auto const log_sum = *reinterpret_cast<float2 const*>(&memory.log_sum[stage][c * 8 + column]);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        weights[c][j] =
            flash::power_of_two(weights[c][j] * (scale * log2_e) - (j % 2 == 0 ? log_sum.x : log_sum.y));
      }
    }
    if (!visible.hides_none(from, from + stream - 1, rows.first, rows.first + warpgroup_rows - 1)) {
#pragma unroll
      for (int c = 0; c < stream / 8; ++c) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (visible.hides(from + c * 8 + column + j % 2, rows.row + j / 2 * 8)) {
            weights[c][j] = 0;
          }
        }
      }
    }
  }
  /// The gradients of weights become those of scores.
  __device__ __forceinline__ void differentiate(int stage) {
    int const column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int c = 0; c < stream / 8; ++c) {
      auto const delta = *reinterpret_cast<float2 const*>(&memory.delta[stage][c * 8 + column]);
#pragma unroll
      for (int j = 0; j < 4; ++j) { weights[c][j] *= d_weights[c][j] - (j % 2 == 0 ? delta.x : delta.y); }
    }
  }
  /// The queries from `from` on.
  __device__ __forceinline__ void step(thread_rows const& rows, int from) {
    auto const stage = at_stage.stage;
    wait(memory.full[stage], at_stage.parity);
    if (from + stream <= rows.first) {  // none of them sees a key of this warpgroup
      arrive(memory.empty[stage]);
      turns.wait();
      turns.pass();
      return;
    }
    auto const q = ahead(q_base, stage * piece_bytes);
    auto const d_out = ahead(d_out_base, stage * piece_bytes);
    turns.wait();
    start_scores(q, d_out);
    wait_for_gemms<1>();
    pin(weights);
    pin(d_k);
    if (before >= 0) {
      arrive(memory.empty[before]);
    }
    weigh_queries(rows, from, stage);
    round_to(rounded, weights);
    pin(rounded);
    pin(d_v);
    begin_gemms();
    weigh(d_v, rounded, d_out);
    end_gemms();
    turns.pass();
    wait_for_gemms<1>();
    pin(d_weights);
    differentiate(stage);
    round_to(d_scores, weights);
    pin(d_scores);
    pin(d_k);
    begin_gemms();
    weigh(d_k, d_scores, q);
    end_gemms();
    wait_for_gemms<1>();
    pin(d_v);
    before = stage;
  }
  __device__ __forceinline__ void finish() {
    wait_for_gemms<0>();
    pin(d_k);
    pin(d_v);
    arrive(memory.own_empty);
    if (before >= 0) {
      arrive(memory.empty[before]);
    }
  }
};

template <int Dim>
__device__ __forceinline__ void products(backward_arguments const& p, d_key_memory<Dim>& memory,
                                         int warpgroup) {
  using sizes = d_key_sizes<Dim>;
  auto const& s = p.a.shape;
  int const group = s.heads / s.kv_heads;
  d_key_pipeline<Dim> pipeline{s, memory, warpgroup};
  for (int parity = 0;; parity ^= 1) {
    wait(memory.own_full, parity);
    thread_rows const rows{memory.tile, warpgroup};
    auto const& at = rows.at;
    if (at.head < 0) {
      return;
    }
    query_range const queries{s, at, sizes::rows};
    pipeline.begin();
    for (int head = 0; head < group; ++head) {
      for (int from = queries.begin; from < queries.end; from += sizes::stream, pipeline.at_stage.advance()) {
        pipeline.step(rows, from);
      }
    }
    pipeline.finish();
    auto const row_of = [&](int64_t column) {
      return [&, column](int r) -> bfloat16* {
        auto const row = rows.row + r * 8;
        return row < at.length ? p.a.d_qkv + (at.start + row) * s.qkv_columns() + column * Dim : nullptr;
      };
    };
    write(pipeline.d_k, {pipeline.scale, pipeline.scale}, row_of(s.heads + at.head));
    write(pipeline.d_v, {1.0F, 1.0F}, row_of(s.heads + s.kv_heads + at.head));
  }
}

#endif

template <int Dim>
bool run(stream& on, kernel::attention_backward<bfloat16> const& a) {
  using of_queries = d_query_memory<Dim>;
  using of_keys = d_key_memory<Dim>;
  static bool const there = compiled_for_hopper<of_queries>();
  if (!there) {
    return false;
  }
  auto const& s = a.shape;
  if (s.rows > 0) {
    flash::run_delta<Dim>(on, a);
    backward_arguments const arguments{a, map_of(on, a.qkv, s.rows, s.heads + 2 * s.kv_heads, Dim),
                                       map_of(on, a.d_out, s.rows, s.heads, Dim)};
    start_tiles<of_queries>(on, s, s.heads, arguments);
    start_tiles<of_keys>(on, s, s.kv_heads, arguments);
  }
  return true;
}

}  // namespace superoffload::cuda::kernels::hopper
