// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/hub_cache.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <utility>

namespace superoffload::io {
namespace detail {

SUPEROFFLOAD_INLINE bool is_part_of_hub_name(std::string_view part) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  return !part.empty() && part.size() <= 96 && part.front() != '.' &&
         part.find_first_not_of(allowed) == part.npos;
}

}  // namespace detail

SUPEROFFLOAD_INLINE bool is_hub_name(std::string_view name) {
  auto const slash = name.find('/');
  return slash != name.npos && detail::is_part_of_hub_name(name.substr(0, slash)) &&
         detail::is_part_of_hub_name(name.substr(slash + 1));
}

SUPEROFFLOAD_INLINE std::filesystem::path hub_cache_directory() {
  using way = std::pair<char const*, char const*>;
  for (auto const& [variable, below] : {way{"HF_HUB_CACHE", ""},
                                        {"HF_HOME", "hub"},
                                        {"XDG_CACHE_HOME", "huggingface/hub"},
                                        {"HOME", ".cache/huggingface/hub"}}) {
    char const* const value = std::getenv(variable);
    if (value != nullptr && *value != '\0') {
      return *below == '\0' ? std::filesystem::path{value} : std::filesystem::path{value} / below;
    }
  }
  return {};
}

SUPEROFFLOAD_INLINE std::optional<std::filesystem::path> cached_snapshot(std::filesystem::path const& cache,
                                                                         std::string_view kind,
                                                                         std::string_view name) {
  if (cache.empty() || !is_hub_name(name)) {
    return std::nullopt;
  }
  std::string directory{kind};
  directory += "--";
  for (char const c : name) { directory += c == '/' ? std::string{"--"} : std::string{c}; }
  auto const repository = cache / directory;
  std::string revision(64, '\0');
  std::ifstream file{repository / "refs" / "main", std::ios::binary};
  file.read(revision.data(), static_cast<std::streamsize>(revision.size()));
  revision.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  while (revision.ends_with('\n')) { revision.pop_back(); }
  if (revision.empty() || revision.find_first_not_of("0123456789abcdef") != revision.npos) {
    return std::nullopt;
  }
  auto const snapshot = repository / "snapshots" / revision;
  std::error_code failure;
  return std::filesystem::is_directory(snapshot, failure) ? std::optional{snapshot} : std::nullopt;
}

}  // namespace superoffload::io
