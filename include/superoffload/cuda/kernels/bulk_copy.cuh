// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/vector.cuh>

#include <cuda.h>

/// Hopper's copy engine: boxes of a tensor go to shared memory while the threads compute, and a barrier in
/// shared memory says when they are there (PTX ISA, cp.async.bulk.tensor and mbarrier).
namespace superoffload::cuda::kernels::hopper {

__device__ inline unsigned shared_address(void const* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// One phase is over when all expected arrivals and all announced bytes are in; phases are told apart by
/// parity alone, so no thread may be two phases behind.
using barrier = std::uint64_t;

__device__ inline void init(barrier& b, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&b)), "r"(arrivals));
}
/// Makes initialised barriers visible to the copy engine; a __syncthreads must follow.
__device__ inline void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void arrive(barrier& b) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&b)) : "memory");
}
/// One arrival for a whole warp whose matrix instructions have read what the barrier guards. What threads
/// read themselves, each of them releases.
__device__ inline void release(barrier& b) {
  if (threadIdx.x % 32 == 0) {
    arrive(b);
  }
}
/// Arrives, and lets the phase wait for so many copied bytes more.
__device__ inline void arrive_with(barrier& b, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&b)), "r"(bytes)
               : "memory");
}
/// Waits until the phase of this parity is over. A new barrier counts as being behind one of parity 1.
__device__ inline void wait(barrier& b, int parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred over;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 over, [%1], %2;\n"
        "selp.u32 %0, 1, 0, over;\n"
        "}"
        : "=r"(done)
        : "r"(shared_address(&b)), "r"(parity)
        : "memory");
  } while (done == 0);
}

/// A stage of a ring of `Stages` and the parity of its present use.
template <int Stages>
struct ring_position {
  int stage = 0, parity = 0;
  __device__ void advance() {
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// Starts to copy the box at (column, head, row) of `map` to `to`; its bytes count towards `b`. Rows behind
/// the tensor's last are zeros.
__device__ inline void copy_box(CUtensorMap const& map, int column, int head, int row, void* to, barrier& b) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
      "[%5];" ::"r"(shared_address(to)),
      "l"(&map), "r"(column), "r"(head), "r"(row), "r"(shared_address(&b))
      : "memory");
}
__device__ inline void prefetch(CUtensorMap const& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Columns of a box: 128 bytes, the span within which shared memory is swizzled.
inline constexpr int box_columns = 64;
inline constexpr int box_rows = 64;

/// A matrix [rows, heads * dim] in boxes of 64 rows and 64 columns of one head, each row's eight pieces of 16
/// bytes swizzled by its number modulo eight. `matrix` is aligned to 16 bytes, dim is a multiple of 64; with
/// one head it may be any multiple of 8 from 64 on, and the last box ends in zeros.
inline CUtensorMap map_of(stream const& on, bfloat16 const* matrix, int64_t rows, int64_t heads,
                          int64_t dim) {
  using encoder = decltype(&cuTensorMapEncodeTiled);
  static encoder const encode = [&] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    detail::check(
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion(cuTensorMapEncodeTiled)", on.name());
#else
    detail::check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found),
                  "cudaGetDriverEntryPoint(cuTensorMapEncodeTiled)", on.name());
#endif
    expect(found == cudaDriverEntryPointSuccess, exit_code::device, "the driver of ", on.name(),
           " has no cuTensorMapEncodeTiled: expected one for CUDA 12 or newer");
    return reinterpret_cast<encoder>(entry);
  }();
  auto const u64 = [](int64_t x) { return static_cast<cuuint64_t>(x); };
  cuuint64_t const sizes[] = {u64(dim), u64(heads), u64(rows)};
  cuuint64_t const strides[] = {u64(dim) * sizeof(bfloat16), u64(heads * dim) * sizeof(bfloat16)};
  cuuint32_t const box[] = {box_columns, 1, box_rows};
  cuuint32_t const steps[] = {1, 1, 1};
  CUtensorMap map;
  auto const status = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<bfloat16*>(matrix), sizes,
                             strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  expect(status == CUDA_SUCCESS, exit_code::device, "cuTensorMapEncodeTiled of ", rows, " rows of ", heads,
         " heads of ", dim, " failed with CUresult ", static_cast<int>(status), " on ", on.name());
  return map;
}

/// Starts to copy `Rows` rows from `row` on of one head: [Dim / 64][Rows][64] in shared memory.
template <int Rows, int Dim>
__device__ void copy_rows(CUtensorMap const& map, int head, int row, bfloat16* to, barrier& b) {
#pragma unroll
  for (int column = 0; column < Dim; column += box_columns) {
#pragma unroll
    for (int i = 0; i < Rows; i += box_rows) {
      copy_box(map, column, head, row + i, to + column * Rows + i * box_columns, b);
    }
  }
}

}  // namespace superoffload::cuda::kernels::hopper
