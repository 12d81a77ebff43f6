// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>

#include "library.hpp"

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 4) {
    return std::fprintf(stderr, "usage: %s MODEL INSTRUCTIONS OWN_MODEL\n", argv[0]), 2;
  }
  auto const [first, last] = train_from_scratch(argv[1], argv[2]);
  auto const [first_of_own, last_of_own] = train_own_architecture(argv[3], argv[2]);
  return last < first && last_of_own < first_of_own ? 0 : 1;
} catch (superoffload::error const& e) {
  std::fprintf(stderr, "error: %s\n", e.what());
  return static_cast<int>(e.code());
}
