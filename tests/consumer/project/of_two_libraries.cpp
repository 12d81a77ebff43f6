// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// of_two_libraries MODEL: two shared libraries and this program each contain the header-only library, and
// agree.
#include <superoffload/core/error.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

std::vector<std::int32_t> first(std::string const& directory, std::string const& text);
std::vector<std::int32_t> second(std::string const& directory, std::string const& text);

int main(int argc, char** argv) try {
  if (argc != 2) {
    return std::fprintf(stderr, "usage: %s MODEL\n", argv[0]), 2;
  }
  std::string const text = "The cat chased the mouse.";
  auto const own = superoffload::text::tokenizer::load(argv[1]).encode(text);
  return !own.empty() && first(argv[1], text) == own && second(argv[1], text) == own ? 0 : 1;
} catch (superoffload::error const& e) { return std::fprintf(stderr, "error: %s\n", e.what()), 1; }
