// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/flash_attention.cuh>
#include <superoffload/cuda/kernels/warpgroup.cuh>

#include <algorithm>

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SUPEROFFLOAD_HOPPER 1
#else
#define SUPEROFFLOAD_HOPPER 0
#endif

/// What the kernels of attention on Hopper's matrix units share, after FlashAttention-3 (Shah et al., arXiv
/// 2407.08608). A block stays on its multiprocessor and goes from tile to tile. One warp starts all copies to
/// shared memory; each of two or three warpgroups owns 64 rows of the tile. Rows are counted from the
/// document's first. Copies overrun the end of a document; what they bring, rows of the next or zeros, gets
/// no weight or is not stored, but it must be finite.
namespace superoffload::cuda::kernels::hopper {

/// A tile of rows that a block owns.
struct attention_tile {
  int64_t start;      ///< the document's first row
  int length, first;  ///< rows of the document, the tile's first
  int head;           ///< negative: there are no more tiles
};

/// All tiles, those with the most to do first, dealt out to the blocks by turns that go forth and back. The
/// work of a document's tiles grows by steps from 1 to their number, so level n has a tile of each document
/// with n or more. For whole warps.
class attention_tiles {
public:
  __device__ attention_tiles(kernel::attention_shape const& shape, int heads, int rows, most_work where)
      : starts_{shape.starts},
        documents_{static_cast<int>(shape.documents)},
        heads_{heads},
        rows_{rows},
        level_{static_cast<int>(pieces_of(shape.longest, rows))},
        where_{where},
        lane_{static_cast<int>(threadIdx.x) % 32},
        turn_{static_cast<int>(blockIdx.x)} {
    look();
  }

  __device__ attention_tile next() {
    auto const wanted = turn_ / heads_;  // of the tiles without regard to heads
    while (level_ > 0 && seen_ + __popc(have_) <= wanted) {
      seen_ += __popc(have_);
      document_ += 32;
      if (document_ >= documents_) {
        document_ = 0;
        --level_;
      }
      look();
    }
    if (level_ == 0) {
      return {0, 0, 0, -1};
    }
    bool const chosen =
        (have_ >> lane_ & 1U) != 0 && __popc(have_ & ((1U << lane_) - 1)) == static_cast<int>(wanted - seen_);
    auto const document = document_ + __ffs(static_cast<int>(__ballot_sync(0xFFFFFFFFU, chosen))) - 1;
    auto const start = starts_[document];
    auto const length = starts_[document + 1] - start;
    auto const tile = where_ == most_work::last ? level_ - 1 : (length + rows_ - 1) / rows_ - level_;
    auto const head = turn_ % heads_;
    auto const blocks = static_cast<int>(gridDim.x);
    auto const place = static_cast<int>(blockIdx.x);
    back_ = !back_;
    turn_ += back_ ? 2 * (blocks - place) - 1 : 2 * place + 1;
    return {start, length, tile * rows_, head};
  }

private:
  /// Which of 32 documents have a tile at this level.
  __device__ void look() {
    auto const mine = document_ + lane_;
    bool const has = mine < documents_ && starts_[mine + 1] - starts_[mine] > (level_ - 1) * rows_;
    have_ = __ballot_sync(0xFFFFFFFFU, has);
  }

