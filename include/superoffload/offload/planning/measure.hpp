// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/function_ref.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cpu/memory.hpp>
#include <superoffload/cpu/pinned_threads.hpp>
#include <superoffload/cpu/state_memory.hpp>
#include <superoffload/cpu/topology.hpp>
#include <superoffload/kernel/adamw.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/kernel/deferred_adamw.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/kernel/float8.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/kernel/grouped_gemm.hpp>
#include <superoffload/offload/planning/float8_operand.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/state/adam_workers.hpp>
#include <superoffload/offload/state/state_arrays.hpp>
#include <superoffload/offload/state/state_bytes.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <deque>
#include <future>
#include <limits>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

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

/// What is known of this machine without measuring: its free memory and its cores. All times are zero.
template <device_policy D>
machine this_machine(D const& device) {
  machine m;
  m.name = device.description();
  m.device.memory = device.available_bytes();
  m.device.is_the_host = std::derived_from<D, cpu::device>;
  m.host.memory = cpu::available_bytes();
  m.host.reserve = machine::host_reserve(m.host.memory);
  m.device.reserve = m.device.is_the_host ? m.host.reserve : 0;
  m.host.cores = cpu::physical_cores();
  return m;
}

namespace detail {

using clock = std::chrono::steady_clock;
inline double seconds_since(clock::time_point begin) {
  return std::chrono::duration<double>(clock::now() - begin).count();
}
/// The shortest of several runs of work(), which waits for its own end. The first run is not counted.
template <class Work>
double least_seconds(Work&& work, int runs = 3) {
  work();
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    auto const begin = clock::now();
    work();
    least = std::min(least, seconds_since(begin));
  }
  return least;
}

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

/// Keeps one direction of the link busy, and counts what it copies.
template <device_policy D>
class busy_direction {
public:
  explicit busy_direction(D& device) : device_{&device} {}

  /// Queues copies as earlier ones end, since a stream takes a limited number.
  template <class Copy>
  void keep_up(typename D::stream& stream, Copy const& copy) {
    for (; !queued_.empty() && queued_.front().done(); queued_.pop_front()) {
      auto const now = clock::now();
      if (last_) {
        ++copies_;
        seconds_ += std::chrono::duration<double>(now - *last_).count();
      }
      last_ = now;
    }
    while (queued_.size() < at_once) {
      copy();
      stream.record(queued_.emplace_back(*device_));
    }
  }
  /// Waits for what is queued, which no longer counts.
  void pause(typename D::stream& stream) {
    stream.synchronize();
    queued_.clear();
    last_.reset();
  }
  /// Copies per second while it was kept busy; 0: none is known.
  [[nodiscard]] double per_second() const {
    return seconds_ > 0.0 ? static_cast<double>(copies_) / seconds_ : 0.0;
  }

private:
  static constexpr std::size_t at_once = 4;

  D* device_;
  std::deque<typename D::event> queued_;
  std::optional<clock::time_point> last_;  ///< when a copy ended
  std::int64_t copies_ = 0;
  double seconds_ = 0.0;
};

/// Copies whole buckets in both directions, each in its own stream. On the host, each direction has so many
/// buckets that they do not fit the caches, as in a run.
template <device_policy D>
class link_probe {
public:
  /// `bytes`: of a bucket; `most_buckets`: the buckets of a run.
  link_probe(D& device, std::size_t bytes, std::size_t most_buckets)
      : device_{&device},
        down_{device},
        up_{device},
        bytes_{bytes},
        buckets_{
            std::clamp<std::size_t>(2 * cached_bytes() / bytes, 1, std::max<std::size_t>(1, most_buckets))},
        on_device_{device, 2 * bytes},
        on_host_{device, 2 * buckets_ * bytes, memory::host} {
    drain_at_end const drained{down_};
    down_.fill_zero(on_device_.data(), on_device_.bytes());
    for (std::size_t i = 0; i < 2 * buckets_; ++i) {
      down_.copy(on_host_.template as<std::byte>() + i * bytes_, on_device_.data(), bytes_);
    }
    down_.synchronize();
  }
  ~link_probe() {
    drain(down_);
    drain(up_);
  }
  link_probe(link_probe const&) = delete;
  link_probe& operator=(link_probe const&) = delete;

