// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The memory bandwidth of this machine: the reference for every streaming kernel.
#include "stage.hpp"

#include <atomic>

namespace superoffload::bench {
namespace {

constexpr std::int64_t bytes = std::int64_t{256} << 20;
constexpr std::int64_t piece = 1 << 18;

void read(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const memory = on.numbers<float>(bytes / 4);
  auto const* const from = memory.as<std::uint64_t>();
  std::atomic<std::uint64_t> result{0};
  for (auto _ : state) {
    on.device.threads().parallel_for(bytes / 8, piece / 8, [&](std::int64_t begin, std::int64_t end) {
      std::uint64_t all[32]{};
      for (auto i = begin; i < end; i += 32) {
        for (int way = 0; way < 32; ++way) { all[way] ^= from[i + way]; }
      }
      for (auto const one : all) { result.fetch_xor(one, std::memory_order_relaxed); }
    });
  }
  benchmark::DoNotOptimize(result.load());
  count_bytes(state, bytes);
}
BENCHMARK(read)->Apply(on_threads);

void write(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const memory = on.numbers<float>(bytes / 4);
  for (auto _ : state) {
    on.device.threads().parallel_for(bytes, piece, [&](std::int64_t begin, std::int64_t end) {
      std::memset(memory.as<char>() + begin, 1, static_cast<std::size_t>(end - begin));
    });
  }
  count_bytes(state, bytes);
}
BENCHMARK(write)->Apply(on_threads);

void copy(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const from = on.numbers<float>(bytes / 4);
  auto const to = on.numbers<float>(bytes / 4);
  for (auto _ : state) {
    on.stream.copy(to.data(), from.data(), bytes);
    on.stream.synchronize();
  }
  count_bytes(state, 2.0 * bytes);
}
BENCHMARK(copy)->Apply(on_threads);

}  // namespace
}  // namespace superoffload::bench
