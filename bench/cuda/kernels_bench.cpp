// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The kernels that are limited by memory.
#include <superoffload/core/error.hpp>

#include "stage.hpp"

#include <algorithm>
#include <deque>
#include <numeric>
#include <random>

namespace superoffload::bench {

namespace {

constexpr std::int64_t rows = 8192, hidden = 4096, intermediate = 14336, vocabulary = 128256;
constexpr std::int32_t heads = 32, kv_heads = 8, head_dim = 128;
constexpr std::int64_t qkv_columns = std::int64_t{heads + 2 * kv_heads} * head_dim;
/// As many tokens as head and loss process at a time.
constexpr std::int64_t chunk =
    static_cast<std::int64_t>(cuda::device::logits_chunk_bytes) / (vocabulary * 6) / 64 * 64;

constexpr double bytes_of(std::int64_t elements, double size) { return static_cast<double>(elements) * size; }

/// Runs a kernel on sets of arguments in turn; `make()` returns a set and keeps its arrays in `memory`.
class rotation {
public:
  rotation(stage& on, double bytes) : on_{on}, bytes_{bytes} {}

  template <class Make>
  void report(std::string_view name, std::string_view type, std::string_view shape, Make make) {
    std::vector<decltype(make())> sets;
    for (int i = 0; i < stage::sets_of(bytes_); ++i) { sets.push_back(make()); }
    on_.report_bytes(name, type, shape, bytes_, [&](int turn) {
      launch(on_.stream, sets[static_cast<std::size_t>(turn) % sets.size()]);
    });
  }

