// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "stage.hpp"

#include <vector>

namespace superoffload::bench {
namespace {

/// Arguments: m, n, k, form (0: a b^T as in forward, 1: a b for the gradient of the input, 2: a^T b for the
/// gradient of the weight), threads.
template <element T>
void gemm(benchmark::State& state) {
  stage on{static_cast<int>(state.range(4))};
  auto const m = state.range(0);
  auto const n = state.range(1);
  auto const k = state.range(2);
  auto const a = on.numbers<T>(m * k);
  auto const b = on.numbers<T>(k * n);
  auto const c = on.numbers<T>(m * n);
  on.measure(state, kernel::gemm<T>{.a = a.template as<T>(),
                                    .b = b.template as<T>(),
                                    .c = c.template as<T>(),
                                    .m = m,
                                    .n = n,
                                    .k = k,
                                    .transpose_a = state.range(3) == 2,
                                    .transpose_b = state.range(3) == 0});
  count_operations(state, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseRealTime()
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMicrosecond)
      ->ArgNames({"m", "n", "k", "form", "threads"});
  std::vector<std::int64_t> threads{1};
  if (auto const cores = cpu::usable_cores(); cores > 1) {
    threads.push_back(cores);
  }
  for (auto const count : threads) {
    for (std::int64_t const form : {0, 1, 2}) {
      benchmark->Args({512, 128, 128, form, count});
      benchmark->Args({1024, 768, 256, form, count});
      benchmark->Args({1024, 2048, 2048, form, count});
    }
  }
}
BENCHMARK(gemm<float>)->Apply(shapes);
BENCHMARK(gemm<bfloat16>)->Apply(shapes);

}  // namespace
}  // namespace superoffload::bench
