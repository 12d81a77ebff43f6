// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>

#include "library.hpp"

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 3) {
    return std::fprintf(stderr, "usage: %s MODEL INSTRUCTIONS\n", argv[0]), 2;
  }
  auto const [first, last] = train_from_scratch(argv[1], argv[2]);
  return last < first ? 0 : 1;
} catch (superoffload::error const& e) {
  std::fprintf(stderr, "error: %s\n", e.what());
  return static_cast<int>(e.code());
}
