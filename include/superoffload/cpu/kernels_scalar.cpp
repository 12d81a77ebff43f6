// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#define SUPEROFFLOAD_KERNEL_SET scalar
#define SUPEROFFLOAD_KERNEL_SCALAR
#include <superoffload/cpu/kernels/set.hpp>
