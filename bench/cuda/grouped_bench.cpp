// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// GEMMs by expert, at the shapes of Qwen3-30B-A3B and gpt-oss-20b with 4 x 4096 tokens whose experts are
// drawn at random, compared with a square GEMM; and the kernels that sort tokens by expert and back, compared
// with a plain copy.
#include <superoffload/core/error.hpp>

#include "stage.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

namespace superoffload::bench {

namespace {

constexpr std::int64_t tokens = 16384;

struct mixture {
  char const* name;
  std::int64_t experts, hidden, intermediate;
  std::int32_t each;
  bool by_out;  ///< matrices are [out, in]
  kernel::expert_gate gate;
};

class grouped_gemms {
public:
  grouped_gemms(stage& on, mixture const& of) : on_{on}, of_{of} {
    std::mt19937 random{7};
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(of.experts));
    std::iota(numbers.begin(), numbers.end(), 0);
    std::vector<std::int32_t> chosen;
    for (std::int64_t row = 0; row < tokens; ++row) {
      std::vector<std::int32_t> own;
      std::sample(numbers.begin(), numbers.end(), std::back_inserter(own), of.each, random);
      chosen.insert(chosen.end(), own.begin(), own.end());
    }
    chosen_ = on.integers(chosen);
    starts_ = on.allocate(static_cast<std::size_t>(of.experts + 1) * 4);
    order_ = on.allocate(static_cast<std::size_t>(choices()) * 4);
    places_ = on.allocate(static_cast<std::size_t>(choices()) * 4);
    launch(on.stream, grouping());
    on.stream.synchronize();
  }

  void report() {
    auto const gate_up = 2 * of_.intermediate;
    report_gemm("gate_up", "forward", gate_up, of_.hidden, of_.by_out);
    report_gemm("down", "forward", of_.hidden, of_.intermediate, of_.by_out);
    report_gemm("gate_up", "input gradient", of_.hidden, gate_up, !of_.by_out);
    report_gemm("down", "input gradient", of_.intermediate, of_.hidden, !of_.by_out);
    for (bool const accumulate : {false, true}) {
      report_outer("gate_up", gate_up, of_.hidden, accumulate);
      report_outer("down", of_.hidden, of_.intermediate, accumulate);
    }
    report_rows();
  }

private:
  [[nodiscard]] std::int64_t choices() const { return tokens * of_.each; }
  [[nodiscard]] kernel::row_groups groups() const {
    return {starts_.as<std::int32_t>(), of_.experts, choices()};
  }
  [[nodiscard]] kernel::group_choices grouping() const {
    return {chosen_.as<std::int32_t>(),
            starts_.as<std::int32_t>(),
            order_.as<std::int32_t>(),
            places_.as<std::int32_t>(),
            choices(),
            of_.experts};
  }

  void report_gemm(char const* name, char const* pass, std::int64_t n, std::int64_t k, bool transpose_b) {
    report_gemm(name, pass, n, k, false, [&] {
      auto const a = on_.numbers<bfloat16>(choices() * k, 0.05);
      auto const b = on_.numbers<bfloat16>(of_.experts * n * k, 0.05);
      auto const c = on_.allocate(static_cast<std::size_t>(choices() * n) * 2);
      kernel::grouped_gemm<bfloat16> const gemm{.of = groups(),
                                                .a = a.template as<bfloat16>(),
                                                .b = b.template as<bfloat16>(),
                                                .c = c.template as<bfloat16>(),
                                                .n = n,
                                                .k = k,
                                                .transpose_b = transpose_b};
      return on_.seconds([&](int) { launch(on_.stream, gemm); });
    });
  }

  void report_outer(char const* name, std::int64_t out, std::int64_t in, bool accumulate) {
    auto const m = of_.by_out ? out : in;
    auto const n = of_.by_out ? in : out;
    report_gemm(name, "weight gradient", m, n, accumulate, [&] {
      auto const a = on_.numbers<bfloat16>(choices() * m, 0.05);
      auto const b = on_.numbers<bfloat16>(choices() * n, 0.05);
      auto const c = on_.numbers<bfloat16>(of_.experts * m * n, 0.05);
      kernel::grouped_outer<bfloat16> const outer{.of = groups(),
                                                  .a = a.template as<bfloat16>(),
                                                  .b = b.template as<bfloat16>(),
                                                  .c = c.template as<bfloat16>(),
                                                  .m = m,
                                                  .n = n,
                                                  .accumulate = accumulate};
      return on_.seconds([&](int) { launch(on_.stream, outer); });
    });
  }

