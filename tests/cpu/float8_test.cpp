// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernels/float8.hpp"

#include "cpu/every_set.hpp"

using namespace superoffload;
using namespace superoffload::cpu;

TEST_CASE("FP8 GEMMs: every instruction set, any number of threads") {
  for_every_set(across_sets::may_differ, [](auto& lab) { conformance::check_float8(lab); });
}
