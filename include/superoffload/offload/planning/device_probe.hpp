// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/state_format.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/kernel/float8.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/kernel/grouped_gemm.hpp>
#include <superoffload/offload/planning/float8_operand.hpp>
#include <superoffload/offload/planning/least_seconds.hpp>
#include <superoffload/offload/planning/machine.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <thread>

namespace superoffload::offload {

/// The sizes at which a machine is measured: those of the steps to plan. They are reduced where a measurement
/// would take more than milliseconds, or seconds for state in host memory.
struct probe {
  /// @{
  /// Of the largest common linear layer, or an expert's: Y [rows, columns] = X [rows, inner] W^T.
  std::int64_t rows = 1, inner = 1, columns = 1;
  /// @}
  /// The experts of a layer; 0: none.
  std::int64_t experts = 0, each = 0;           ///< the experts of a token; 0: none
  bool float8 = false;                          ///< are FP8 GEMMs measured?
  kernel::attention_shape attention{};          ///< of one micro-batch; its `starts` are not read
  std::int64_t bucket = 1;                      ///< elements of the largest bucket
  std::int64_t state = 1;                       ///< elements of all of them
  state_format format = state_format::float32;  ///< of the optimizer state
  double cores_share = 0.9;                     ///< of the cores, for CPU Adam
};

namespace detail {

/// Measures the device: its memory bandwidth, its kernels, and the round trip to the host.
template <element T, device_policy D>
class device_probe {
public:
  explicit device_probe(D& device) : device_{&device}, stream_{device} {
    // Realistic numbers: with zeros a GPU draws less power and runs faster.
    std::uint32_t state = 1;
    auto* const numbers = pattern_.template as<T>();
    for (std::size_t i = 0; i < pattern_.bytes() / sizeof(T); ++i) {
      state = state * 1664525U + 1013904223U;
      numbers[i] = T(static_cast<float>(state >> 16) * 0x1p-16F - 0.5F);
    }
  }
  ~device_probe() { drain(stream_); }
  device_probe(device_probe const&) = delete;
  device_probe& operator=(device_probe const&) = delete;

  void measure(probe const& p, machine& m) {
    auto& d = m.device;
    d.round_trip = round_trip();
    d.bandwidth = bandwidth(p);
    double const flops = patience * D::flops_per_byte * d.bandwidth;
    gemms(p, flops, d);
    if (p.experts > 0) {
      d.grouped_gemms = grouped_gemms(p, flops);
    }
    if constexpr (std::same_as<T, bfloat16>) {
      if (p.float8) {
        d.float8_gemms = float8_gemms(p, flops);
      }
    }
    attention(p, flops, d);
  }

private:
  /// About the seconds that a measurement may take.
  static constexpr double patience = 5e-3;
  /// Larger GEMMs and batches run at the same rate.
  static constexpr std::int64_t most_rows = 16384;

  buffer<D> numbers(std::int64_t count) {
    buffer<D> b{*device_, static_cast<std::size_t>(count) * sizeof(T)};
    drain_at_end const drained{stream_};  // the caller's next allocation may throw
    for (std::size_t done = 0; done < b.bytes(); done += pattern_.bytes()) {
      stream_.copy(b.template as<std::byte>() + done, pattern_.data(),
                   std::min(pattern_.bytes(), b.bytes() - done));
    }
    return b;
  }
  /// The starts of `groups` equal groups of `rows` rows: [groups + 1] int32 in device memory.
  buffer<D> starts_of(std::int64_t groups, std::int64_t rows) {
    buffer<D> const on_host{*device_, static_cast<std::size_t>(groups + 1) * sizeof(std::int32_t),
                            memory::host};
    buffer<D> starts{*device_, on_host.bytes()};
    drain_at_end const drained{stream_};
    for (std::int64_t i = 0; i <= groups; ++i) {
      on_host.template as<std::int32_t>()[i] = static_cast<std::int32_t>(rows * i / groups);
    }
    stream_.copy(starts.data(), on_host.data(), starts.bytes());
    stream_.synchronize();
    return starts;
  }
  template <class Arguments>
  double seconds(Arguments const& arguments) {
    drain_at_end const drained{stream_};  // the arguments point into the caller's buffers
    return least_seconds([&] {
      launch(stream_, arguments);
      stream_.synchronize();
    });
  }
  /// Seconds of what queue() queues, on average.
  template <class Queue>
  double seconds_of(Queue const& queue, int times) {
    drain_at_end const drained{stream_};
    auto const begin = clock::now();
    for (int i = 0; i < times; ++i) { queue(); }
    stream_.synchronize();
    return seconds_since(begin) / times;
  }
  template <class Queue>
  double fresh_seconds(Queue const& queue) {
    return least_seconds([&] { seconds_of(queue, 1); });
  }
  /// At the speed that the device sustains. `fresh`: seconds before it settles.
  template <class Queue>
  double sustained_seconds(Queue const& queue, double fresh) {
    auto const settling = static_cast<int>(D::settling_time / fresh);
    if (settling == 0) {
      return fresh;
    }
    seconds_of(queue, settling);
    return seconds_of(queue, settling);
  }
  template <class Queue>
  double sustained_seconds(Queue const& queue) {
    return sustained_seconds(queue, fresh_seconds(queue));
  }

