// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <cstddef>
#include <filesystem>
#include <string>

namespace superoffload::io {

/// The whole of a regular file of at most `limit` bytes.
/// \throws error(bad_input) when there is no such file or it is larger, error(io_failure) when reading fails.
std::string read_file(std::filesystem::path const& file, std::size_t limit);

}  // namespace superoffload::io
