// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/gemm_format.hpp>
#include <superoffload/kernel/adamw.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/kernel/float8.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/offload/planning/float8_operand.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace superoffload::bench {

/// A measured lower bound of a step's seconds: GEMMs and attention of its micro-batches, recomputed FLOPs at
/// the GEMMs' rate, and the update of the state on the device. Each kind is timed alone, at the speed that
/// the device sustains.
struct step_bound {
  double gemms = 0.0, attention = 0.0, recompute = 0.0, update = 0.0;
  [[nodiscard]] double total() const { return gemms + attention + recompute + update; }
};

template <element T, device_policy D>
class bound_measurement {
public:
  /// For micro-batches of `documents` documents of `longest` tokens, which so many ranks share.
  bound_measurement(D& device, model::config const& config, std::int64_t documents, std::int64_t longest,
                    int sequence_ranks)
      : device_{device},
        config_{config},
        documents_{documents},
        longest_{longest},
        sequence_ranks_{sequence_ranks} {}

  /// The bound of a step of `micro_batches`, each with `recomputed_flops`, and an update of `parameters`
  /// whose state is stored as `state`.
  step_bound measure(std::int64_t micro_batches, double recomputed_flops, double parameters,
                     state_format state) {
    auto const rows = own_rows();
    auto const heads = config_.heads * config_.head_dim;
    auto const hidden = config_.hidden, intermediate = config_.intermediate;
    // Experts are counted as one GEMM of all their rows, in the element type.
    auto const expert_rows = rows * std::max<std::int64_t>(1, config_.experts_per_token);
    auto const of_experts = config_.experts > 0 ? gemm_format::element : config_.gemms;
    struct layer {
      std::int64_t out, in, rows;
      gemm_format format;
    };
    double flops = 0.0;
    step_bound bound;
    for (auto const [out, in, m, format] :
         {layer{heads + 2 * config_.kv_heads * config_.head_dim, hidden, rows, config_.gemms},
          layer{hidden, heads, rows, config_.gemms}, layer{2 * intermediate, hidden, expert_rows, of_experts},
          layer{hidden, intermediate, expert_rows, of_experts}}) {
      bound.gemms += of_layer(m, out, in, format);
      flops += 6.0 * static_cast<double>(m) * static_cast<double>(out) * static_cast<double>(in);
    }
    auto const layers = static_cast<double>(config_.layers);
    bound.recompute = recomputed_flops * bound.gemms / flops;
    bound.gemms *= layers;
    auto const windowed = static_cast<double>(std::count_if(config_.windows.begin(), config_.windows.end(),
                                                            [](auto window) { return window > 0; }));
    if (windowed > 0) {
      bound.attention = windowed * attention(config_.longest_window());
    }
    if (windowed < layers) {
      bound.attention += (layers - windowed) * attention(0);
    }
    bound.gemms += head();
    for (auto* const part : {&bound.gemms, &bound.attention, &bound.recompute}) {
      *part *= static_cast<double>(micro_batches);
    }
    if (parameters >= 1.0) {
      bound.update =
          parameters * with_format(state, [&]<state_format F>() { return update_of_one<F>(parameters); });
    }
    return bound;
  }

private:
  struct sizes {
    std::int64_t m, n, k;
    bool transpose_a = false, transpose_b = false, accumulate = false;
  };

  /// A buffer of small numbers: a million of them, repeated.
  buffer<D> numbers(std::int64_t count, std::size_t size) {
    buffer<D> memory{device_, static_cast<std::size_t>(count) * size};
    static std::vector<T> const block = [] {
      std::vector<T> made(std::size_t{1} << 20);
      std::uint64_t bits = 1;
      for (auto& value : made) {
        bits = bits * 6364136223846793005U + 1442695040888963407U;
        value = T(static_cast<float>(bits >> 40) * 0x1p-24F - 0.5F);
      }
      return made;
    }();
    auto* const to = static_cast<std::byte*>(memory.data());
    auto done = std::min(memory.bytes(), block.size() * sizeof(T));
    stream_.copy(to, block.data(), done);
    for (; done < memory.bytes(); done *= 2) {
      stream_.copy(to + done, to, std::min(done, memory.bytes() - done));
    }
    stream_.synchronize();
    return memory;
  }

