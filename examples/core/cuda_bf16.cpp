// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>

#include "core/core.hpp"

INSTANTIATE_CORE(, cuda, bf16)
