// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A sum of a float and a bfloat16 matrix has no type of its own.
// error: (no match for .operator\+.|invalid operands to binary expression)
#include <superoffload/cpu/device.hpp>
#include <superoffload/nn/add.hpp>

namespace so = superoffload;

void add(so::autograd::variable<so::cpu::device, float> a,
         so::autograd::variable<so::cpu::device, so::bfloat16> b) {
  (void)(a + b);
}

int main() {}
