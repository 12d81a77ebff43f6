// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>

#include "core/core.hpp"

INSTANTIATE_CORE(, cpu, fp32)