  void measure(machine::link_part& link) {
    link.latency =
        least_seconds([&] { copy(down_, &link_probe::copy_down, small_copies, 1); }) / small_copies;
    double const all = static_cast<double>(bytes_) * copies;
    link.alone.down = all / least_seconds([&] { copy(down_, &link_probe::copy_down, copies, bytes_); });
    link.alone.up = all / least_seconds([&] { copy(up_, &link_probe::copy_up, copies, bytes_); });
    // The directions need not be equally fast, and the one that ends first would leave the other alone.
    busy_direction<D> down{*device_}, up{*device_};
    busy_during(&down, &up, [&] {
      std::this_thread::sleep_for(std::chrono::duration<double>{8.0 * all / link.alone.down});
    });
    link.both = {std::min(rate_of(down, link.alone.down), link.alone.down),
                 std::min(rate_of(up, link.alone.up), link.alone.up)};
  }
  /// Bytes per second, or `otherwise` if nothing is known.
  [[nodiscard]] double rate_of(busy_direction<D> const& direction, double otherwise) const {
    double const rate = direction.per_second() * static_cast<double>(bytes_);
    return rate > 0.0 ? rate : otherwise;
  }

  /// Keeps one direction or both (null: not this one) busy while work() runs in a thread of its own.
  void busy_during(busy_direction<D>* down, busy_direction<D>* up, function_ref<void()> work) {
    std::atomic<bool> ended = false;
    auto working = std::async(std::launch::async, [&] {
      struct end {
        std::atomic<bool>* of;
        ~end() { *of = true; }
      } const at_end{&ended};
      work();
    });
    while (!ended) {
      if (down != nullptr) {
        down->keep_up(down_, [this] { copy_down(bytes_); });
      }
      if (up != nullptr) {
        up->keep_up(up_, [this] { copy_up(bytes_); });
      }
      std::this_thread::sleep_for(std::chrono::microseconds{20});
    }
    if (down != nullptr) {
      down->pause(down_);
    }
    if (up != nullptr) {
      up->pause(up_);
    }
    working.get();
  }

private:
  static constexpr int copies = 4, small_copies = 32;

  static std::size_t cached_bytes() {
    return static_cast<std::size_t>(cpu::largest_cache_bytes(cpu::allowed_processors().front()));
  }
  void copy_down(std::size_t bytes) { down_.copy(next_on_host(next_down_, 0), on_device_.data(), bytes); }
  void copy_up(std::size_t bytes) {
    up_.copy(on_device_.template as<std::byte>() + bytes_, next_on_host(next_up_, buckets_), bytes);
  }
  std::byte* next_on_host(std::size_t& next, std::size_t first) {
    next = (next + 1) % buckets_;
    return on_host_.template as<std::byte>() + (first + next) * bytes_;
  }
  void copy(typename D::stream& stream, void (link_probe::*one)(std::size_t), int times, std::size_t bytes) {
    for (int i = 0; i < times; ++i) { (this->*one)(bytes); }
    stream.synchronize();
  }

  D* device_;
  typename D::stream down_, up_;
  std::size_t bytes_, buckets_, next_down_ = 0, next_up_ = 0;
  buffer<D> on_device_, on_host_;
};

/// Measures CPU Adam on the state of buckets, with the threads that a run will have.
template <element T>
class adam_probe {
public:
  /// Takes as many buckets as `state` elements are, and no more than fit `most_bytes`.
  adam_probe(adam_workers& workers, memory_account& account, std::int64_t count, std::int64_t state,
             state_format format, std::size_t most_bytes)
      : threads_{&workers.threads()},
        format_{format},
        count_{(count + kernel::state_block - 1) / kernel::state_block * kernel::state_block},
        of_bucket_{state_layout{format, sizeof(T)}.whole(count_)},
        buckets_{std::max<std::int64_t>(
            1,
            std::min(state / count, static_cast<std::int64_t>(most_bytes / (of_bucket_ + pinned_bytes()))))},
        state_{account, static_cast<std::size_t>(buckets_) * of_bucket_, workers.node()},
        pinned_{account, static_cast<std::size_t>(buckets_) * pinned_bytes(), workers.node()} {
    drain_at_end const drained{*threads_};
    for (std::int64_t i = 0; i < buckets_; ++i) {
      threads_->fill_zero(state_of(i), static_cast<std::int64_t>(of_bucket_), 1);
      threads_->fill_zero(pinned_of(i, 0), 3 * count_, sizeof(T));
    }
    threads_->synchronize();
  }

