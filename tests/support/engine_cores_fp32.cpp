// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/kernels.hpp>

#include "support/engine_cores.hpp"

INSTANTIATE_ENGINE_CORES(, fp32)