  double round_trip() {
    buffer<D> const number{*device_, sizeof(double)};
    drain_at_end const drained{stream_};
    return least_seconds(
        [&] {
          stream_.fill_zero(number.data(), number.bytes());
          stream_.synchronize();
        },
        8);
  }

  double bandwidth(probe const& p) {
    auto const n = std::min(std::min(p.rows, most_rows) * p.columns, std::int64_t{32} << 20);
    auto const a = numbers(n), b = numbers(n), c = numbers(n);
    return 3.0 * static_cast<double>(n) * sizeof(T) /
           seconds(kernel::add<T>{a.template as<T>(), b.template as<T>(), c.template as<T>(), n});
  }

  /// The three GEMMs of a linear layer: its output, and the gradients of its input and of its weight. A step
  /// does equally many of each.
  void gemms(probe const& p, double flops, machine::device_part& part) {
    auto const of_row = 2 * p.inner * p.columns;
    auto const rows = std::clamp(static_cast<std::int64_t>(flops / static_cast<double>(of_row)),
                                 std::int64_t{1}, std::min(p.rows, most_rows));
    auto const x = numbers(rows * p.inner), w = numbers(p.columns * p.inner), y = numbers(rows * p.columns);
    // No GEMM reads what another has written: numbers would grow.
    auto const d_x = numbers(rows * p.inner), d_w = numbers(p.columns * p.inner);
    auto* const input = x.template as<T>();
    auto* const weight = w.template as<T>();
    auto* const output = y.template as<T>();
    auto const queue = [&] {
      launch(stream_, kernel::gemm<T>{.a = input,
                                      .b = weight,
                                      .c = output,
                                      .m = rows,
                                      .n = p.columns,
                                      .k = p.inner,
                                      .transpose_b = true});
      launch(
          stream_,
          kernel::gemm<T>{
              .a = output, .b = weight, .c = d_x.template as<T>(), .m = rows, .n = p.inner, .k = p.columns});
      launch(stream_, kernel::gemm<T>{.a = output,
                                      .b = input,
                                      .c = d_w.template as<T>(),
                                      .m = p.columns,
                                      .n = p.inner,
                                      .k = rows,
                                      .transpose_a = true});
    };
    seconds_of(queue, 1);  // which may also choose algorithms, at full power
    std::this_thread::sleep_for(std::chrono::duration<double>{2.0 * D::settling_time});
    double const rested = fresh_seconds(queue), sustained = sustained_seconds(queue, rested);
    part.gemms = 3.0 * static_cast<double>(rows * of_row) / sustained;
    part.rested = std::max(1.0, sustained / rested);
  }

  /// The same in 8 bits, with inputs that are rounded already.
  double float8_gemms(probe const& p, double flops) {
    auto const of_row = 2 * p.inner * p.columns;
    auto const rows =
        kernel::float8_stride(std::clamp(static_cast<std::int64_t>(2.0 * flops / static_cast<double>(of_row)),
                                         std::int64_t{1}, std::min(p.rows, most_rows)));
    auto const x = rounded(rows, p.inner), w = rounded(p.columns, p.inner);
    auto const d_y = rounded(rows, p.columns);
    auto const y = numbers(rows * p.columns), d_x = numbers(rows * p.inner),
               d_w = numbers(p.columns * p.inner);
    return 3.0 * static_cast<double>(rows * of_row) / sustained_seconds([&] {
             launch(stream_, kernel::float8_gemm<T>{.a = x.values(),
                                                    .b = w.values(),
                                                    .a_inverse = x.inverse(),
                                                    .b_inverse = w.inverse(),
                                                    .c = y.template as<T>(),
                                                    .m = rows,
                                                    .n = p.columns,
                                                    .k = p.inner});
             launch(stream_, kernel::float8_gemm<T>{.a = d_y.values(),
                                                    .b = w.transposed(),
                                                    .a_inverse = d_y.inverse(),
                                                    .b_inverse = w.inverse(),
                                                    .c = d_x.template as<T>(),
                                                    .m = rows,
                                                    .n = p.inner,
                                                    .k = p.columns});
             launch(stream_, kernel::float8_gemm<T>{.a = d_y.transposed(),
                                                    .b = x.transposed(),
                                                    .a_inverse = d_y.inverse(),
                                                    .b_inverse = x.inverse(),
                                                    .c = d_w.template as<T>(),
                                                    .m = p.columns,
                                                    .n = p.inner,
                                                    .k = rows});
           });
  }
  float8_operand<D> rounded(std::int64_t rows, std::int64_t columns) {
    auto const from = numbers(rows * columns);
    return {*device_, stream_, from.template as<T>(), rows, columns};
  }

