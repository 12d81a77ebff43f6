// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// CPU Adam beside a plain read-modify-write of the same arrays by the same threads, in turns within one run:
// hosts of one kind differ too much for figures of different runs to be compared.
#include "stage.hpp"

#include <chrono>

namespace superoffload::bench {
namespace {

constexpr std::int64_t parameters = std::int64_t{32} << 20;
constexpr std::int64_t piece = 16384;

template <class Work>
double seconds_of(Work const& work) {
  auto const start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Touches what adamw<T> touches: w, m and v read and written, g read, the working weight written.
template <element T>
void touch(kernel::adamw<T> const& a, std::int64_t begin, std::int64_t end) {
  for (float* const x : {a.master, a.m, a.v}) {
    for (auto i = begin; i < end; ++i) { x[i] *= 1.0000001F; }
  }
  if constexpr (std::same_as<T, bfloat16>) {
    std::memcpy(static_cast<void*>(a.weight + begin), a.gradient + begin,
                static_cast<std::size_t>(end - begin) * 2);
  } else {
    float all[16]{};
    for (auto i = begin; i + 16 <= end; i += 16) {
      for (int way = 0; way < 16; ++way) { all[way] += a.gradient[i + way]; }
    }
    benchmark::DoNotOptimize(all);
  }
}

template <element T>
void adamw(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const master = on.numbers<float>(parameters);
  auto const m = on.numbers<float>(parameters);
  auto const v = on.numbers<float>(parameters);
  auto const gradient = on.numbers<T>(parameters);
  auto const working = on.numbers<T>(std::same_as<T, float> ? 0 : parameters);
  for (std::int64_t i = 0; i < parameters; ++i) { v.as<float>()[i] = v.as<float>()[i] * v.as<float>()[i]; }
  kernel::adamw<T> const arguments{
      .master = master.as<float>(),
      .m = m.as<float>(),
      .v = v.as<float>(),
      .gradient = gradient.template as<T>(),
      .weight = std::same_as<T, float> ? master.template as<T>() : working.template as<T>(),
      .count = parameters,
      .step = {0.9999F, 0.9F, 0.999F, 0.1F, 0.001F, 1e-5F, 1.0F, 1e-8F, 1.0F}};
  double updating = 0;
  double touching = 0;
  for (auto _ : state) {
    updating += seconds_of([&] {
      launch(on.stream, arguments);
      on.stream.synchronize();
    });
    state.PauseTiming();
    touching += seconds_of([&] {
      on.device.threads().parallel_for(
          parameters, piece, [&](std::int64_t begin, std::int64_t end) { touch(arguments, begin, end); });
    });
    state.ResumeTiming();
  }
  count_bytes(state, static_cast<double>(parameters) * 28);
  state.counters["share_of_plain"] = touching / updating;
  state.counters["parameters/s"] =
      benchmark::Counter(static_cast<double>(parameters), benchmark::Counter::kIsIterationInvariantRate,
                         benchmark::Counter::kIs1000);
}
BENCHMARK(adamw<bfloat16>)->Apply(on_threads);
BENCHMARK(adamw<float>)->Apply(on_threads);

}  // namespace
}  // namespace superoffload::bench
