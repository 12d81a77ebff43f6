// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>

#include "instructions.hpp"

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 3) {
    return 2;
  }
  auto const examples = load_instructions(argv[1], argv[2], 64);
  std::printf("%lld examples, %lld tokens\n", static_cast<long long>(examples.size()),
              static_cast<long long>(examples.tokens()));
  return examples.tokens() > examples.size() ? 0 : 1;
} catch (superoffload::error const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return static_cast<int>(e.code());
}