  /// Mean seconds over as many runs as the device needs to settle, after as many others. The very first runs
  /// load code and choose algorithms.
  template <class Run>
  double seconds(Run&& run) {
    auto const of = [&](int times) {
      auto const begin = std::chrono::steady_clock::now();
      for (int i = 0; i < times; ++i) { run(); }
      stream_.synchronize();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times;
    };
    of(2);
    auto const settling = 1 + static_cast<int>(D::settling_time / of(1));
    of(settling);
    return of(settling);
  }

  /// Seconds of the update of one parameter, measured on `parameters`, or on enough to exceed all caches.
  template <state_format F>
  double update_of_one(double parameters) {
    auto const blocks = static_cast<std::int64_t>(std::min(parameters, 0x1p26)) / kernel::state_block + 1;
    auto const count = blocks * kernel::state_block;
    auto const weights = numbers(count, sizeof(T)), low = numbers(count, sizeof(kernel::low_bits<F>)),
               gradient = numbers(count, sizeof(T));
    auto const zeros = [&](std::int64_t elements, std::size_t size) {
      buffer<D> made{device_, static_cast<std::size_t>(elements) * size};
      stream_.fill_zero(made.data(), made.bytes());
      return made;
    };
    auto const size = F == state_format::float32 ? sizeof(float) : F == state_format::bf16 ? 2U : 1U;
    auto const m = zeros(count, size), v = zeros(count, size), exponents_of_m = zeros(blocks, 1),
               exponents_of_v = zeros(blocks, 1);
    auto const moments = [](buffer<D> const& numbers, [[maybe_unused]] buffer<D> const& exponents) {
      if constexpr (F == state_format::int8) {
        return kernel::block_codes{numbers.template as<std::uint8_t>(),
                                   exponents.template as<std::uint8_t>()};
      } else {
        return numbers.template as<std::remove_pointer_t<kernel::moments<F>>>();
      }
    };
    kernel::adamw<T, T, F> const update{
        weights.template as<T>(),
        std::is_same_v<T, bfloat16> ? low.template as<kernel::low_bits<F>>() : nullptr,
        moments(m, exponents_of_m),
        moments(v, exponents_of_v),
        gradient.template as<T>(),
        count,
        {1.0F, 0.9F, 0.999F, 0.1F, 0.001F, 1e-5F, 1.0F, 1e-8F, 1.0F}};
    return seconds([&] { launch(stream_, update); }) / static_cast<double>(count);
  }

  /// Of one rank.
  [[nodiscard]] std::int64_t own_rows() const { return documents_ * longest_ / sequence_ranks_; }

  /// Seconds of the three GEMMs of a linear layer. FP8 GEMMs are measured without the rounding of their
  /// operands.
  double of_layer(std::int64_t rows, std::int64_t out, std::int64_t in, gemm_format format) {
    if constexpr (std::is_same_v<T, bfloat16>) {
      if (format == gemm_format::float8) {
        auto const k = kernel::float8_stride(rows);
        return seconds_of_float8(rows, out, in) + seconds_of_float8(rows, in, out) +
               seconds_of_float8(out, in, k);
      }
    }
    return seconds_of<T>({.m = rows, .n = out, .k = in, .transpose_b = true}) +
           seconds_of<T>({.m = rows, .n = in, .k = out}) +
           seconds_of<T>({.m = out, .n = in, .k = rows, .transpose_a = true});
  }

  double seconds_of_float8(std::int64_t m, std::int64_t n, std::int64_t k) {
    auto const rounded = [this](std::int64_t rows, std::int64_t columns) {
      auto const from = numbers(rows * columns, sizeof(T));
      return offload::float8_operand<D>{device_, stream_, from.template as<T>(), rows, columns};
    };
    auto const a = rounded(m, k), b = rounded(n, k);
    buffer<D> const c{device_, static_cast<std::size_t>(m * n) * sizeof(T)};
    kernel::float8_gemm<T> const gemm{.a = a.values(),
                                      .b = b.values(),
                                      .a_inverse = a.inverse(),
                                      .b_inverse = b.inverse(),
                                      .c = c.template as<T>(),
                                      .m = m,
                                      .n = n,
                                      .k = k};
    return seconds([&] { launch(stream_, gemm); });
  }

