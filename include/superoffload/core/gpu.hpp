// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// What device_policy asks of every GPU, real or described.
namespace superoffload::gpu {

/// Below some thousand rows, the GEMM of a head with 128 thousand tokens leaves an H200 half idle.
inline constexpr std::size_t logits_chunk_bytes = std::size_t{2} << 30;
/// What cuBLASLt's authors advise for Hopper, plus a few scaling factors in device memory.
inline constexpr std::size_t gemm_workspace_bytes = (std::size_t{32} << 20) + 24;
inline constexpr double flops_per_byte = 175.0;  ///< of an H200: 750 TFLOP/s, 4.28 TB/s
/// An H200 at work reaches its power limit within some tens of milliseconds, and lowers its clock by a
/// quarter.
inline constexpr double settling_time = 0.1;
/// How much of each other rank's part of a sum over ranks is transferred at a time, and held in a buffer of
/// its own: enough for NVLink's rate.
inline constexpr std::size_t sum_part_bytes = std::size_t{256} << 20;

}  // namespace superoffload::gpu
