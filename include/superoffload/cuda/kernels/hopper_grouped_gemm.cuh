// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/grouped_gemm.cuh>
#include <superoffload/cuda/kernels/hopper_attention.cuh>

/// Products by group on Hopper's matrix units. A block stays on its multiprocessor and goes from tile to tile
/// of 128 x 256; one thread starts all copies to shared memory, each of two warpgroups owns 64 rows of the
/// tile.
namespace superoffload::cuda::kernels::hopper {

struct grouped_sizes {
  static constexpr int warpgroups = 2;
  static constexpr int rows = warpgroups * warpgroup_rows;
  static constexpr int columns = 256;
  static constexpr int depth = 64;  ///< of what is copied at a time
  static constexpr int stages = 4;
  static constexpr int threads = attention_block<warpgroups>;
};

/// A tile of a result: `first` and `column` are counted in the result of its group, a sum over `depth` rows
/// or columns.
struct grouped_tile_place {
  int group;  ///< negative: there are no more tiles
  int start, rows;
  int first, column;
  int depth;
};

/// Where tiles lie and what they are made of, for the GEMMs of rows. An operand that lies by columns has what
/// is summed over below each other in memory, so that a box of it is 64 of these rows and 64 of the tile's.
template <bool TransposeB>
struct grouped_rows {
  using product = kernel::grouped_gemm<bfloat16>;
  using out = bfloat16;
  static constexpr bool a_by_columns = false, b_by_columns = !TransposeB;

  product const& g;
  int across;
  group_tiles tiles;

  __device__ explicit grouped_rows(product const& p)
      : g{p},
        across{static_cast<int>(pieces_of(p.n, grouped_sizes::columns))},
        tiles{p.of, grouped_sizes::rows} {}

  __device__ grouped_tile_place at(int number) {
    auto const p = tiles.at(number, across);
    return {p.group, p.start, p.rows, p.first, p.across * grouped_sizes::columns, static_cast<int>(g.k)};
  }
  __device__ int a_row(grouped_tile_place const& at) const { return at.start + at.first; }
  __device__ int b_row(grouped_tile_place const& at) const {
    return TransposeB ? at.group * static_cast<int>(g.n) + at.column : at.group * static_cast<int>(g.k);
  }
  /// Rows of the group's result, and where one begins.
  __device__ int rows(grouped_tile_place const& at) const { return at.rows; }
  __device__ int64_t row(grouped_tile_place const& at, int row) const {
    return static_cast<int64_t>(at.start) + row;
  }
  __device__ static constexpr bool accumulates() { return false; }
  __device__ bfloat16 const* bias(grouped_tile_place const& at) const {
    return g.bias == nullptr ? nullptr : g.bias + at.group * g.n;
  }
};

template <class Out>
struct grouped_weights {
  using product = kernel::grouped_outer<bfloat16, Out>;
  using out = Out;
  static constexpr bool a_by_columns = true, b_by_columns = true;

  product const& g;
  int down, across;

  __device__ explicit grouped_weights(product const& p)
      : g{p},
        down{static_cast<int>(pieces_of(p.m, grouped_sizes::rows))},
        across{static_cast<int>(pieces_of(p.n, grouped_sizes::columns))} {}

