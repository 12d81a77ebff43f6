// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/precision.hpp>

#include "support/sanitizer.hpp"

// The precisions, their working weights, and elements of a store that templates of tests take. bf16 runs all
// that fp32 does, and splits masters besides: under sanitizers, which make tests at least ten times as slow,
// it is enough.
#if defined(SUPEROFFLOAD_TEST_THREADS) || defined(SUPEROFFLOAD_TEST_ADDRESSES)
#define SUPEROFFLOAD_TEST_PRECISIONS superoffload::precision::bf16
#define SUPEROFFLOAD_TEST_WEIGHTS superoffload::bfloat16
#define SUPEROFFLOAD_TEST_ELEMENTS superoffload::bfloat16
#else
#define SUPEROFFLOAD_TEST_PRECISIONS superoffload::precision::fp32, superoffload::precision::bf16
#define SUPEROFFLOAD_TEST_WEIGHTS float, superoffload::bfloat16
#define SUPEROFFLOAD_TEST_ELEMENTS float, superoffload::bfloat16, double
#endif
