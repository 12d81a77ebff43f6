// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace superoffload {

/// The first `most` bytes of a file, fewer if it ends before; nothing if it cannot be read. For files of the
/// kernel, which tell no size, and for small files. No signal interrupts it.
std::optional<std::string> first_bytes_of(std::string const& path, std::size_t most = 4096);

}  // namespace superoffload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/core/impl/first_bytes_inl.hpp>
#endif