  [[nodiscard]] std::int64_t buckets() const noexcept { return buckets_; }
  void run(adam_task task, std::int64_t bucket) { run(task, bucket, count_); }
  /// Seconds of a task without work.
  double latency() {
    return least_seconds([&] { run(adam_task::update, 0, kernel::state_block); }, 8);
  }

private:
  [[nodiscard]] std::size_t pinned_bytes() const { return static_cast<std::size_t>(3 * count_) * sizeof(T); }
  [[nodiscard]] std::byte* state_of(std::int64_t bucket) const {
    return state_.as<std::byte>() + bucket * static_cast<std::int64_t>(of_bucket_);
  }
  [[nodiscard]] T* pinned_of(std::int64_t bucket, int i) const {
    return pinned_.as<T>() + (3 * bucket + i) * count_;
  }

  void run(adam_task task, std::int64_t bucket, std::int64_t count) {
    with_format(format_, [&]<state_format F>() { run<F>(task, bucket, count); });
  }
  template <state_format F>
  void run(adam_task task, std::int64_t bucket, std::int64_t count) {
    auto const [w, m, v] = whole_arrays<T, F>::at(state_of(bucket), count_);
    auto* const pending = pinned_of(bucket, 0);
    auto* const gradient = pinned_of(bucket, 1);
    auto* const weight = pinned_of(bucket, 2);
    switch (task) {
      case adam_task::update:
        return share(kernel::adamw_update<T, F>{w, m, v, gradient, gradient, count, numbers});
      case adam_task::speculate:
        return share(kernel::adamw_speculate<T, F>{w, m, v, gradient, weight, count, numbers});
      case adam_task::commit:
        return share(kernel::adamw_commit<T, F>{w, m, v, pending, count, numbers});
      case adam_task::commit_speculate:
        return share(kernel::adamw_commit_speculate<T, F>{w, m, v, pending, gradient, pending, count, numbers,
                                                          numbers});
      case adam_task::commit_update:
        return share(
            kernel::adamw_commit_update<T, F>{w, m, v, pending, gradient, gradient, count, numbers, numbers});
      case adam_task::update_in_place:
        auto const split = split_arrays<T, F>::at(state_of(bucket), count_);
        return share(kernel::adamw<T, T, F>{weight, split.low, split.m, split.v, gradient, count, numbers});
    }
  }
  template <class Arguments>
  void share(Arguments const& all) {
    pieces_.reset(all.count);
    threads_->run([&](int thread, int) {
      pieces_.each_piece(thread,
                         [&](cpu::slice const& piece) { cpu::run(all.slice(piece.begin, piece.size())); });
    });
  }

  static constexpr kernel::adamw_step numbers{0.9999F, 0.9F, 0.999F, 0.1F, 0.001F, 1e-5F, 1.0F, 1e-8F, 1.0F};

  cpu::pinned_threads* threads_;
  cpu::shared_slices pieces_{threads_->size()};
  state_format format_;
  std::int64_t count_;
  std::size_t of_bucket_;  // bytes
  std::int64_t buckets_;
  cpu::state_memory state_, pinned_;
};

/// CPU Adam's tasks in all buckets, taking turns.
template <element T>
class adam_laps {
public:
  adam_laps(adam_probe<T>& adam, double latency) : adam_{&adam}, latency_{latency} {}

