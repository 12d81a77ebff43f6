// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A device has the kernels it declares, for the element types it declares.
// error: no matching function for call to .launch
#include <superoffload/cpu/kernels.hpp>

namespace so = superoffload;

void run(so::cpu::stream& stream) { launch(stream, so::kernel::gemm<float, so::bfloat16>{}); }

int main() {}