  int32_t const* starts_;
  int documents_, heads_, rows_, level_;
  most_work where_;
  int lane_, document_ = 0;
  unsigned have_ = 0;
  int seen_ = 0;  ///< tiles before these 32 documents at this level
  int turn_;
  bool back_ = false;
};

/// Registers of the warpgroup that copies and of those that compute: together as many as a block starts with.
template <int Warpgroups>
inline constexpr int copy_registers = Warpgroups == 2 ? 24 : 32;
template <int Warpgroups>
inline constexpr int compute_registers = Warpgroups == 2 ? 240 : 160;
template <int Warpgroups>
inline constexpr int attention_block = (1 + Warpgroups) * warpgroup_threads;

template <int Registers>
__device__ __forceinline__ void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

/// What a kernel does: `copies` on one warp, `products(warpgroup)` on the warpgroups that own rows. `memory`
/// is the block's, its barriers are set up first.
template <int Warpgroups, class Memory, class Copies, class Products>
__device__ __forceinline__ void divide_work(Memory& memory, Copies copies, Products products) {
  int const warpgroup = __shfl_sync(0xFFFFFFFFU, static_cast<int>(threadIdx.x) / warpgroup_threads, 0);
  if (threadIdx.x == 0) {
    memory.init_barriers();
    publish_barriers();
  }
  __syncthreads();
  if (warpgroup == 0) {
    give_up_registers<copy_registers<Warpgroups>>();
    if (threadIdx.x < 32) {
      copies();
    }
  } else {
    take_registers<compute_registers<Warpgroups>>();
    products(warpgroup - 1);
  }
}

/// Two warpgroups take turns at starting GEMMs, so that the softmax of one runs beside the GEMMs of the
/// other; both wait and pass equally often. Without `On` nothing.
template <bool On>
class gemm_turns {
public:
  /// The first warpgroup begins.
  __device__ explicit gemm_turns(int warpgroup) : mine_{1 + warpgroup}, other_{2 - warpgroup} {
    if (warpgroup == 1) {
      pass();
    }
  }
  __device__ __forceinline__ void wait() const {
    if constexpr (On) {
      asm volatile("bar.sync %0, 256;" ::"r"(mine_) : "memory");
    }
  }
  __device__ __forceinline__ void pass() const {
    if constexpr (On) {
      asm volatile("bar.arrive %0, 256;" ::"r"(other_) : "memory");
    }
  }

private:
  int mine_, other_;  ///< named barriers of the block
};

/// c = a b^T over Dim columns: `a` is 64 of ARows rows in shared memory, b all of its 8 N.
template <int Dim, int ARows, int N>
__device__ __forceinline__ void scores(float (&c)[N][4], std::uint64_t a, std::uint64_t b) {
#pragma unroll
  for (int k = 0; k < Dim; k += 16) {
    constexpr int box_row = box_columns * sizeof(bfloat16);
    auto const at = k % box_columns * static_cast<int>(sizeof(bfloat16));
    auto const left = ahead(a, k / box_columns * ARows * box_row + at);
    auto const right = ahead(b, k / box_columns * 8 * N * box_row + at);
    if (k == 0) {
      multiply_transposed<false>(c, left, right);
    } else {
      multiply_transposed<true>(c, left, right);
    }
  }
}

/// c += w b: w are weights as `round_to` leaves them, b has 16 K rows of as many columns
/// as c.
template <int N, int K>
__device__ __forceinline__ void weigh(float (&c)[N][4], unsigned const (&w)[K][4], std::uint64_t b) {
#pragma unroll
  for (int k = 0; k < K; ++k) { multiply(c, w[k], ahead(b, k * 16 * box_columns * 2)); }
}

template <int N>
__device__ __forceinline__ void clear(float (&c)[N][4]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) { c[i][j] = 0; }
  }
}

template <int N>
__device__ __forceinline__ void round_to(unsigned (&w)[N / 2][4], float const (&p)[N][4]) {
#pragma unroll
  for (int k = 0; k < N / 2; ++k) {
    w[k][0] = flash::pair(p[2 * k][0], p[2 * k][1]);
    w[k][1] = flash::pair(p[2 * k][2], p[2 * k][3]);
    w[k][2] = flash::pair(p[2 * k + 1][0], p[2 * k + 1][1]);
    w[k][3] = flash::pair(p[2 * k + 1][2], p[2 * k + 1][3]);
  }
}

/// Of chunks i to i + 3 of a warp's row, which four threads share: chunk i + lane % 4, which they shuffle
/// between them, times `factor`. `r` is 0 or 1, for which of the thread's rows.
template <int N>
__device__ __forceinline__ uint4 exchanged_chunk(float const (&c)[N][4], int i, int r, float factor) {
  int const lane = static_cast<int>(threadIdx.x) % 4;
  bool const odd = lane % 2 != 0, upper = lane / 2 != 0;
  auto const exchanged = [](unsigned x, int with) { return __shfl_xor_sync(0xFFFFFFFFU, x, with); };
  unsigned x[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) { x[j] = flash::pair(c[i + j][2 * r] * factor, c[i + j][2 * r + 1] * factor); }
  // Pairs of words of chunk lane % 2 and of chunk lane % 2 + 2, then all four of chunk `lane`.
  auto const near = exchanged(odd ? x[0] : x[1], 1), far = exchanged(odd ? x[2] : x[3], 1);
  unsigned const low[2] = {odd ? near : x[0], odd ? x[1] : near};
  unsigned const high[2] = {odd ? far : x[2], odd ? x[3] : far};
  auto const first = exchanged(upper ? low[0] : high[0], 2), second = exchanged(upper ? low[1] : high[1], 2);
  return upper ? make_uint4(first, second, high[0], high[1]) : make_uint4(low[0], low[1], first, second);
}

