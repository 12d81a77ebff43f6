// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::bench {

/// A GPU, random arrays on it, and the time of work on it.
class stage {
public:
  /// `only` selects the cases whose name contains it; all when it is empty.
  explicit stage(std::string only = {});
  stage(stage const&) = delete;
  stage& operator=(stage const&) = delete;
  ~stage();

  cuda::device device;
  cuda::stream stream{device};

  [[nodiscard]] bool wants(std::string_view name) const { return name.find(only_) != std::string_view::npos; }

  /// Bytes read and written per second by a copy of 1 GiB within the device's memory, measured at the first
  /// call.
  [[nodiscard]] double copy_rate();

  /// Normal numbers times `deviation`.
  template <class T>
  buffer<cuda::device> numbers(std::int64_t count, double deviation = 1);
  buffer<cuda::device> integers(std::vector<std::int32_t> const& values);
  /// Like `numbers`, squared.
  buffer<cuda::device> squares(std::int64_t count, double deviation);
  buffer<cuda::device> allocate(std::size_t bytes) { return {device, bytes}; }

  /// How many sets of arrays to use in turn, so that a set of `bytes` has left the L2 cache before its next
  /// turn.
  [[nodiscard]] static int sets_of(double bytes);

  /// Seconds of one call of `work(turn)`, turn = 0, 1, 2 ...: the median of several runs, each of many calls
  /// queued one after the other between two events.
  double seconds(std::function<void(int)> const& work);

  /// Times `work` and prints its line: `bytes` as each input read once and each output written once.
  void report_bytes(std::string_view name, std::string_view type, std::string_view shape, double bytes,
                    std::function<void(int)> const& work);

private:
  void fill(void* to, std::vector<std::byte> const& block, std::size_t bytes);

  std::string only_;
  void* begin_ = nullptr;  ///< events with times
  void* end_ = nullptr;
  double copy_rate_ = 0;
};

void bench_kernels(stage& on);
void bench_gemms(stage& on);
void bench_grouped(stage& on);

}  // namespace superoffload::bench
