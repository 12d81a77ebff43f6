// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#if defined(__aarch64__)
#define SUPEROFFLOAD_KERNEL_SET neon
#include <superoffload/cpu/kernels/set.hpp>
#endif