  template <class T>
  T* numbers(std::int64_t count, double deviation = 1) {
    return memory_.emplace_back(on_.numbers<T>(count, deviation)).template as<T>();
  }
  template <class T>
  T* zeros(std::int64_t count) {
    auto& made = memory_.emplace_back(on_.allocate(static_cast<std::size_t>(count) * sizeof(T)));
    on_.stream.fill_zero(made.data(), made.bytes());
    return made.template as<T>();
  }
  float* squares(std::int64_t count, double deviation) {
    return memory_.emplace_back(on_.squares(count, deviation)).as<float>();
  }
  std::int32_t* integers(std::vector<std::int32_t> const& values) {
    return memory_.emplace_back(on_.integers(values)).as<std::int32_t>();
  }

private:
  stage& on_;
  double bytes_;
  std::deque<buffer<cuda::device>> memory_;
};

/// AdamW on bf16 and int8 state. The moments begin at zero; from the second step on they are those of a
/// training.
void stored_adamw(stage& on, std::int64_t count, kernel::adamw_step const& step) {
  {
    rotation over{on, bytes_of(count, 18)};
    kernel::adamw<bfloat16, bfloat16, state_format::bf16> const update{
        over.numbers<bfloat16>(count, 0.02),
        reinterpret_cast<std::uint16_t*>(over.numbers<bfloat16>(count)),
        over.numbers<bfloat16>(count, 1e-3),
        over.zeros<bfloat16>(count),
        over.numbers<bfloat16>(count, 1e-3),
        count,
        step};
    over.report("adamw", "bf16, state bf16", "2^28", [&] { return update; });
  }
  rotation over{on, bytes_of(count, 12 + 4.0 / kernel::state_block)};
  auto const moment = [&] {
    return kernel::block_codes{over.zeros<std::uint8_t>(count),
                               over.zeros<std::uint8_t>(count / kernel::state_block)};
  };
  kernel::adamw<bfloat16, bfloat16, state_format::int8> const update{over.numbers<bfloat16>(count, 0.02),
                                                                     over.zeros<std::uint8_t>(count),
                                                                     moment(),
                                                                     moment(),
                                                                     over.numbers<bfloat16>(count, 1e-3),
                                                                     count,
                                                                     step};
  over.report("adamw", "bf16, state int8", "2^28", [&] { return update; });
}

/// Bytes of a parameter: weight (and its master's low half), m and v read and written, the gradient read.
void adamw(stage& on) {
  constexpr std::int64_t count = std::int64_t{1} << 28;
  kernel::adamw_step const step{0.9999F, 0.9F, 0.999F, 0.1F, 0.001F, 1e-5F, 1.0F, 1e-8F, 1.0F};
  {
    rotation over{on, bytes_of(count, 26)};
    kernel::adamw<bfloat16> const update{over.numbers<bfloat16>(count, 0.02),
                                         reinterpret_cast<std::uint16_t*>(over.numbers<bfloat16>(count)),
                                         over.numbers<float>(count, 1e-3),
                                         over.squares(count, 1e-3),
                                         over.numbers<bfloat16>(count, 1e-3),
                                         count,
                                         step};
    over.report("adamw", "bf16", "2^28", [&] { return update; });
  }
  stored_adamw(on, count, step);
  rotation over{on, bytes_of(count, 28)};
  kernel::adamw<float> const update{over.numbers<float>(count, 0.02),
                                    nullptr,
                                    over.numbers<float>(count, 1e-3),
                                    over.squares(count, 1e-3),
                                    over.numbers<float>(count, 1e-3),
                                    count,
                                    step};
  over.report("adamw", "f32", "2^28", [&] { return update; });
}

void streams(stage& on) {
  constexpr std::int64_t count = rows * hidden;
  if (on.wants("add")) {
    rotation over{on, bytes_of(count, 6)};
    over.report("add", "bf16", "8192x4096", [&] {
      return kernel::add<bfloat16>{over.numbers<bfloat16>(count), over.numbers<bfloat16>(count),
                                   over.numbers<bfloat16>(count), count};
    });
  }
  constexpr std::int64_t block = std::int64_t{218} << 20;  // about a transformer block's parameters
  if (on.wants("convert")) {
    rotation over{on, bytes_of(block, 6)};
    over.report("convert", "f32 to bf16", "218 Mi", [&] {
      return kernel::convert<float, bfloat16>{over.numbers<float>(block), over.numbers<bfloat16>(block),
                                              block};
    });
  }
  if (on.wants("convert_accumulate")) {
    rotation over{on, bytes_of(block, 10)};
    over.report("convert_accumulate", "bf16 to f32", "218 Mi", [&] {
      return kernel::convert<bfloat16, float>{over.numbers<bfloat16>(block), over.numbers<float>(block),
                                              block, true};
    });
  }
  if (on.wants("square_sum")) {
    rotation over{on, bytes_of(block, 2)};
    over.report("square_sum", "bf16", "218 Mi", [&] {
      auto* const x = over.numbers<bfloat16>(block);
      return kernel::square_sum<bfloat16>{
          x, reinterpret_cast<double*>(over.numbers<float>(2 * kernel::norm_cells(block))), block};
    });
  }
}

void column_sums(stage& on) {
  for (auto const columns : {hidden, qkv_columns, 2 * intermediate}) {
    if (on.wants("column_sum")) {
      rotation over{on, bytes_of(rows * columns, 2)};
      over.report("column_sum", "bf16", concat(rows, "x", columns), [&] {
        return kernel::column_sum<bfloat16>{over.numbers<bfloat16>(rows * columns),
                                            over.numbers<bfloat16>(columns), rows, columns};
      });
    }
  }
}

void embedding(stage& on) {
  std::vector<std::int32_t> ids;
  std::minstd_rand random{7};
  for (std::int64_t i = 0; i < rows; ++i) {
    ids.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary)));
  }
  if (on.wants("embedding_forward")) {
    rotation over{on, bytes_of(rows * hidden, 4)};
    auto* const table = over.numbers<bfloat16>(vocabulary * hidden);
    over.report("embedding_forward", "bf16", "8192 of 128256x4096", [&] {
      std::shuffle(ids.begin(), ids.end(), random);
      return kernel::embedding_forward<bfloat16>{table, over.integers(ids),
                                                 over.numbers<bfloat16>(rows * hidden), rows, hidden};
    });
  }
  if (on.wants("embedding_backward")) {
    std::vector<std::int32_t> order(ids.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
      return ids[static_cast<std::size_t>(a)] < ids[static_cast<std::size_t>(b)];
    });
    std::vector<std::int32_t> starts, segments;
    for (std::size_t i = 0; i < order.size(); ++i) {
      auto const id = ids[static_cast<std::size_t>(order[i])];
      if (segments.empty() || segments.back() != id) {
        segments.push_back(id);
        starts.push_back(static_cast<std::int32_t>(i));
      }
    }
    auto const distinct = static_cast<std::int64_t>(segments.size());
    starts.push_back(static_cast<std::int32_t>(rows));
    rotation over{on, bytes_of(rows * hidden, 2) + bytes_of(distinct * hidden, 8)};
    auto* const table = over.numbers<float>(vocabulary * hidden);
    over.report("embedding_backward", "bf16 to f32", concat("8192 of 128256x4096, ", distinct, " distinct"),
                [&] {
                  return kernel::embedding_backward<bfloat16, float>{over.numbers<bfloat16>(rows * hidden),
                                                                     over.integers(order),
                                                                     over.integers(starts),
                                                                     over.integers(segments),
                                                                     table,
                                                                     distinct,
                                                                     hidden};
                });
  }
}

