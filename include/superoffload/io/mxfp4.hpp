// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace superoffload::io {

/// Columns that share a scale (OCP Microscaling Formats 1.0, MXFP4). Two values are in a byte.
inline constexpr std::int64_t mxfp4_block = 32;
inline constexpr std::int64_t mxfp4_block_bytes = mxfp4_block / 2;

/// Writes the matrix `to` [in, out] from its transpose in MXFP4: blocks [out, in / 32, 16] with two four-bit
/// values in a byte, the lower bits first, and scales [out, in / 32], powers of two with a bias of 127. The
/// result is exact. The scale 255 is 2^128, as in the published code, and may overflow to infinity.
void dequantise_mxfp4(std::span<std::byte const> blocks, std::span<std::byte const> scales, std::int64_t in,
                      std::int64_t out, std::span<bfloat16> to);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/mxfp4_inl.hpp>
#endif