  /// The same for experts with equally many rows each.
  double grouped_gemms(probe const& p, double flops) {
    auto const of_row = 2 * p.inner * p.columns;
    auto const rows = std::clamp(static_cast<std::int64_t>(flops / static_cast<double>(of_row)),
                                 std::int64_t{1}, std::min(p.rows, most_rows) * p.each);
    auto const starts = starts_of(p.experts, rows);
    kernel::row_groups const groups{starts.template as<std::int32_t>(), p.experts, rows};
    auto const matrices = p.experts * p.inner * p.columns;
    auto const x = numbers(rows * p.inner), w = numbers(matrices), y = numbers(rows * p.columns);
    auto const d_x = numbers(rows * p.inner), d_w = numbers(matrices);
    return 3.0 * static_cast<double>(rows * of_row) / sustained_seconds([&] {
             launch(stream_, kernel::grouped_gemm<T>{.of = groups,
                                                     .a = x.template as<T>(),
                                                     .b = w.template as<T>(),
                                                     .c = y.template as<T>(),
                                                     .n = p.columns,
                                                     .k = p.inner,
                                                     .transpose_b = true});
             launch(stream_, kernel::grouped_gemm<T>{.of = groups,
                                                     .a = y.template as<T>(),
                                                     .b = w.template as<T>(),
                                                     .c = d_x.template as<T>(),
                                                     .n = p.inner,
                                                     .k = p.columns});
             launch(stream_, kernel::grouped_outer<T>{.of = groups,
                                                      .a = y.template as<T>(),
                                                      .b = x.template as<T>(),
                                                      .c = d_w.template as<T>(),
                                                      .m = p.columns,
                                                      .n = p.inner});
           });
  }

  void attention(probe const& p, double flops, machine::device_part& d) {
    auto shape = p.attention;
    double const of_pair = 4.0 * shape.heads * shape.head_dim;
    // FLOPs as nn::attention_function counts them: half of the square of each document.
    auto const flops_of = [&](std::int64_t documents, std::int64_t length) {
      return of_pair * static_cast<double>(documents) * 0.5 * static_cast<double>(length * length);
    };
    shape.longest = static_cast<std::int32_t>(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::sqrt(2.0 * flops / of_pair)), 1,
                                 std::min<std::int64_t>(shape.longest, most_rows)));
    shape.documents =
        std::clamp(static_cast<std::int64_t>(flops / flops_of(1, shape.longest)), std::int64_t{1},
                   std::max<std::int64_t>(1, std::min(p.rows, most_rows) / shape.longest));
    shape.rows = shape.documents * shape.longest;
    auto const starts = starts_of(shape.documents, shape.rows);
    shape.starts = starts.template as<std::int32_t>();

    auto const width = std::int64_t{shape.heads} * shape.head_dim;
    auto const qkv = numbers(shape.rows * shape.qkv_columns()), out = numbers(shape.rows * width),
               d_out = numbers(shape.rows * width), d_qkv = numbers(shape.rows * shape.qkv_columns());
    auto const per_row = static_cast<std::size_t>(shape.heads * shape.rows) * sizeof(wide<T>);
    buffer<D> const sums{*device_, per_row}, delta{*device_, per_row};
    double const done = flops_of(shape.documents, shape.longest);
    d.attention_forward =
        done / with_scratch(kernel::attention_forward<T>{shape, qkv.template as<T>(), out.template as<T>(),
                                                         sums.template as<wide<T>>()});
    d.attention_backward =
        2.5 * done /
        with_scratch(kernel::attention_backward<T>{shape, qkv.template as<T>(), out.template as<T>(),
                                                   d_out.template as<T>(), sums.template as<wide<T>>(),
                                                   delta.template as<wide<T>>(), d_qkv.template as<T>()});
  }
  template <class Arguments>
  double with_scratch(Arguments arguments) {
    buffer<D> const scratch{*device_, scratch_bytes(*device_, arguments)};
    arguments.scratch = {scratch.data(), scratch.bytes()};
    return seconds(arguments);
  }

  D* device_;
  typename D::stream stream_;
  buffer<D> pattern_{*device_, std::size_t{4} << 20, memory::host};
};

}  // namespace detail
}  // namespace superoffload::offload
