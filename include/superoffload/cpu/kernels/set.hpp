// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The kernels of one instruction set, in the namespace that SUPEROFFLOAD_KERNEL_SET names. What is compiled
// with the set's flags stays in that namespace, so that the linker cannot merge it with code for lesser
// machines. SUPEROFFLOAD_COMPILED: the table of those in SUPEROFFLOAD_KERNEL_LIST, or of all.
#pragma once

#ifdef __FAST_MATH__
#error "the kernels promise IEEE arithmetic: compile them without -ffast-math"
#endif

#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cpu/kernels/adamw.hpp>
#include <superoffload/cpu/kernels/attention.hpp>
#include <superoffload/cpu/kernels/column_parts.hpp>
#include <superoffload/cpu/kernels/cross_entropy.hpp>
#include <superoffload/cpu/kernels/deferred_adamw.hpp>
#include <superoffload/cpu/kernels/dropout.hpp>
#include <superoffload/cpu/kernels/elementwise.hpp>
#include <superoffload/cpu/kernels/embedding.hpp>
#include <superoffload/cpu/kernels/expert_swiglu.hpp>
#include <superoffload/cpu/kernels/float8.hpp>
#include <superoffload/cpu/kernels/gemm.hpp>
#include <superoffload/cpu/kernels/grouped_gemm.hpp>
#include <superoffload/cpu/kernels/head_norm.hpp>
#include <superoffload/cpu/kernels/load_balancing.hpp>
#include <superoffload/cpu/kernels/reduction.hpp>
#include <superoffload/cpu/kernels/rms_norm.hpp>
#include <superoffload/cpu/kernels/rotary.hpp>
#include <superoffload/cpu/kernels/routing.hpp>
#include <superoffload/cpu/kernels/swiglu.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

template <class Arguments>
inline constexpr detail::kernel_entry<Arguments> kernel_of{items, run};

/// Are a product and the sum that it goes into rounded once, as the flag -ffp-contract=fast of g++ has it?
/// AdamW gives the same bits on every processor only if they are rounded one after the other. No macro tells.
SUPEROFFLOAD_INLINE bool contracts() {
  float const volatile factor = 1 + 0x1p-12F;
  float const x = factor;
  float const y = factor;
  float const volatile addend = -(1 + 0x1p-11F);
  float const z = addend;
  return x * y + z != 0;  // the product is 2^-24 more than its rounded value
}

#ifdef SUPEROFFLOAD_COMPILED
#ifndef SUPEROFFLOAD_KERNEL_LIST
#define SUPEROFFLOAD_KERNEL_LIST host_catalogue
#endif
using kernel_list = kernel::SUPEROFFLOAD_KERNEL_LIST;
using kernel_table = kernel::table<detail::kernel_entry, kernel_list>;

template <class... Arguments>
constexpr kernel_table table_of(kernel::list<Arguments...>) {
  return {kernel_of<Arguments>...};
}

extern kernel_table const kernels;
constinit kernel_table const kernels = table_of(kernel_list{});
#endif

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
