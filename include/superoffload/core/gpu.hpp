// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// What device_policy asks of any GPU that the library drives, whether there is one or it is only described.
namespace superoffload::gpu {

/// Below some thousand rows a product with a head of 128 thousand tokens leaves an H200 half idle.
inline constexpr std::size_t logits_chunk_bytes = std::size_t{2} << 30;
/// As cuBLASLt's authors advise for Hopper, and some factors in device memory.
inline constexpr std::size_t gemm_workspace_bytes = (std::size_t{32} << 20) + 24;
inline constexpr double flops_per_byte = 175.0;  // H200: 750 TFLOP/s, 4.28 TB/s
/// An H200 at work comes to its power limit within some tens of milliseconds, and lowers its clock by a
/// quarter.
inline constexpr double settling_time = 0.1;
/// Of each other rank's part of a sum over ranks, what is exchanged at a time and waits in memory of its own:
/// enough for NVLink's rate.
inline constexpr std::size_t sum_part_bytes = std::size_t{256} << 20;

}  // namespace superoffload::gpu
