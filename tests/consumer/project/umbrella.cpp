// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What two shared libraries have of the header-only library.
#include <superoffload/superoffload.hpp>

#include <cstdint>
#include <string>
#include <vector>

/// The tokens of `text` for the model in `directory`. Each library has its own.
[[gnu::visibility("hidden")]] std::vector<std::int32_t> tokens_of(std::string const& directory,
                                                                  std::string const& text) {
  return superoffload::text::tokenizer::load(directory).encode(text);
}
