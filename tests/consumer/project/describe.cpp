// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "instructions.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  auto const examples = load_instructions(argv[1], argv[2], 64);
  std::printf("%lld examples, %lld tokens\n", static_cast<long long>(examples.size()),
              static_cast<long long>(examples.tokens()));
  return examples.tokens() > examples.size() ? 0 : 1;
}
