// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace superoffload::io {

/// Is it a name as on the hub, such as "meta-llama/Llama-3.1-8B"?
bool is_hub_name(std::string_view name);

/// Where the hub's tools keep what they download: HF_HUB_CACHE, hub in HF_HOME, or huggingface/hub in
/// XDG_CACHE_HOME or ~/.cache. Empty if none of these variables is set.
std::filesystem::path hub_cache_directory();

/// The files of the last downloaded revision of `name` in such a directory; none: it is not there. `kind`:
/// "models" or "datasets". `name` is one as on the hub.
std::optional<std::filesystem::path> cached_snapshot(std::filesystem::path const& cache,
                                                     std::string_view kind, std::string_view name);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/hub_cache_inl.hpp>
#endif
