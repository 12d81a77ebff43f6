// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#if !defined(__AVX512F__) || !defined(__AVX512DQ__) || !defined(__AVX512BW__) || !defined(__AVX512VL__) || \
    !defined(__FMA__)
#error "compile this source with -mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma"
#endif
#define SUPEROFFLOAD_KERNEL_SET avx512
#include <superoffload/cpu/kernels/set.hpp>
#endif