  template <element Out>
  double seconds_of(sizes const& s) {
    auto const a = numbers(s.m * s.k, sizeof(T)), b = numbers(s.k * s.n, sizeof(T));
    buffer<D> const c{device_, static_cast<std::size_t>(s.m * s.n) * sizeof(Out)};
    stream_.fill_zero(c.data(), c.bytes());
    kernel::gemm<T, Out> const gemm{.a = a.template as<T>(),
                                    .b = b.template as<T>(),
                                    .c = c.template as<Out>(),
                                    .m = s.m,
                                    .n = s.n,
                                    .k = s.k,
                                    .transpose_a = s.transpose_a,
                                    .transpose_b = s.transpose_b,
                                    .accumulate = s.accumulate};
    return seconds([&] { launch(stream_, gemm); });
  }

  /// Seconds of the head's GEMMs, in chunks as in the loss.
  double head() {
    auto const rows = own_rows();
    auto const chunk = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(D::logits_chunk_bytes / (static_cast<std::size_t>(config_.vocabulary) *
                                                           (sizeof(T) + sizeof(wide<T>)))) /
            64 * 64,
        1, rows);
    auto const vocabulary = config_.vocabulary, hidden = config_.hidden;
    auto const once =
        seconds_of<wide<T>>({.m = chunk, .n = vocabulary, .k = hidden, .transpose_b = true}) +
        seconds_of<T>({.m = chunk, .n = hidden, .k = vocabulary}) +
        seconds_of<wide<T>>(
            {.m = vocabulary, .n = hidden, .k = chunk, .transpose_a = true, .accumulate = true});
    return once * static_cast<double>(rows) / static_cast<double>(chunk);
  }

  double attention(std::int32_t window) {
    std::vector<std::int32_t> starts;
    for (std::int64_t i = 0; i <= documents_; ++i) {
      starts.push_back(static_cast<std::int32_t>(i * longest_));
    }
    buffer<D> const device_starts{device_, starts.size() * sizeof(std::int32_t)};
    stream_.copy(device_starts.data(), starts.data(), device_starts.bytes());
    kernel::attention_shape const shape{
        .starts = device_starts.template as<std::int32_t>(),
        .documents = documents_,
        .rows = documents_ * longest_,
        .heads = static_cast<std::int32_t>(config_.heads) / sequence_ranks_,
        .kv_heads = static_cast<std::int32_t>(config_.kv_heads) / sequence_ranks_,
        .head_dim = static_cast<std::int32_t>(config_.head_dim),
        .longest = static_cast<std::int32_t>(longest_),
        .window = window,
        .scale = 1 / std::sqrt(static_cast<double>(config_.head_dim))};
    auto const width = shape.rows * shape.heads * shape.head_dim;
    auto const qkv = numbers(shape.rows * shape.qkv_columns(), sizeof(T)), d_out = numbers(width, sizeof(T));
    auto const allocate = [&](std::int64_t count, std::size_t size) {
      return buffer<D>{device_, static_cast<std::size_t>(count) * size};
    };
    auto const out = allocate(width, sizeof(T)),
               d_qkv = allocate(shape.rows * shape.qkv_columns(), sizeof(T));
    auto const log_sum_exp = allocate(shape.rows * shape.heads, sizeof(wide<T>)),
               delta = allocate(shape.rows * shape.heads, sizeof(wide<T>));
    kernel::attention_forward<T> forward{.shape = shape,
                                         .qkv = qkv.template as<T>(),
                                         .out = out.template as<T>(),
                                         .log_sum_exp = log_sum_exp.template as<wide<T>>()};
    kernel::attention_backward<T> backward{.shape = shape,
                                           .qkv = qkv.template as<T>(),
                                           .out = out.template as<T>(),
                                           .d_out = d_out.template as<T>(),
                                           .log_sum_exp = log_sum_exp.template as<wide<T>>(),
                                           .delta = delta.template as<wide<T>>(),
                                           .d_qkv = d_qkv.template as<T>()};
    buffer<D> const scratch{device_,
                            std::max(scratch_bytes(device_, forward), scratch_bytes(device_, backward))};
    forward.scratch = backward.scratch = {scratch.data(), scratch.bytes()};
    return seconds([&] { launch(stream_, forward); }) + seconds([&] { launch(stream_, backward); });
  }

  D& device_;
  model::config const& config_;
  std::int64_t documents_, longest_;
  int sequence_ranks_;
  typename D::stream stream_{device_};
};

}  // namespace superoffload::bench
