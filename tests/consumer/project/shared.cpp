// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Compiled into two shared libraries, under two names.
#include <cstdint>
#include <string>
#include <vector>

std::vector<std::int32_t> tokens_of(std::string const& directory, std::string const& text);

std::vector<std::int32_t> NAME(std::string const& directory, std::string const& text) {
  return tokens_of(directory, text);
}
