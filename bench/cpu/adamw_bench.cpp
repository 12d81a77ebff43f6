// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// CPU Adam compared with a plain pass over the same arrays by the same threads, in turns within one run:
// hosts of one kind differ too much to compare figures of different runs. The plain pass reads and writes the
// same data and computes almost nothing. It runs in two orders, array by array and all at once; the faster
// one counts.
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/memory_account.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cpu/pinned_threads.hpp>
#include <superoffload/cpu/state_memory.hpp>
#include <superoffload/cpu/topology.hpp>
#include <superoffload/offload/state/state_arrays.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#if defined(__x86_64__)
#define SUPEROFFLOAD_WIDEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SUPEROFFLOAD_WIDEST
#endif

namespace superoffload::bench {
namespace {

constexpr std::int64_t parameters = std::int64_t{48} << 20;

SUPEROFFLOAD_WIDEST void change(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) { x[i] *= 1.0000001F; }
}
SUPEROFFLOAD_WIDEST void change(float* x, float* y, float* z, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    x[i] *= 1.0000001F;
    y[i] *= 1.0000001F;
    z[i] *= 1.0000001F;
  }
}
SUPEROFFLOAD_WIDEST std::uint32_t read(std::uint32_t const* x, std::int64_t count) {
  std::uint32_t all = 0;
  for (std::int64_t i = 0; i < count; ++i) { all ^= x[i]; }
  return all;
}

template <element T, state_format F>
struct arrays : offload::whole_arrays<T, F> {
  T* pending;
  T* gradient;
  T* weight;
  offload::whole_arrays<T, F> next;  // another copy of the state
};

enum class order { by_array, at_once };

/// A kernel's memory traffic.
struct traffic {
  bool writes_state, reads_pending, reads_gradient, writes_weight;

  template <element T, state_format F>
  [[nodiscard]] double bytes() const {
    auto const state =
        static_cast<double>(offload::state_layout{F, sizeof(T)}.whole(parameters)) / parameters;
    return (writes_state ? 2.0 : 1.0) * state +
           static_cast<double>(sizeof(T)) * (reads_pending + reads_gradient + writes_weight);
  }
};

template <element T, state_format F>
void plain(arrays<T, F> const& a, traffic const& does, order how, cpu::slice mine) {
  constexpr std::int64_t piece = 16384;
  std::uint32_t all = 0;
  auto const reads = [&](auto const* x, std::int64_t count) {
    all ^= read(reinterpret_cast<std::uint32_t const*>(x), count * static_cast<std::int64_t>(sizeof(*x)) / 4);
  };
  for (auto i = mine.begin; i < mine.end; i += piece) {
    auto const n = std::min(piece, mine.end - i);
    if constexpr (F == state_format::float32) {
      if (does.writes_state && how == order::at_once) {
        change(a.master + i, a.m + i, a.v + i, n);
      }
    }
    if (!does.writes_state || how == order::by_array || F != state_format::float32) {
      a.each(parameters, [&](auto* array, std::int64_t count) {
        auto const per = parameters / count;  // elements of an entry
        auto* const x = array + i / per;
        auto const bytes = n / per * static_cast<std::int64_t>(sizeof(*x));
        if (does.writes_state) {
          change(reinterpret_cast<float*>(x), bytes / 4);
        } else {
          reads(reinterpret_cast<std::uint32_t const*>(x), bytes / 4);
        }
      });
    }
    if (does.reads_pending) {
      reads(a.pending + i, n);
    }
    if (does.reads_gradient && does.writes_weight) {
      std::memcpy(static_cast<void*>(a.weight + i), a.gradient + i, static_cast<std::size_t>(n) * sizeof(T));
    }
  }
  benchmark::DoNotOptimize(all);
}