/// Stores a warp's 16 rows. `row_of(0)` and `row_of(1)` are where this thread's two begin, null for none.
template <int N, class Row>
__device__ __forceinline__ void write(float const (&c)[N][4], float const (&factor)[2], Row row_of) {
  int const lane = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    bfloat16* const to = row_of(r);
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      auto const chunk = exchanged_chunk(c, i, r, factor[r]);
      if (to != nullptr) {
        *reinterpret_cast<uint4*>(to + i * 8 + lane * 8) = chunk;
      }
    }
  }
}

/// Is this key unseen by this query? Both counted from the document's first row.
struct attention_mask {
  unsigned reach;  ///< keys that a query sees, itself included, at most
  __device__ explicit attention_mask(kernel::attention_shape const& s)
      : reach{s.window > 0 ? static_cast<unsigned>(s.window) : 0x7FFFFFFFU} {}
  __device__ bool hides(int query, int key) const { return static_cast<unsigned>(query - key) >= reach; }
  /// Does every one of these queries see every one of these keys?
  __device__ bool hides_none(int first_query, int last_query, int first_key, int last_key) const {
    return last_key <= first_query && static_cast<unsigned>(last_query - first_key) < reach;
  }
};

/// The rows of a tile that a warpgroup owns, of which a thread has two.
struct thread_rows {
  attention_tile at;
  int first;  ///< the warpgroup's first
  int row;    ///< the thread's; the other is eight rows on

  __device__ thread_rows(attention_tile const& tile, int warpgroup)
      : at{tile},
        first{tile.first + warpgroup * warpgroup_rows},
        row{first + static_cast<int>(threadIdx.x) % warpgroup_threads / 32 * 16 +
            static_cast<int>(threadIdx.x) % 32 / 4} {}
};

/// Pieces of `size` keys that a tile of queries meets.
struct key_range {
  int begin, end;
  __device__ key_range(kernel::attention_shape const& s, attention_tile const& at, int rows, int size)
      : begin{s.window > 0 && at.first >= s.window ? (at.first - s.window + 1) / size : 0},
        end{(min(at.first + rows, at.length) + size - 1) / size} {}
};

/// A kernel of blocks that stay: `copies(p, memory)` and `products(p, memory, warpgroup)` say what one does,
/// found by the type of its shared memory.
template <class Memory>
__global__ void __launch_bounds__(SUPEROFFLOAD_HOPPER ? Memory::sizes::threads : 32, 1)
    tiles_kernel(__grid_constant__ typename Memory::arguments const p) {
#if SUPEROFFLOAD_HOPPER
  extern __shared__ __align__(1024) unsigned char shared_memory[];
  auto& memory = *reinterpret_cast<Memory*>(shared_memory);
  divide_work<Memory::sizes::warpgroups>(
      memory, [&] { copies(p, memory); }, [&](int warpgroup) { products(p, memory, warpgroup); });
#else
  __trap();  // never started: see compiled_for_hopper
#endif
}

/// Whether the code that was compiled for this device has Hopper's instructions: elsewhere the kernel is
/// empty and bound to fewer threads.
template <class Memory>
bool compiled_for_hopper() {
  cudaFuncAttributes attributes{};
  if (cudaFuncGetAttributes(&attributes, tiles_kernel<Memory>) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.maxThreadsPerBlock == Memory::sizes::threads;
}

inline int multiprocessors(stream const& on) {
  int device = 0, count = 0;
  detail::check(cudaGetDevice(&device), "cudaGetDevice", on.name());
  detail::check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
                "cudaDeviceGetAttribute", on.name());
  return count;
}

/// Queues a kernel of as many blocks as run at once.
template <class Memory>
void start_tiles(stream& on, kernel::attention_shape const& s, int heads,
                 typename Memory::arguments const& arguments) {
  using sizes = typename Memory::sizes;
  auto const tiles =
      std::min(s.documents * pieces_of(s.longest, sizes::rows), s.rows / sizes::rows + s.documents) * heads;
  expect(tiles <= 0x3FFFFFFF, exit_code::bad_input, "attention of ", s.rows, " rows and ", heads,
         " heads has ", tiles, " tiles, but at most 1073741823 can be numbered; use a smaller batch");
  start(on, tiles_kernel<Memory>, std::min<int64_t>(tiles, multiprocessors(on)), sizes::threads,
        sizeof(Memory), arguments);
}

}  // namespace superoffload::cuda::kernels::hopper
