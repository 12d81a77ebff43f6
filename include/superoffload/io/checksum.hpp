// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace superoffload::io {

/// CRC-32C (Castagnoli) of `data`. For data in several parts, pass the result for the parts before as
/// `previous`.
std::uint32_t crc32c(std::span<std::byte const> data, std::uint32_t previous = 0);

/// SHA-256 of `data` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<std::byte const> data);

namespace detail {
/// crc32c without the processor's own instruction.
std::uint32_t crc32c_portable(std::span<std::byte const> data, std::uint32_t previous);
}  // namespace detail

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/checksum_inl.hpp>
#endif