void norms(stage& on) {
  constexpr std::int64_t count = rows * hidden;
  if (on.wants("rms_norm_forward")) {
    rotation over{on, bytes_of(count, 4)};
    over.report("rms_norm_forward", "bf16", "8192x4096", [&] {
      return kernel::rms_norm_forward<bfloat16>{.x = over.numbers<bfloat16>(count),
                                                .weight = over.numbers<bfloat16>(hidden),
                                                .y = over.numbers<bfloat16>(count),
                                                .inverse_rms = over.numbers<float>(rows),
                                                .rows = rows,
                                                .columns = hidden,
                                                .epsilon = 1e-5};
    });
  }
  for (bool const accumulate : {false, true}) {
    auto const name = accumulate ? "rms_norm_backward_accumulate" : "rms_norm_backward";
    if (on.wants(name)) {
      rotation over{on, bytes_of(count, accumulate ? 8 : 6)};
      over.report(name, "bf16", "8192x4096", [&] {
        auto* const d_y = over.numbers<bfloat16>(count);
        return kernel::rms_norm_backward<bfloat16>{
            .d_y = d_y,
            .x = over.numbers<bfloat16>(count),
            .weight = over.numbers<bfloat16>(hidden),
            .inverse_rms = over.squares(rows, 1),
            .d_x = accumulate ? over.numbers<bfloat16>(count) : d_y,
            .partial = over.numbers<float>(kernel::rms_norm_blocks(rows) * hidden),
            .rows = rows,
            .columns = hidden,
            .accumulate = accumulate};
      });
    }
  }
  if (on.wants("rms_norm_weight")) {
    auto const blocks = kernel::rms_norm_blocks(rows);
    rotation over{on, bytes_of(blocks * hidden, 4)};
    over.report("rms_norm_weight (column_sum)", "f32 to bf16", concat(blocks, "x4096"), [&] {
      return kernel::column_sum<float, bfloat16>{over.numbers<float>(blocks * hidden),
                                                 over.numbers<bfloat16>(hidden), blocks, hidden};
    });
  }
}

void activations(stage& on) {
  constexpr std::int64_t count = rows * intermediate;
  if (on.wants("swiglu_forward")) {
    rotation over{on, bytes_of(count, 6)};
    over.report("swiglu_forward", "bf16", "8192x14336", [&] {
      return kernel::swiglu_forward<bfloat16>{over.numbers<bfloat16>(2 * count),
                                              over.numbers<bfloat16>(count), rows, intermediate};
    });
  }
  if (on.wants("swiglu_backward")) {
    rotation over{on, bytes_of(count, 12)};
    over.report("swiglu_backward", "bf16", "8192x14336", [&] {
      auto* const gate_up = over.numbers<bfloat16>(2 * count);
      auto* const out = over.numbers<bfloat16>(count);
      return kernel::swiglu_backward<bfloat16>{out, gate_up, gate_up, out, rows, intermediate};
    });
  }
  if (on.wants("rotary")) {
    constexpr std::int64_t positions = 2048;
    constexpr std::int32_t turned = heads + kv_heads;
    rotation over{on, bytes_of(rows * turned * head_dim, 4)};
    std::vector<std::int32_t> token_positions(static_cast<std::size_t>(rows));
    for (std::size_t i = 0; i < token_positions.size(); ++i) {
      token_positions[i] = static_cast<std::int32_t>(i % positions);
    }
    auto const* const cosines = over.numbers<float>(positions * head_dim / 2, 0.5);
    auto const* const sines = over.numbers<float>(positions * head_dim / 2, 0.5);
    over.report("rotary", "bf16", "8192x(40 of 48)x128", [&] {
      return kernel::rotary<bfloat16>{over.numbers<bfloat16>(rows * qkv_columns),
                                      over.integers(token_positions),
                                      cosines,
                                      sines,
                                      rows,
                                      qkv_columns,
                                      turned,
                                      head_dim,
                                      head_dim};
    });
  }
}

void loss(stage& on) {
  std::vector<std::int32_t> targets(static_cast<std::size_t>(chunk));
  for (std::size_t i = 0; i < targets.size(); ++i) {
    targets[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(vocabulary));
  }
  for (bool const gradient : {true, false}) {
    auto const name = gradient ? "cross_entropy" : "cross_entropy_without_gradient";
    if (on.wants(name)) {
      rotation over{on, bytes_of(chunk * vocabulary, gradient ? 6 : 4)};
      over.report(name, "f32 to bf16", concat(chunk, "x128256"), [&] {
        return kernel::cross_entropy<bfloat16>{
            over.numbers<float>(chunk * vocabulary, 2),
            over.integers(targets),
            over.numbers<float>(chunk),
            gradient ? over.numbers<bfloat16>(chunk * vocabulary) : nullptr,
            chunk,
            vocabulary,
            1.0 / static_cast<double>(rows)};
      });
    }
  }
}

}  // namespace

void bench_kernels(stage& on) {
  if (on.wants("adamw")) {
    adamw(on);
  }
  streams(on);
  column_sums(on);
  embedding(on);
  norms(on);
  activations(on);
  loss(on);
}

}  // namespace superoffload::bench
