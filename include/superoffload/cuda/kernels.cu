// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#ifdef __FAST_MATH__
#error "the kernels promise IEEE arithmetic: compile them without fast math"
#endif

#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cuda/kernels/adamw.cuh>
#include <superoffload/cuda/kernels/attention.cuh>
#include <superoffload/cuda/kernels/cross_entropy.cuh>
#include <superoffload/cuda/kernels/elementwise.cuh>
#include <superoffload/cuda/kernels/embedding.cuh>
#include <superoffload/cuda/kernels/gemm.cuh>
#include <superoffload/cuda/kernels/reduction.cuh>
#include <superoffload/cuda/kernels/rms_norm.cuh>
#include <superoffload/cuda/kernels/rotary.cuh>
#include <superoffload/cuda/kernels/swiglu.cuh>

namespace superoffload::cuda {

namespace {

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

constinit detail::kernel_table const detail::kernels = table_of(kernel::catalogue{});

}  // namespace superoffload::cuda
