// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Compiled into two shared libraries, under two names.
#include <superoffload/text/tokenizer.hpp>

#include <cstddef>
#include <string>
#include <vector>

/// The tokens of `text` for the model in `directory`.
std::vector<std::int32_t> NAME(std::string const& directory, std::string const& text) {
  return superoffload::text::tokenizer::load(directory).encode(text);
}
