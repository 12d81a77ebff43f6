// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "stage.hpp"

namespace superoffload::bench {
namespace {

/// Four documents of 512 tokens, 16 heads on 4 of keys and values, 64 wide.
template <element T>
struct heads {
  static constexpr std::int32_t documents = 4, length = 512, count = 16, kv_count = 4, dim = 64;
  static constexpr std::int64_t rows = documents * length;

  explicit heads(int threads) : on{threads} {
    for (std::int32_t document = 0; document <= documents; ++document) {
      starts.template as<std::int32_t>()[document] = document * length;
    }
    launch(on.stream, forward());
    on.stream.synchronize();
  }
  [[nodiscard]] kernel::attention_shape shape() const {
    return {.starts = starts.template as<std::int32_t>(),
            .documents = documents,
            .rows = rows,
            .heads = count,
            .kv_heads = kv_count,
            .head_dim = dim,
            .longest = length,
            .scale = 0.125};
  }
  [[nodiscard]] kernel::attention_forward<T> forward() const {
    return {.shape = shape(),
            .qkv = qkv.template as<T>(),
            .out = out.template as<T>(),
            .log_sum_exp = log_sum_exp.template as<wide<T>>()};
  }
  /// Multiplications and additions of one causal GEMM of scores, half of the square.
  static constexpr double gemm = 1.0 * documents * count * length * length * dim;

  stage on;
  buffer<cpu::device> starts{on.device, (documents + 1) * sizeof(std::int32_t)};
  buffer<cpu::device> qkv = on.numbers<T>(rows * (count + 2 * kv_count) * dim);
  buffer<cpu::device> out = on.numbers<T>(rows * count * dim);
  buffer<cpu::device> log_sum_exp = on.numbers<wide<T>>(rows * count);
};

template <element T>
void attention_forward(benchmark::State& state) {
  heads<T> of{static_cast<int>(state.range(0))};
  of.on.measure(state, of.forward());
  count_operations(state, 2 * heads<T>::gemm);
}
BENCHMARK(attention_forward<float>)->Apply(on_threads);
BENCHMARK(attention_forward<bfloat16>)->Apply(on_threads);

template <element T>
void attention_backward(benchmark::State& state) {
  using H = heads<T>;
  H of{static_cast<int>(state.range(0))};
  auto const d_out = of.on.template numbers<T>(H::rows * H::count * H::dim);
  auto const d_qkv = of.on.template numbers<T>(H::rows * (H::count + 2 * H::kv_count) * H::dim);
  auto const delta = of.on.template numbers<wide<T>>(H::rows * H::count);
  of.on.measure(state, kernel::attention_backward<T>{.shape = of.shape(),
                                                     .qkv = of.qkv.template as<T>(),
                                                     .out = of.out.template as<T>(),
                                                     .d_out = d_out.template as<T>(),
                                                     .log_sum_exp = of.log_sum_exp.template as<wide<T>>(),
                                                     .delta = delta.template as<wide<T>>(),
                                                     .d_qkv = d_qkv.template as<T>()});
  count_operations(state, 5 * H::gemm);
}
BENCHMARK(attention_backward<float>)->Apply(on_threads);
BENCHMARK(attention_backward<bfloat16>)->Apply(on_threads);

}  // namespace
}  // namespace superoffload::bench
