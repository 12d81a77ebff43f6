// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernels/column_parts.hpp"

#include "cpu/every_set.hpp"

using namespace superoffload;
using namespace superoffload::cpu;

TEST_CASE("column_parts: every instruction set, any number of threads") {
  for_every_set(across_sets::same_bits, [](auto& lab) { conformance::check_column_parts(lab); });
}
