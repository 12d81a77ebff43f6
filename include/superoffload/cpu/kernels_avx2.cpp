// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#if defined(__x86_64__)
#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile this source with -mavx2 -mfma"
#endif
#define SUPEROFFLOAD_KERNEL_SET avx2
#include <superoffload/cpu/kernels/set.hpp>
#endif