  /// One task in each bucket, another one in the next lap.
  void run(std::int64_t lap) {
    for (std::int64_t bucket = 0; bucket < adam_->buckets(); ++bucket) {
      auto const task = static_cast<std::size_t>((lap + bucket) % adam_tasks);
      auto const begin = clock::now();
      adam_->run(static_cast<adam_task>(task), bucket);
      seconds_[task] += std::max(seconds_since(begin) - latency_, 1e-9);
      ++runs_[task];
    }
    ++laps_;
  }
  /// Seconds per parameter of each task.
  [[nodiscard]] machine::adam_seconds per_parameter(std::int64_t of_bucket) const {
    machine::adam_seconds times{};
    for (std::size_t i = 0; i < times.size(); ++i) {
      times[i] = seconds_[i] / static_cast<double>(runs_[i] * of_bucket);
    }
    return times;
  }
  [[nodiscard]] double of_lap() const {
    return std::accumulate(seconds_.begin(), seconds_.end(), 0.0) / static_cast<double>(laps_);
  }

private:
  adam_probe<T>* adam_;
  double latency_;
  std::array<double, adam_tasks> seconds_{};
  std::array<std::int64_t, adam_tasks> runs_{};
  std::int64_t laps_ = 0;
};

/// The load of other programs on the host's memory varies, so tasks, and states of the link, take turns and
/// are averaged. Each task runs in all buckets, or in half of them if there are many, and at least six times.
template <element T, device_policy D>
void measure_together(D& device, adam_probe<T>& adam, link_probe<D>& link, std::int64_t of_bucket,
                      machine& m) {
  auto const in_all = adam_tasks * ((6 + adam.buckets() - 1) / adam.buckets());
  auto const laps = adam.buckets() < 48 ? in_all : in_all / 2;
  adam_laps<T> ready{adam, m.adam.latency}, idle = ready, both = ready, one = ready;
  ready.run(0);  // pages and threads get ready
  busy_direction<D> down{device}, up{device}, alone{device};
  for (std::int64_t lap = 0; lap < laps; ++lap) {
    idle.run(lap);
    link.busy_during(&down, &up, [&] { both.run(lap); });
    if (lap < 2 || laps > adam_tasks) {
      bool const downwards = lap % 2 == 0;
      link.busy_during(downwards ? &alone : nullptr, downwards ? nullptr : &alone, [&] { one.run(lap); });
    }
  }
  m.adam.links_idle = idle.per_parameter(of_bucket);
  m.adam.links_busy = both.per_parameter(of_bucket);
  for (std::size_t i = 0; i < adam_tasks; ++i) {
    m.adam.links_busy[i] = std::max(m.adam.links_idle[i], m.adam.links_busy[i]);
  }
  double const slowed = both.of_lap() - idle.of_lap();
  m.adam.one_way_share = slowed > 0.0 ? std::clamp((one.of_lap() - idle.of_lap()) / slowed, 0.0, 1.0) : 0.5;
  auto const share = [&](busy_direction<D> const& direction, double both_ways) {
    return std::clamp(link.rate_of(direction, both_ways) / both_ways, 0.1, 1.0);
  };
  m.link.beside_adam = {share(down, m.link.both.down), share(up, m.link.both.up)};
}

}  // namespace detail

/// Measures the device's rates for kernels in T. Takes some tens of milliseconds.
template <element T, device_policy D>
void measure_device(D& device, probe const& p, machine& m) {
  detail::device_probe<T, D>{device}.measure(p, m);
}

/// Measures the rates of the link and of CPU Adam, alone and together. Takes some seconds for a large state.
template <element T, device_policy D>
void measure_offloading(D& device, probe const& p, machine& m) {
  adam_workers workers{device.pci_address(), cpu::optimizer_threads(p.cores_share, m.host.cores), {}};
  // All of the state, up to a limit: parts of a host's memory are not equally fast.
  auto const window = std::min(std::size_t{32} << 30, m.host.memory / 4);
  detail::adam_probe<T> adam{workers, device.host_account(), p.bucket, p.state, p.format, window};
  auto const bytes = static_cast<std::size_t>(p.bucket) * sizeof(T);
  auto const most = std::min(static_cast<std::size_t>(p.state) * sizeof(T), m.host.memory / 8);
  detail::link_probe<D> link{device, bytes, most / bytes};
  link.measure(m.link);
  m.adam.threads = workers.threads().size();
  m.adam.format = p.format;
  m.adam.latency = adam.latency();
  detail::measure_together(device, adam, link, p.bucket, m);
  // Derived from the measured threads: plans use no other number of threads.
  m.adam.one_thread = m.adam.links_idle[static_cast<std::size_t>(adam_task::update)] * m.adam.threads;
}

}  // namespace superoffload::offload