double seconds_of(cpu::pinned_threads& threads, auto const& work) {
  auto const start = std::chrono::steady_clock::now();
  threads.run(work);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  auto const middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

constexpr kernel::adamw_step step{0.9999F, 0.9F, 0.999F, 0.1F, 0.001F, 1e-5F, 1.0F, 1e-8F, 1.0F};

/// `make(arrays)` returns the kernel's arguments.
template <element T, state_format F, class Make>
void measure(benchmark::State& state, traffic const& does, Make const& make) {
  auto const host = cpu::read_topology(cpu::allowed_processors());
  auto const node = host.nearest_node(-1);
  cpu::pinned_threads threads{host.processors_near(node.value_or(-1), static_cast<int>(state.range(0)))};
  memory_account account;
  std::vector<cpu::state_memory> memory;
  auto const take = [&]<class U>(std::size_t bytes) {
    memory.emplace_back(account, bytes, node);
    return memory.back().template as<U>();
  };
  auto const take_elements = [&] {
    auto* const elements = take.template operator()<T>(parameters * sizeof(T));
    threads.fill_zero(elements, parameters, sizeof(T));
    return elements;
  };
  auto const bytes_of_state = offload::state_layout{F, sizeof(T)}.whole(parameters);
  auto* const of_state = take.template operator()<std::byte>(bytes_of_state);
  auto* const of_next = take.template operator()<std::byte>(bytes_of_state);
  arrays<T, F> const a{{offload::whole_arrays<T, F>::at(of_state, parameters)},
                       take_elements(),
                       take_elements(),
                       take_elements(),
                       offload::whole_arrays<T, F>::at(of_next, parameters)};
  for (auto const& copy : {offload::whole_arrays<T, F>{a}, a.next}) {
    copy.each(parameters,
              [&](auto* array, std::int64_t count) { threads.fill_zero(array, count, sizeof(*array)); });
  }
  threads.run([&](int thread, int of) {
    auto const mine = cpu::slice_of(parameters, thread, of);
    std::minstd_rand random{static_cast<unsigned>(thread + 1)};
    std::uniform_real_distribution<float> uniform{-1, 1};
    constexpr std::int64_t piece = 4096;
    std::vector<float> master(piece), m(piece), v(piece);
    for (auto i = mine.begin; i < mine.end; i += piece) {
      auto const n = static_cast<std::size_t>(std::min(piece, mine.end - i));
      for (std::size_t j = 0; j < n; ++j) {
        auto const at = i + static_cast<std::int64_t>(j);
        master[j] = uniform(random);
        m[j] = 1e-3F * uniform(random);
        v[j] = m[j] * m[j];
        a.pending[at] = T(1e-3F * uniform(random));
        a.gradient[at] = T(1e-3F * uniform(random));
        a.weight[at] = T(master[j]);
      }
      offload::write_masters(a.master, i, std::span{master}.first(n));
      offload::write_moment<F>(a.m, offload::state_part::m, i, std::span{m}.first(n));
      offload::write_moment<F>(a.v, offload::state_part::v, i, std::span{v}.first(n));
    }
  });
  auto const kernel = make(a);
  std::vector<double> of_kernel, by_array, at_once;
  for (auto _ : state) {
    of_kernel.push_back(seconds_of(threads, [&](int thread, int of) {
      auto const mine = cpu::slice_of(parameters, thread, of);
      cpu::run(kernel.slice(mine.begin, mine.size()));
    }));
    state.SetIterationTime(of_kernel.back());
    for (auto const how : {order::by_array, order::at_once}) {
      (how == order::by_array ? by_array : at_once).push_back(seconds_of(threads, [&](int thread, int of) {
        plain(a, does, how, cpu::slice_of(parameters, thread, of));
      }));
    }
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(does.bytes<T, F>() * static_cast<double>(parameters) *
                                                    static_cast<double>(state.iterations())));
  state.counters["share_of_plain"] = std::min(median(by_array), median(at_once)) / median(of_kernel);
  state.counters["seconds_per_1e9"] = median(of_kernel) * 1e9 / static_cast<double>(parameters);
}

template <element T, state_format F = state_format::float32>
void update(benchmark::State& state) {
  constexpr traffic does{true, false, true, true};
  measure<T, F>(state, does, [](arrays<T, F> const& a) {
    return kernel::adamw_update<T, F>{a.master, a.m, a.v, a.gradient, a.weight, parameters, step};
  });
}
template <element T, state_format F = state_format::float32>
void update_in_place(benchmark::State& state) {
  constexpr traffic does{true, false, true, true};
  measure<T, F>(state, does, [](arrays<T, F> const& a) {
    return kernel::adamw_update<T, F>{a.master, a.m, a.v, a.gradient, a.gradient, parameters, step};
  });
}
template <element T, state_format F = state_format::float32>
void next_state(benchmark::State& state) {
  constexpr traffic does{true, false, true, true};
  measure<T, F>(state, does, [](arrays<T, F> const& a) {
    return kernel::adamw_next_state<T, F>{a.master, a.m,      a.v,      a.gradient, a.next.master,
                                          a.next.m, a.next.v, a.weight, parameters, step};
  });
}
template <element T, state_format F = state_format::float32>
void speculate(benchmark::State& state) {
  constexpr traffic does{false, false, true, true};
  measure<T, F>(state, does, [](arrays<T, F> const& a) {
    return kernel::adamw_speculate<T, F>{a.master, a.m, a.v, a.gradient, a.weight, parameters, step};
  });
}
template <element T, state_format F = state_format::float32>
void commit(benchmark::State& state) {
  constexpr traffic does{true, true, false, false};
  measure<T, F>(state, does, [](arrays<T, F> const& a) {
    return kernel::adamw_commit<T, F>{a.master, a.m, a.v, a.pending, parameters, step};
  });
}
template <element T, state_format F = state_format::float32>
void commit_speculate(benchmark::State& state) {
  constexpr traffic does{true, true, true, true};
  measure<T, F>(state, does, [](arrays<T, F> const& a) {
    return kernel::adamw_commit_speculate<T, F>{a.master, a.m,        a.v,  a.pending, a.gradient,
                                                a.weight, parameters, step, step};
  });
}
template <element T, state_format F = state_format::float32>
void commit_update(benchmark::State& state) {
  constexpr traffic does{true, true, true, true};
  measure<T, F>(state, does, [](arrays<T, F> const& a) {
    return kernel::adamw_commit_update<T, F>{a.master, a.m,        a.v,  a.pending, a.gradient,
                                             a.weight, parameters, step, step};
  });
}
/// One thread, then twice as many each time, then all cores but one, and all.
void on_threads(benchmark::internal::Benchmark* benchmark) {
  benchmark->UseManualTime()->Unit(benchmark::kMillisecond)->ArgName("threads")->Iterations(9);
  auto const host = cpu::read_topology(cpu::allowed_processors());
  std::vector<int> counts;
  for (int threads = 1; threads < host.cores(); threads *= 2) { counts.push_back(threads); }
  counts.push_back(std::max(1, host.cores() - 1));
  counts.push_back(host.cores());
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  for (int const threads : counts) { benchmark->Arg(threads); }
}
#define SUPEROFFLOAD_BOTH(name)                                                \
  BENCHMARK(name<bfloat16>)->Name("adamw/" #name "<bf16>")->Apply(on_threads); \
  BENCHMARK(name<float>)->Name("adamw/" #name "<float>")->Apply(on_threads);   \
  BENCHMARK(name<bfloat16, state_format::bf16>)                                \
      ->Name("adamw/" #name "<bf16>, bf16 state")                              \
      ->Apply(on_threads);                                                     \
  BENCHMARK(name<bfloat16, state_format::int8>)->Name("adamw/" #name "<bf16>, int8 state")->Apply(on_threads)
SUPEROFFLOAD_BOTH(update);
SUPEROFFLOAD_BOTH(update_in_place);
SUPEROFFLOAD_BOTH(next_state);
SUPEROFFLOAD_BOTH(speculate);
SUPEROFFLOAD_BOTH(commit);
SUPEROFFLOAD_BOTH(commit_speculate);
SUPEROFFLOAD_BOTH(commit_update);

}  // namespace
}  // namespace superoffload::bench
