// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The kernels of one instruction set: of the set that SUPEROFFLOAD_KERNEL_SET names, else of the best one
// that the flags of the translation unit allow.
#pragma once

#ifndef SUPEROFFLOAD_KERNEL_SET
#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512BW__) && defined(__AVX512VL__) && \
    defined(__FMA__)
#if defined(__AVX512BF16__) && defined(__AMX_BF16__)
#define SUPEROFFLOAD_KERNEL_SET amx_bf16
#elif defined(__AVX512BF16__)
#define SUPEROFFLOAD_KERNEL_SET avx512_bf16
#else
#define SUPEROFFLOAD_KERNEL_SET avx512
#endif
#elif defined(__AVX2__) && defined(__FMA__)
#define SUPEROFFLOAD_KERNEL_SET avx2
#elif defined(__aarch64__)
#define SUPEROFFLOAD_KERNEL_SET neon
#else
#define SUPEROFFLOAD_KERNEL_SET scalar
#define SUPEROFFLOAD_KERNEL_SCALAR
#endif
#endif

#include <superoffload/cpu/kernels/set.hpp>
