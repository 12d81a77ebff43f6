// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Activations are bfloat16, float or double.
// error: (template constraint failure|constraints not satisfied)
#include <superoffload/kernel/gemm.hpp>

superoffload::kernel::gemm<int> arguments;

int main() {}
