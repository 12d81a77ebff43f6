// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of the kernels of every device, each against a reference in double. A device with all kernels
// includes this and calls the checks with a lab.

#include "conformance/kernels/adamw.hpp"
#include "conformance/kernels/attention.hpp"
#include "conformance/kernels/column_parts.hpp"
#include "conformance/kernels/cross_entropy.hpp"
#include "conformance/kernels/dropout.hpp"
#include "conformance/kernels/elementwise.hpp"
#include "conformance/kernels/embedding.hpp"
#include "conformance/kernels/expert_swiglu.hpp"
#include "conformance/kernels/float8.hpp"
#include "conformance/kernels/gemm.hpp"
#include "conformance/kernels/grouped_gemm.hpp"
#include "conformance/kernels/head_norm.hpp"
#include "conformance/kernels/load_balancing.hpp"
#include "conformance/kernels/reduction.hpp"
#include "conformance/kernels/rms_norm.hpp"
#include "conformance/kernels/rotary.hpp"
#include "conformance/kernels/routing.hpp"
#include "conformance/kernels/stored_adamw.hpp"
#include "conformance/kernels/swiglu.hpp"
