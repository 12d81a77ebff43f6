// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstring>
#include <random>

namespace superoffload::bench {

/// A device with as many threads as the benchmark's last argument, and arrays on it.
struct stage {
  explicit stage(int threads) : device{threads}, stream{device} {}

  cpu::device device;
  cpu::stream stream;

  /// Uniform numbers in [-1, 1).
  template <class T>
  buffer<cpu::device> numbers(std::int64_t count) {
    buffer<cpu::device> memory{device, static_cast<std::size_t>(count) * sizeof(T)};
    auto* const values = memory.as<T>();
    device.threads().parallel_for(count, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
      std::minstd_rand random{static_cast<unsigned>(begin + 1)};
      std::uniform_real_distribution<float> uniform{-1, 1};
      for (auto i = begin; i < end; ++i) { values[i] = T(uniform(random)); }
    });
    return memory;
  }

  /// Launches and waits, once per iteration.
  template <class Arguments>
  void measure(benchmark::State& state, Arguments const& arguments) {
    launch(stream, arguments);
    stream.synchronize();
    for (auto _ : state) {
      launch(stream, arguments);
      stream.synchronize();
    }
  }
};

inline void count_bytes(benchmark::State& state, double bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes * static_cast<double>(state.iterations())));
}

inline void count_operations(benchmark::State& state, double operations) {
  state.counters["FLOP/s"] = benchmark::Counter(operations, benchmark::Counter::kIsIterationInvariantRate,
                                                benchmark::Counter::kIs1000);
}

/// One thread, then all.
inline void on_threads(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseRealTime()
      ->MeasureProcessCPUTime()
      ->Unit(benchmark::kMicrosecond)
      ->ArgName("threads")
      ->Arg(1);
  if (auto const cores = cpu::usable_cores(); cores > 1) {
    benchmark->Arg(cores);
  }
}

}  // namespace superoffload::bench
