// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// All kernels of the device. One source of a program includes it; CMake generates that source and nvcc
// compiles it. nvcc sees only declarations of the host code.
#pragma once

#ifndef SUPEROFFLOAD_COMPILED
#define SUPEROFFLOAD_COMPILED
#endif

#ifdef __FAST_MATH__
#error "the kernels promise IEEE arithmetic: compile them without fast math"
#endif

#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cuda/kernels/adamw.cuh>
#include <superoffload/cuda/kernels/adamw_blocks.cuh>
#include <superoffload/cuda/kernels/attention.cuh>
#include <superoffload/cuda/kernels/attention_sinks.cuh>
#include <superoffload/cuda/kernels/column_parts.cuh>
#include <superoffload/cuda/kernels/cross_entropy.cuh>
#include <superoffload/cuda/kernels/document_tables.cuh>
#include <superoffload/cuda/kernels/dropout.cuh>
#include <superoffload/cuda/kernels/elementwise.cuh>
#include <superoffload/cuda/kernels/embedding.cuh>
#include <superoffload/cuda/kernels/expert_swiglu.cuh>
#include <superoffload/cuda/kernels/float8.cuh>
#include <superoffload/cuda/kernels/gemm.cuh>
#include <superoffload/cuda/kernels/grouped_gemms.cuh>
#include <superoffload/cuda/kernels/head_norm.cuh>
#include <superoffload/cuda/kernels/load_balancing.cuh>
#include <superoffload/cuda/kernels/reduction.cuh>
#include <superoffload/cuda/kernels/rms_norm.cuh>
#include <superoffload/cuda/kernels/rotary.cuh>
#include <superoffload/cuda/kernels/routing.cuh>
#include <superoffload/cuda/kernels/small_copy.cuh>
#include <superoffload/cuda/kernels/swiglu.cuh>

namespace superoffload::cuda {

namespace {

/// Built for the same architectures as all other kernels.
__global__ void nothing() {}

template <class Arguments>
void checked_launch(stream& on, Arguments const& arguments) {
  on.activate();
  kernels::run(on, arguments);
  on.check_launch(__PRETTY_FUNCTION__);
}

template <class... Arguments>
constexpr detail::kernel_table table_of(kernel::list<Arguments...>) {
  return {detail::kernel_entry<Arguments>{&checked_launch<Arguments>}...};
}

}  // namespace

bool detail::kernels_fit_current_device() {
  cudaFuncAttributes attributes{};
  bool const fit = cudaFuncGetAttributes(&attributes, nothing) == cudaSuccess;
  cudaGetLastError();
  return fit;
}

constinit detail::kernel_table const detail::kernels = table_of(kernel::catalogue{});

bool has_hopper_attention(device const& device, std::int32_t head_dim) {
  namespace hopper = kernels::hopper;
  device.activate();
  return head_dim == 64    ? hopper::compiled_for_hopper<hopper::forward_memory<64>>()
         : head_dim == 128 ? hopper::compiled_for_hopper<hopper::forward_memory<128>>()
                           : false;
}

void fill(stream& on, document_tables const& tables) {
  on.activate();
  kernels::start(on, kernels::document_tables_kernel<>,
                 kernels::pieces_of(tables.padded + 1, kernels::document_tables_threads),
                 kernels::document_tables_threads, 0, tables);
  on.check_launch("document_tables_kernel");
}

void small_copy(stream& on, void* to, void const* from, std::size_t bytes) {
  using namespace kernels;
  on.activate();
  auto const blocks = pieces_of(static_cast<std::int64_t>(bytes), small_copy_threads * sizeof(uint4));
  start(on, small_copy_kernel<>, std::min<std::int64_t>(blocks, small_copy_blocks), small_copy_threads, 0,
        {static_cast<std::byte*>(to), static_cast<std::byte const*>(from), bytes});
  on.check_launch("small_copy_kernel");
}

}  // namespace superoffload::cuda
