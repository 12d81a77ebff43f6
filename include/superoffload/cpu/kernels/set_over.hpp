// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// An instruction set that extends SUPEROFFLOAD_BASE_SET by products of bfloat16: it has their kernels, and
// all others of that set.
#pragma once

#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cpu/kernels/gemm.hpp>
#include <superoffload/cpu/kernels/grouped_gemm.hpp>

namespace superoffload::cpu {

namespace SUPEROFFLOAD_BASE_SET {
extern detail::kernel_table const kernels;
bool contracts();
}  // namespace SUPEROFFLOAD_BASE_SET

namespace SUPEROFFLOAD_KERNEL_SET {

template <class... Arguments>
detail::kernel_table extended(detail::kernel_table table, kernel::list<Arguments...>) {
  ((static_cast<detail::kernel_entry<Arguments>&>(table) = {items, run}), ...);
  return table;
}

bool contracts() { return SUPEROFFLOAD_BASE_SET::contracts(); }

extern detail::kernel_table const kernels;
detail::kernel_table const kernels = extended(
    SUPEROFFLOAD_BASE_SET::kernels,
    kernel::list<kernel::gemm<bfloat16>, kernel::gemm<bfloat16, float>, kernel::grouped_gemm<bfloat16>,
                 kernel::grouped_outer<bfloat16>, kernel::grouped_outer<bfloat16, float>>{});

}  // namespace SUPEROFFLOAD_KERNEL_SET

}  // namespace superoffload::cpu