  __device__ grouped_tile_place at(int number) const {
    auto const group = number / (down * across);
    if (group >= g.of.groups) {
      return {-1, 0, 0, 0, 0, 0};
    }
    auto const own = number - group * (down * across);
    auto const start = g.of.starts[group];
    auto const rows = g.of.starts[group + 1] - start;
    return {group, start, rows, own % down * grouped_sizes::rows, own / down * grouped_sizes::columns, rows};
  }
  __device__ int a_row(grouped_tile_place const& at) const { return at.start; }
  __device__ int b_row(grouped_tile_place const& at) const { return at.start; }
  __device__ int rows(grouped_tile_place const&) const { return static_cast<int>(g.m); }
  __device__ int64_t row(grouped_tile_place const& at, int row) const { return at.group * g.m + row; }
  __device__ bool accumulates() const { return g.accumulate; }
  __device__ static constexpr bfloat16 const* bias(grouped_tile_place const&) { return nullptr; }
};

template <class Tiles>
struct grouped_arguments {
  typename Tiles::product g;
  CUtensorMap a, b;
};

template <class Tiles>
struct alignas(1024) grouped_memory {
  using sizes = grouped_sizes;
  using arguments = grouped_arguments<Tiles>;
  struct stage {
    bfloat16 a[sizes::rows * sizes::depth];
    bfloat16 b[sizes::columns * sizes::depth];
  };
  stage stages[sizes::stages];
  barrier full[sizes::stages], empty[sizes::stages];

