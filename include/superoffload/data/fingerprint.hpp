// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace superoffload::data {

/// Identifies a data set, to check that a resumed run uses the same one. No protection against attacks.
struct fingerprint {
  std::uint64_t bytes = 0;  ///< of all files
  std::uint64_t fnv1a = 0;  ///< FNV-1a, 64 bits, of the file's bytes

  friend bool operator==(fingerprint const&, fingerprint const&) = default;  ///< of both numbers
};

/// \throws error(bad_input) when `file` cannot be opened, error(io_failure) when reading fails
fingerprint fingerprint_of(std::filesystem::path const& file);
/// Of several files in their order; that of one file is its own.
fingerprint fingerprint_of(std::span<std::filesystem::path const> files);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/fingerprint_inl.hpp>
#endif
