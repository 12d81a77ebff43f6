// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The kernels between the GEMMs. Bytes count each array as read or written once.
#include "stage.hpp"

#include <algorithm>

namespace superoffload::bench {
namespace {

constexpr std::int64_t rows = 2048;
constexpr std::int64_t columns = 2048;
constexpr std::int64_t cells = rows * columns;

template <element T>
constexpr double size = sizeof(T) * static_cast<double>(cells);

template <element T>
void rms_norm_forward(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const x = on.numbers<T>(cells);
  auto const weight = on.numbers<T>(columns);
  auto const y = on.numbers<T>(cells);
  auto const inverse_rms = on.numbers<wide<T>>(rows);
  on.measure(state, kernel::rms_norm_forward<T>{.x = x.template as<T>(),
                                                .weight = weight.template as<T>(),
                                                .y = y.template as<T>(),
                                                .inverse_rms = inverse_rms.template as<wide<T>>(),
                                                .rows = rows,
                                                .columns = columns,
                                                .epsilon = 1e-5});
  count_bytes(state, 2 * size<T>);
}
BENCHMARK(rms_norm_forward<float>)->Apply(on_threads);
BENCHMARK(rms_norm_forward<bfloat16>)->Apply(on_threads);

template <element T>
void rms_norm_backward(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const d_y = on.numbers<T>(cells);
  auto const x = on.numbers<T>(cells);
  auto const weight = on.numbers<T>(columns);
  auto const inverse_rms = on.numbers<wide<T>>(rows);
  auto const d_x = on.numbers<T>(cells);
  auto const partial = on.numbers<wide<T>>(kernel::rms_norm_blocks(rows) * columns);
  on.measure(state, kernel::rms_norm_backward<T>{.d_y = d_y.template as<T>(),
                                                 .x = x.template as<T>(),
                                                 .weight = weight.template as<T>(),
                                                 .inverse_rms = inverse_rms.template as<wide<T>>(),
                                                 .d_x = d_x.template as<T>(),
                                                 .partial = partial.template as<wide<T>>(),
                                                 .rows = rows,
                                                 .columns = columns,
                                                 .accumulate = false});
  count_bytes(state, 3 * size<T>);
}
BENCHMARK(rms_norm_backward<float>)->Apply(on_threads);
BENCHMARK(rms_norm_backward<bfloat16>)->Apply(on_threads);

template <element T>
void swiglu_forward(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const gate_up = on.numbers<T>(2 * cells);
  auto const out = on.numbers<T>(cells);
  on.measure(state, kernel::swiglu_forward<T>{gate_up.template as<T>(), out.template as<T>(), rows, columns});
  count_bytes(state, 3 * size<T>);
}
BENCHMARK(swiglu_forward<float>)->Apply(on_threads);
BENCHMARK(swiglu_forward<bfloat16>)->Apply(on_threads);

template <element T>
void swiglu_backward(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const d_out = on.numbers<T>(cells);
  auto const gate_up = on.numbers<T>(2 * cells);
  auto const d_gate_up = on.numbers<T>(2 * cells);
  on.measure(state,
             kernel::swiglu_backward<T>{d_out.template as<T>(), gate_up.template as<T>(),
                                        d_gate_up.template as<T>(), d_out.template as<T>(), rows, columns});
  count_bytes(state, 6 * size<T>);
}
BENCHMARK(swiglu_backward<float>)->Apply(on_threads);
BENCHMARK(swiglu_backward<bfloat16>)->Apply(on_threads);

template <element T>
void rotary(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  std::int32_t const dim = 64;
  auto const x = on.numbers<T>(cells);
  auto const table = on.numbers<wide<T>>(rows * dim / 2);
  buffer<cpu::device> const positions{on.device, rows * sizeof(std::int32_t)};
  for (std::int32_t row = 0; row < rows; ++row) { positions.as<std::int32_t>()[row] = row; }
  on.measure(state, kernel::rotary<T>{.x = x.template as<T>(),
                                      .positions = positions.as<std::int32_t>(),
                                      .cosines = table.template as<wide<T>>(),
                                      .sines = table.template as<wide<T>>(),
                                      .rows = rows,
                                      .stride = columns,
                                      .heads = columns / dim,
                                      .head_dim = dim,
                                      .turned = dim});
  count_bytes(state, 2 * size<T>);
}
BENCHMARK(rotary<float>)->Apply(on_threads);
BENCHMARK(rotary<bfloat16>)->Apply(on_threads);

template <element T>
void cross_entropy(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  std::int64_t const vocabulary = 32000;
  std::int64_t const tokens = 128;
  auto const logits = on.numbers<wide<T>>(tokens * vocabulary);
  auto const d_logits = on.numbers<T>(tokens * vocabulary);
  auto const row_loss = on.numbers<wide<T>>(tokens);
  buffer<cpu::device> const targets{on.device, tokens * sizeof(std::int32_t)};
  std::fill_n(targets.as<std::int32_t>(), tokens, 17);
  on.measure(state, kernel::cross_entropy<T>{.logits = logits.template as<wide<T>>(),
                                             .targets = targets.as<std::int32_t>(),
                                             .row_loss = row_loss.template as<wide<T>>(),
                                             .d_logits = d_logits.template as<T>(),
                                             .rows = tokens,
                                             .vocabulary = vocabulary,
                                             .scale = 1});
  count_bytes(state, static_cast<double>(tokens * vocabulary) * (sizeof(wide<T>) + sizeof(T)));
}
BENCHMARK(cross_entropy<float>)->Apply(on_threads);
BENCHMARK(cross_entropy<bfloat16>)->Apply(on_threads);

template <element T>
void embedding_forward(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const table = on.numbers<T>(cells);
  auto const out = on.numbers<T>(cells);
  buffer<cpu::device> const ids{on.device, rows * sizeof(std::int32_t)};
  for (std::int32_t row = 0; row < rows; ++row) {
    ids.as<std::int32_t>()[row] = row * 7 % static_cast<std::int32_t>(rows);
  }
  on.measure(state, kernel::embedding_forward<T>{table.template as<T>(), ids.as<std::int32_t>(),
                                                 out.template as<T>(), rows, columns});
  count_bytes(state, 2 * size<T>);
}
BENCHMARK(embedding_forward<bfloat16>)->Apply(on_threads);

template <element T>
void embedding_backward(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  std::int32_t const each = 4;  // rows per token
  auto const segments = static_cast<std::int32_t>(rows / each);
  auto const d_out = on.numbers<T>(cells);
  auto const gradient = on.numbers<T>(segments * columns);
  buffer<cpu::device> const order{on.device, rows * sizeof(std::int32_t)};
  buffer<cpu::device> const starts{on.device, static_cast<std::size_t>(segments + 1) * sizeof(std::int32_t)};
  buffer<cpu::device> const ids{on.device, static_cast<std::size_t>(segments) * sizeof(std::int32_t)};
  for (std::int32_t row = 0; row < rows; ++row) { order.as<std::int32_t>()[row] = row; }
  for (std::int32_t segment = 0; segment <= segments; ++segment) {
    starts.as<std::int32_t>()[segment] = segment * each;
    ids.as<std::int32_t>()[std::min(segment, segments - 1)] = std::min(segment, segments - 1);
  }
  on.measure(state, kernel::embedding_backward<T>{d_out.template as<T>(), order.as<std::int32_t>(),
                                                  starts.as<std::int32_t>(), ids.as<std::int32_t>(),
                                                  gradient.template as<T>(), segments, columns});
  count_bytes(state, size<T> * (1 + 2.0 / each));
}
BENCHMARK(embedding_backward<bfloat16>)->Apply(on_threads);

template <element T>
void add(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const a = on.numbers<T>(cells);
  auto const b = on.numbers<T>(cells);
  auto const out = on.numbers<T>(cells);
  on.measure(state, kernel::add<T>{a.template as<T>(), b.template as<T>(), out.template as<T>(), cells});
  count_bytes(state, 3 * size<T>);
}
BENCHMARK(add<float>)->Apply(on_threads);
BENCHMARK(add<bfloat16>)->Apply(on_threads);

template <element From, element To>
void convert(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const from = on.numbers<From>(cells);
  auto const to = on.numbers<To>(cells);
  on.measure(state, kernel::convert<From, To>{from.template as<From>(), to.template as<To>(), cells});
  count_bytes(state, size<From> + size<To>);
}
BENCHMARK(convert<float, bfloat16>)->Apply(on_threads);
BENCHMARK(convert<bfloat16, float>)->Apply(on_threads);

template <element T>
void column_sum(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const x = on.numbers<T>(cells);
  auto const out = on.numbers<T>(columns);
  on.measure(state, kernel::column_sum<T>{x.template as<T>(), out.template as<T>(), rows, columns});
  count_bytes(state, size<T>);
}
BENCHMARK(column_sum<float>)->Apply(on_threads);
BENCHMARK(column_sum<bfloat16>)->Apply(on_threads);

template <element T>
void square_sum(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const x = on.numbers<T>(cells);
  auto const partial = on.numbers<double>(kernel::norm_cells(cells));
  on.measure(state, kernel::square_sum<T>{x.template as<T>(), partial.as<double>(), cells});
  count_bytes(state, size<T>);
}
BENCHMARK(square_sum<float>)->Apply(on_threads);
BENCHMARK(square_sum<bfloat16>)->Apply(on_threads);

template <element T>
void sum(benchmark::State& state) {
  stage on{static_cast<int>(state.range(0))};
  auto const x = on.numbers<T>(cells);
  auto const total = on.numbers<double>(1);
  on.measure(state, kernel::sum<T>{x.template as<T>(), total.as<double>(), cells});
  count_bytes(state, size<T>);
}
BENCHMARK(sum<float>)->Apply(on_threads);

}  // namespace
}  // namespace superoffload::bench