  __device__ void init_barriers() {
    for (int i = 0; i < sizes::stages; ++i) {
      init(full[i], 1);
      init(empty[i], sizes::warpgroups * 4);
    }
  }
};

#if SUPEROFFLOAD_HOPPER

/// Starts to copy `Boxes` boxes of 64 x 64 of one operand, from `at` on in what is summed over.
template <bool ByColumns, int Boxes>
__device__ __forceinline__ void copy_operand(CUtensorMap const& map, int row, int first, int at, bfloat16* to,
                                             barrier& b) {
#pragma unroll
  for (int i = 0; i < Boxes; ++i) {
    auto* const box = to + i * box_rows * box_columns;
    if constexpr (ByColumns) {
      copy_box(map, first + i * box_columns, 0, row + at, box, b);
    } else {
      copy_box(map, at, 0, row + i * box_rows, box, b);
    }
  }
}

template <class Tiles>
__device__ __forceinline__ void copies(grouped_arguments<Tiles> const& p, grouped_memory<Tiles>& memory) {
  using sizes = grouped_sizes;
  if (threadIdx.x != 0) {
    return;
  }
  prefetch(p.a);
  prefetch(p.b);
  Tiles tiles{p.g};
  ring_position<sizes::stages> at_stage;
  for (auto number = static_cast<int>(blockIdx.x);; number += static_cast<int>(gridDim.x)) {
    auto const at = tiles.at(number);
    if (at.group < 0) {
      return;
    }
    auto const a_row = tiles.a_row(at), b_row = tiles.b_row(at);
    for (int from = 0; from < at.depth; from += sizes::depth, at_stage.advance()) {
      auto& stage = memory.stages[at_stage.stage];
      auto& full = memory.full[at_stage.stage];
      wait(memory.empty[at_stage.stage], at_stage.parity ^ 1);
      arrive_with(full, sizeof(stage));
      copy_operand<Tiles::a_by_columns, sizes::rows / box_rows>(p.a, a_row, at.first, from, stage.a, full);
      copy_operand<Tiles::b_by_columns, sizes::columns / box_rows>(p.b, b_row, at.column, from, stage.b,
                                                                   full);
    }
  }
}

/// Rows [first, 64) of every box of a stage become zeros, by all warpgroups that compute: what follows in
/// memory is another group's.
template <class Stage>
__device__ void clear_behind(Stage& stage, int first, int warpgroup) {
  constexpr int words = box_columns * sizeof(bfloat16) / sizeof(uint4);
  constexpr int box_words = box_rows * words;
  constexpr int boxes = sizeof(Stage) / sizeof(uint4) / box_words;
  constexpr int threads = grouped_sizes::warpgroups * warpgroup_threads;
  int const own = warpgroup * warpgroup_threads + static_cast<int>(threadIdx.x) % warpgroup_threads;
  auto* const memory = reinterpret_cast<uint4*>(&stage);
  int const cleared = (box_rows - first) * words;
  for (int i = own; i < boxes * cleared; i += threads) {
    memory[i / cleared * box_words + first * words + i % cleared] = uint4{0, 0, 0, 0};
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync 1, %0;" ::"n"(threads) : "memory");
}

/// Adds to a thread's sums what the result begins with, and stores them.
template <class Tiles>
__device__ __forceinline__ void finish(Tiles const& tiles, grouped_tile_place const& at, int first,
                                       float (&sums)[grouped_sizes::columns / 8][4]) {
  using Out = typename Tiles::out;
  constexpr int chunks = grouped_sizes::columns / 8;
  int const lane = static_cast<int>(threadIdx.x) % 4;
  auto const n = static_cast<int>(tiles.g.n);
  if (auto const* const bias = tiles.bias(at)) {
#pragma unroll
    for (int i = 0; i < chunks; ++i) {
      auto const column = at.column + i * 8 + lane * 2;
      if (column < n) {
#pragma unroll
        for (int j = 0; j < 4; ++j) { sums[i][j] += widen(bias[column + j % 2]); }
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    int const row = first + r * 8;
    bool const there = row < tiles.rows(at);
    auto* const to = tiles.g.c + tiles.row(at, row) * n + at.column;
    if (there && tiles.accumulates()) {
#pragma unroll
      for (int i = 0; i < chunks; ++i) {
        auto const column = i * 8 + lane * 2;
        if (at.column + column < n) {
          sums[i][2 * r] += widen(to[column]);
          sums[i][2 * r + 1] += widen(to[column + 1]);
        }
      }
    }
    if constexpr (std::is_same_v<Out, bfloat16>) {
#pragma unroll
      for (int i = 0; i < chunks; i += 4) {
        auto const chunk = exchanged_chunk(sums, i, r, 1.0F);
        auto const column = (i + lane) * 8;
        if (there && at.column + column < n) {
          *reinterpret_cast<uint4*>(to + column) = chunk;
        }
      }
    } else {
#pragma unroll
      for (int i = 0; i < chunks; ++i) {
        auto const column = i * 8 + lane * 2;
        if (there && at.column + column < n) {
          *reinterpret_cast<float2*>(to + column) = {sums[i][2 * r], sums[i][2 * r + 1]};
        }
      }
    }
  }
}

template <class Tiles>
__device__ __forceinline__ void products(grouped_arguments<Tiles> const& p, grouped_memory<Tiles>& memory,
                                         int warpgroup) {
  using sizes = grouped_sizes;
  constexpr int box_bytes = box_rows * box_columns * sizeof(bfloat16);
  constexpr int stage_bytes = sizeof(memory.stages[0]);
  constexpr int by_rows = 16 * sizeof(bfloat16), by_columns = 16 * box_columns * sizeof(bfloat16);
  constexpr int a_step = Tiles::a_by_columns ? by_columns : by_rows;
  constexpr int b_step = Tiles::b_by_columns ? by_columns : by_rows;
  int const first_of_thread = warpgroup * warpgroup_rows +
                              static_cast<int>(threadIdx.x) % warpgroup_threads / 32 * 16 +
                              static_cast<int>(threadIdx.x) % 32 / 4;
  auto const a_first = operand(memory.stages[0].a + warpgroup * box_rows * box_columns, 0);
  auto const b_first = operand(memory.stages[0].b, Tiles::b_by_columns ? box_bytes : 0);
  Tiles tiles{p.g};
  ring_position<sizes::stages> at_stage;
  float sums[sizes::columns / 8][4];
  for (auto number = static_cast<int>(blockIdx.x);; number += static_cast<int>(gridDim.x)) {
    auto const at = tiles.at(number);
    if (at.group < 0) {
      return;
    }
#pragma unroll
    for (int i = 0; i < sizes::columns / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) { sums[i][j] = 0; }
    }
    int before = -1;  // the stage whose GEMMs are under way
    for (int from = 0; from < at.depth; from += sizes::depth, at_stage.advance()) {
      wait(memory.full[at_stage.stage], at_stage.parity);
      if constexpr (Tiles::a_by_columns) {
        if (at.depth - from < sizes::depth) {
          clear_behind(memory.stages[at_stage.stage], at.depth - from, warpgroup);
        }
      }
      auto const a = ahead(a_first, at_stage.stage * stage_bytes);
      auto const b = ahead(b_first, at_stage.stage * stage_bytes);
      pin(sums);
      begin_gemms();
#pragma unroll
      for (int k = 0; k < sizes::depth / 16; ++k) {
        multiply_stored<Tiles::a_by_columns, Tiles::b_by_columns>(sums, ahead(a, k * a_step),
                                                                  ahead(b, k * b_step));
      }
      end_gemms();
      if (before >= 0) {
        wait_for_gemms<1>();
        release(memory.empty[before]);
      }
      before = at_stage.stage;
    }
    wait_for_gemms<0>();
    pin(sums);
    if (before >= 0) {
      release(memory.empty[before]);
    }
    finish(tiles, at, at.first + first_of_thread, sums);
  }
}

#endif

template <class Tiles>
bool run_grouped(stream& on, typename Tiles::product const& g, int64_t tiles, CUtensorMap const& a,
                 CUtensorMap const& b) {
  using memory = grouped_memory<Tiles>;
  if (tiles > 0x3FFFFFFF) {
    return false;
  }
  start(on, tiles_kernel<memory>, std::min<int64_t>(tiles, multiprocessors(on)), grouped_sizes::threads,
        sizeof(memory), {g, a, b});
  return true;
}

/// Rows are copied 16 bytes at a time, and boxes are full or end with the matrix.
template <class... Operand>
bool serves_grouped(int64_t columns, int64_t more_columns, int64_t longest, Operand const*... operands) {
  return ((reinterpret_cast<std::uintptr_t>(operands) % 16 == 0) && ...) && columns % 8 == 0 &&
         more_columns % 8 == 0 && columns >= box_columns && more_columns >= box_columns &&
         longest <= 0x7FFFFFFF;
}

inline bool run(stream& on, kernel::grouped_gemm<bfloat16> const& g) {
  using by_rows = grouped_rows<true>;
  using by_columns = grouped_rows<false>;
  static bool const there = compiled_for_hopper<grouped_memory<by_rows>>();
  auto const& of = g.of;
  auto const weight_rows = of.groups * (g.transpose_b ? g.n : g.k);
  if (!there || g.k % grouped_sizes::depth != 0 ||
      !serves_grouped(g.n, g.k, std::max(of.rows, weight_rows), g.a, g.b, g.c)) {
    return false;
  }
  auto const tiles = (of.rows / grouped_sizes::rows + of.groups) * pieces_of(g.n, grouped_sizes::columns);
  auto const a = map_of(on, g.a, of.rows, 1, g.k);
  auto const b = map_of(on, g.b, weight_rows, 1, g.transpose_b ? g.k : g.n);
  return g.transpose_b ? run_grouped<by_rows>(on, g, tiles, a, b)
                       : run_grouped<by_columns>(on, g, tiles, a, b);
}

template <class Out>
bool run(stream& on, kernel::grouped_outer<bfloat16, Out> const& g) {
  using weights = grouped_weights<Out>;
  static bool const there = compiled_for_hopper<grouped_memory<weights>>();
  if (!there || g.of.rows == 0 || !serves_grouped(g.m, g.n, g.of.rows, g.a, g.b, g.c)) {
    return false;
  }
  auto const tiles =
      g.of.groups * pieces_of(g.m, grouped_sizes::rows) * pieces_of(g.n, grouped_sizes::columns);
  return run_grouped<weights>(on, g, tiles, map_of(on, g.a, g.of.rows, 1, g.m),
                              map_of(on, g.b, g.of.rows, 1, g.n));
}

}  // namespace superoffload::cuda::kernels::hopper
