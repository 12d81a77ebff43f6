// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Kernels and GEMMs of a GPU at the shapes of Llama-8B with 8192 tokens, one line of JSON each: cuda_bench
// [PART_OF_A_NAME]. Streaming kernels are compared with a plain copy in the same run, GEMMs with a large
// square one.
#include <superoffload/core/error.hpp>

#include "stage.hpp"

#include <cstdio>

int main(int argc, char** argv) try {
  superoffload::bench::stage on{argc > 1 ? argv[1] : ""};
  superoffload::bench::bench_kernels(on);
  superoffload::bench::bench_gemms(on);
  superoffload::bench::bench_grouped(on);
  return 0;
} catch (superoffload::error const& e) {
  std::fprintf(stderr, "cuda_bench: error: %s\n", e.what());
  return static_cast<int>(e.code());
}
