// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The GEMMs of a model compared with a square one of 8192.
#include <superoffload/core/error.hpp>

#include "stage.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace superoffload::bench {

namespace {

constexpr std::int64_t tokens = 8192, hidden = 4096, intermediate = 14336, vocabulary = 128256, qkv = 6144;
constexpr std::int64_t chunk =
    static_cast<std::int64_t>(cuda::device::logits_chunk_bytes) / (vocabulary * 6) / 64 * 64;

class gemms {
public:
  explicit gemms(stage& on) : on_{on} {}

  struct shape {
    std::int64_t m, n, k;
    bool transpose_a = false, transpose_b = false, accumulate = false, addend = false, bias = false;
  };

  template <element Out>
  void report(char const* name, char const* pass, shape const& s) {
    auto const full = concat("product ", name, " ", pass);
    if (!on_.wants(full)) {
      return;
    }
    // Measured with each of them: the rate falls as the GPU warms up.
    auto const square = rate<bfloat16>({.m = 8192, .n = 8192, .k = 8192, .transpose_b = true});
    auto const reached = rate<Out>(s);
    auto const operations =
        2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    std::printf(
        "{\"product\": \"%s\", \"pass\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, \"out\": \"%s\", "
        "\"accumulate\": %s, \"addend\": %s, \"bias\": %s, \"microseconds\": %.1f, \"teraflops\": %.0f, "
        "\"square_teraflops\": %.0f, \"share_of_square\": %.3f}\n",
        name, pass, static_cast<long long>(s.m), static_cast<long long>(s.n), static_cast<long long>(s.k),
        std::is_same_v<Out, float> ? "f32" : "bf16", s.accumulate ? "true" : "false",
        s.addend ? "true" : "false", s.bias ? "true" : "false", operations / reached * 1e6, reached * 1e-12,
        square * 1e-12, reached / square);
    std::fflush(stdout);
  }

private:
  /// Floating-point operations a second.
  template <element Out>
  double rate(shape const& s) {
    auto const inputs = static_cast<double>(s.m * s.k + s.k * s.n + s.m * s.n) * 2;
    std::vector<buffer<cuda::device>> memory;
    std::vector<kernel::gemm<bfloat16, Out>> sets;
    for (int i = 0; i < std::min(4, stage::sets_of(inputs)); ++i) {
      auto const take = [&]<class T>(std::int64_t count, T) {
        return memory.emplace_back(on_.numbers<T>(count, 0.05)).template as<T>();
      };
      sets.push_back({.a = take(s.m * s.k, bfloat16{}),
                      .b = take(s.k * s.n, bfloat16{}),
                      .c = take(s.m * s.n, Out{}),
                      .m = s.m,
                      .n = s.n,
                      .k = s.k,
                      .transpose_a = s.transpose_a,
                      .transpose_b = s.transpose_b,
                      .accumulate = s.accumulate,
                      .bias = s.bias ? take(s.n, bfloat16{}) : nullptr,
                      .addend = s.addend ? take(s.m * s.n, bfloat16{}) : nullptr});
    }
    auto const time = on_.seconds(
        [&](int turn) { launch(on_.stream, sets[static_cast<std::size_t>(turn) % sets.size()]); });
    return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) / time;
  }

  stage& on_;
};

}  // namespace

void bench_gemms(stage& on) {
  gemms of{on};
  struct layer {
    char const* name;
    std::int64_t out, in;
    bool residual;
  };
  layer const layers[] = {{"qkv", qkv, hidden, false},
                          {"o", hidden, hidden, true},
                          {"gate_up", 2 * intermediate, hidden, false},
                          {"down", hidden, intermediate, true}};
  for (auto const& l : layers) {
    of.report<bfloat16>(l.name, "forward",
                        {.m = tokens, .n = l.out, .k = l.in, .transpose_b = true, .addend = l.residual});
    for (bool const accumulate : {false, true}) {
      of.report<bfloat16>(l.name, "input gradient",
                          {.m = tokens, .n = l.in, .k = l.out, .accumulate = accumulate});
      of.report<bfloat16>(
          l.name, "weight gradient",
          {.m = l.out, .n = l.in, .k = tokens, .transpose_a = true, .accumulate = accumulate});
    }
    of.report<float>(l.name, "weight gradient",
                     {.m = l.out, .n = l.in, .k = tokens, .transpose_a = true, .accumulate = true});
  }
  of.report<bfloat16>("qkv", "forward with bias",
                      {.m = tokens, .n = qkv, .k = hidden, .transpose_b = true, .bias = true});
  of.report<bfloat16>(
      "o", "forward with bias",
      {.m = tokens, .n = hidden, .k = hidden, .transpose_b = true, .addend = true, .bias = true});
  of.report<float>("head", "forward", {.m = chunk, .n = vocabulary, .k = hidden, .transpose_b = true});
  of.report<bfloat16>("head", "input gradient", {.m = chunk, .n = hidden, .k = vocabulary});
  for (bool const accumulate : {false, true}) {
    of.report<float>(
        "head", "weight gradient",
        {.m = vocabulary, .n = hidden, .k = chunk, .transpose_a = true, .accumulate = accumulate});
  }
}

}  // namespace superoffload::bench
