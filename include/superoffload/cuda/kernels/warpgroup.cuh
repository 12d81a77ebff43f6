// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/bulk_copy.cuh>

/// GEMMs that four warps start together and Hopper's matrix units run beside them (PTX ISA, wgmma). An
/// accumulator of 64 rows and 8 N columns is float[N][4] in each thread: chunk i holds, of row lane / 4 of
/// the warp's 16, columns 8 i + lane % 4 * 2 and the next, then the same of the row eight on.
namespace superoffload::cuda::kernels::hopper {

inline constexpr int warpgroup_threads = 128;
inline constexpr int warpgroup_rows = 64;

/// What a matrix unit is told of an operand in shared memory: boxes of 64 columns, each row 128 bytes,
/// swizzled. `box_bytes` from one box of columns to the next.
__device__ inline std::uint64_t operand(void const* box, int box_bytes) {
  constexpr std::uint64_t eight_rows = 1024, swizzled_by_128_bytes = 1;
  return (shared_address(box) & 0x3FFFFU) >> 4 | static_cast<std::uint64_t>(box_bytes >> 4) << 16 |
         eight_rows >> 4 << 32 | swizzled_by_128_bytes << 62;
}
/// The operand `bytes` further on.
__device__ inline std::uint64_t ahead(std::uint64_t operand, int bytes) {
  return operand + static_cast<unsigned>(bytes >> 4);
}

/// Registers that the matrix units are about to use or have just written: the compiler moves no access
/// across.
template <int N>
__device__ __forceinline__ void pin(float (&c)[N][4]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) { asm volatile("" : "+f"(c[i][j])::"memory"); }
  }
}
template <int N>
__device__ __forceinline__ void pin(unsigned (&a)[N][4]) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) { asm volatile("" : "+r"(a[i][j])::"memory"); }
  }
}
/// Before the first matrix instruction that uses registers which were written since the last.
__device__ __forceinline__ void begin_gemms() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/// The matrix instructions since the last end are one group.
__device__ __forceinline__ void end_gemms() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits for all but the last `Later` groups.
template <int Later>
__device__ __forceinline__ void wait_for_gemms() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Later) : "memory");
}

#define SUPEROFFLOAD_CHUNK(mode, i) mode(c[i][0]), mode(c[i][1]), mode(c[i][2]), mode(c[i][3])
#define SUPEROFFLOAD_CHUNKS(mode, i)                                                                     \
  SUPEROFFLOAD_CHUNK(mode, i), SUPEROFFLOAD_CHUNK(mode, i + 1), SUPEROFFLOAD_CHUNK(mode, i + 2),         \
      SUPEROFFLOAD_CHUNK(mode, i + 3), SUPEROFFLOAD_CHUNK(mode, i + 4), SUPEROFFLOAD_CHUNK(mode, i + 5), \
      SUPEROFFLOAD_CHUNK(mode, i + 6), SUPEROFFLOAD_CHUNK(mode, i + 7)
#define SUPEROFFLOAD_32_REGISTERS                                                                        \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
  "%22, "                                                                                                \
  "%23, %24, %25, %26, %27, %28, %29, %30, %31"
#define SUPEROFFLOAD_64_REGISTERS                                                                          \
  SUPEROFFLOAD_32_REGISTERS                                                                                \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
  "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

#define SUPEROFFLOAD_128_REGISTERS                                                                           \
  SUPEROFFLOAD_64_REGISTERS                                                                                  \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "   \
  "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, " \
  "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, "   \
  "%121, %122, %123, %124, %125, %126, %127"

/// c += a b^T (c = a b^T without Add) over 16 columns of both: `a` has 64 rows, b has 8 N.
template <bool Add>
__device__ __forceinline__ void multiply_transposed(float (&c)[8][4], std::uint64_t a, std::uint64_t b) {
  if constexpr (Add) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SUPEROFFLOAD_32_REGISTERS
                 "}, %32, %33, 1, 1, 1, 0, 0;"
                 : SUPEROFFLOAD_CHUNKS("+f", 0)
                 : "l"(a), "l"(b));
  } else {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SUPEROFFLOAD_32_REGISTERS
                 "}, %32, %33, 0, 1, 1, 0, 0;"
                 : SUPEROFFLOAD_CHUNKS("=f", 0)
                 : "l"(a), "l"(b));
  }
}
template <bool Add>
__device__ __forceinline__ void multiply_transposed(float (&c)[16][4], std::uint64_t a, std::uint64_t b) {
  if constexpr (Add) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SUPEROFFLOAD_64_REGISTERS
                 "}, %64, %65, 1, 1, 1, 0, 0;"
                 : SUPEROFFLOAD_CHUNKS("+f", 0), SUPEROFFLOAD_CHUNKS("+f", 8)
                 : "l"(a), "l"(b));
  } else {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SUPEROFFLOAD_64_REGISTERS
                 "}, %64, %65, 0, 1, 1, 0, 0;"
                 : SUPEROFFLOAD_CHUNKS("=f", 0), SUPEROFFLOAD_CHUNKS("=f", 8)
                 : "l"(a), "l"(b));
  }
}

/// c += a b over 16 columns of `a`, which is in registers, and as many rows of b.
__device__ __forceinline__ void multiply(float (&c)[8][4], unsigned const (&a)[4], std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" SUPEROFFLOAD_32_REGISTERS
               "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
               : SUPEROFFLOAD_CHUNKS("+f", 0)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
__device__ __forceinline__ void multiply(float (&c)[16][4], unsigned const (&a)[4], std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" SUPEROFFLOAD_64_REGISTERS
               "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
               : SUPEROFFLOAD_CHUNKS("+f", 0), SUPEROFFLOAD_CHUNKS("+f", 8)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}

/// c += a b^T over 16 columns of both, which have 64 and 256 rows; an operand that is stored by columns has
/// these 16 below each other.
template <bool AByColumns, bool BByColumns>
__device__ __forceinline__ void multiply_stored(float (&c)[32][4], std::uint64_t a, std::uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" SUPEROFFLOAD_128_REGISTERS
               "}, %128, %129, 1, 1, 1, %130, %131;"
               : SUPEROFFLOAD_CHUNKS("+f", 0), SUPEROFFLOAD_CHUNKS("+f", 8), SUPEROFFLOAD_CHUNKS("+f", 16),
                 SUPEROFFLOAD_CHUNKS("+f", 24)
               : "l"(a), "l"(b), "n"(AByColumns ? 1 : 0), "n"(BByColumns ? 1 : 0));
}

#undef SUPEROFFLOAD_128_REGISTERS
#undef SUPEROFFLOAD_64_REGISTERS
#undef SUPEROFFLOAD_32_REGISTERS
#undef SUPEROFFLOAD_CHUNKS
#undef SUPEROFFLOAD_CHUNK

}  // namespace superoffload::cuda::kernels::hopper
