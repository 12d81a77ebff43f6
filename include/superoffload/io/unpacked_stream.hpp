// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/byte_stream.hpp>

#include <filesystem>
#include <memory>
#include <string_view>

namespace superoffload::io {

/// The content of a regular file, unpacked if its first bytes are those of gzip or zstd. The program of that
/// name on PATH unpacks it, in a process that ends with the stream. Neither library has to be linked, and no
/// decoder runs in this process. A small file may unpack to any size: the caller sets a limit.
/// \throws error(bad_input) when there is no such file, it is not a regular one or the program is missing;
/// read() also throws it for a damaged file
std::unique_ptr<byte_stream> open_unpacked(std::filesystem::path const& path);

/// `name` without the ending of a packed file, .gz or .zst.
std::string_view unpacked_name(std::string_view name);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/unpacked_stream_inl.hpp>
#endif