  template <class Seconds>
  void report_gemm(char const* name, char const* pass, std::int64_t n, std::int64_t k, bool accumulate,
                   Seconds seconds) {
    auto const full = concat("grouped ", of_.name, " ", name, " ", pass);
    if (!on_.wants(full)) {
      return;
    }
    auto const square = square_rate();
    auto const time = seconds();
    auto const reached =
        2.0 * static_cast<double>(choices()) * static_cast<double>(n) * static_cast<double>(k) / time;
    std::printf(
        "{\"grouped_product\": \"%s %s\", \"pass\": \"%s\", \"groups\": %lld, \"rows\": %lld, \"sizes\": "
        "[%lld, "
        "%lld], \"accumulate\": %s, \"microseconds\": %.1f, \"teraflops\": %.0f, \"square_teraflops\": %.0f, "
        "\"share_of_square\": %.3f}\n",
        of_.name, name, pass, static_cast<long long>(of_.experts), static_cast<long long>(choices()),
        static_cast<long long>(n), static_cast<long long>(k), accumulate ? "true" : "false", time * 1e6,
        reached * 1e-12, square * 1e-12, reached / square);
    std::fflush(stdout);
  }

  double square_rate() {
    constexpr std::int64_t size = 8192;
    auto const a = on_.numbers<bfloat16>(size * size, 0.05);
    auto const b = on_.numbers<bfloat16>(size * size, 0.05);
    auto const c = on_.allocate(static_cast<std::size_t>(size * size) * 2);
    auto const time = on_.seconds([&](int) {
      launch(on_.stream, kernel::gemm<bfloat16>{.a = a.template as<bfloat16>(),
                                                .b = b.template as<bfloat16>(),
                                                .c = c.template as<bfloat16>(),
                                                .m = size,
                                                .n = size,
                                                .k = size,
                                                .transpose_b = true});
    });
    return 2.0 * size * size * size / time;
  }

  void report_rows() {
    auto const shape = concat(of_.name, " ", choices(), " x ", of_.hidden);
    auto const row_bytes = 2.0 * static_cast<double>(of_.hidden);
    if (on_.wants("group_choices")) {
      on_.report_bytes("group_choices", "i32", shape, 12.0 * static_cast<double>(choices()),
                       [&](int) { launch(on_.stream, grouping()); });
    }
    auto const x = on_.numbers<bfloat16>(tokens * of_.hidden);
    auto const sorted = on_.numbers<bfloat16>(choices() * of_.hidden);
    if (on_.wants("gather_rows")) {
      on_.report_bytes(
          "gather_rows", "bf16", shape, row_bytes * static_cast<double>(tokens + choices()), [&](int) {
            launch(on_.stream,
                   kernel::gather_rows<bfloat16>{x.as<bfloat16>(), order_.as<std::int32_t>(),
                                                 sorted.as<bfloat16>(), choices(), of_.hidden, of_.each});
          });
    }
    if (on_.wants("combine_rows")) {
      on_.report_bytes(
          "combine_rows", "bf16", shape, row_bytes * static_cast<double>(2 * tokens + choices()), [&](int) {
            launch(on_.stream, kernel::combine_rows<bfloat16>{
                                   sorted.as<bfloat16>(), places_.as<std::int32_t>(), x.as<bfloat16>(),
                                   x.as<bfloat16>(), tokens, of_.hidden, of_.each});
          });
    }
    auto const gate_up = on_.numbers<bfloat16>(choices() * 2 * of_.intermediate);
    auto const hidden = on_.numbers<bfloat16>(choices() * of_.intermediate);
    auto const weights = on_.numbers<float>(choices());
    auto const d_weights = on_.allocate(static_cast<std::size_t>(choices()) * 4);
    auto const half = 2.0 * static_cast<double>(choices() * of_.intermediate);
    auto const narrow = concat(of_.name, " ", choices(), " x ", of_.intermediate);
    if (on_.wants("expert_swiglu forward")) {
      on_.report_bytes("expert_swiglu forward", "bf16", narrow, 3 * half, [&](int) {
        launch(on_.stream,
               kernel::expert_swiglu_forward<bfloat16>{of_.gate, gate_up.as<bfloat16>(), weights.as<float>(),
                                                       order_.as<std::int32_t>(), hidden.as<bfloat16>(),
                                                       choices(), of_.intermediate, 7.0});
      });
    }
    if (on_.wants("expert_swiglu backward")) {
      on_.report_bytes("expert_swiglu backward", "bf16", narrow, 6 * half, [&](int) {
        launch(on_.stream, kernel::expert_swiglu_backward<bfloat16>{
                               of_.gate, hidden.as<bfloat16>(), gate_up.as<bfloat16>(), weights.as<float>(),
                               order_.as<std::int32_t>(), gate_up.as<bfloat16>(), hidden.as<bfloat16>(),
                               d_weights.as<float>(), choices(), of_.intermediate, 7.0});
      });
    }
  }

  stage& on_;
  mixture of_;
  buffer<cuda::device> chosen_, starts_, order_, places_;
};

}  // namespace

void bench_grouped(stage& on) {
  mixture const mixtures[] = {{"qwen3-30b-a3b", 128, 2048, 768, 8, true, kernel::expert_gate::silu},
                              {"gpt-oss-20b", 32, 2880, 2880, 4, false, kernel::expert_gate::clamped}};
  for (auto const& one : mixtures) { grouped_gemms{on, one}.report(); }
}

}  // namespace superoffload::bench
