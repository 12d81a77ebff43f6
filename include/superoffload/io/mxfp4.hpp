// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace superoffload::io {

/// Columns that share a scale, and the bytes that hold their values (OCP Microscaling Formats 1.0, MXFP4).
inline constexpr std::int64_t mxfp4_block = 32;
inline constexpr std::int64_t mxfp4_block_bytes = mxfp4_block / 2;

/// The matrix `to` [in, out] from its transpose in MXFP4: blocks [out, in / 32, 16] with two values of four
/// bits in a byte, the lower bits first, and scales [out, in / 32], powers of two with a bias of 127. Exact,
/// also for the scale 255, which is 2^128 here as in the published code: what overflows by it is infinite.
void dequantise_mxfp4(std::span<std::byte const> blocks, std::span<std::byte const> scales, std::int64_t in,
                      std::int64_t out, std::span<bfloat16> to);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/mxfp4_inl.hpp>
#endif
