// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "stage.hpp"

#include <superoffload/cuda/check.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <cuda_runtime_api.h>
#include <random>
#include <utility>

namespace superoffload::bench {

namespace {

constexpr int runs = 9;
constexpr double seconds_of_a_run = 2e-3;
constexpr std::size_t block_elements = std::size_t{1} << 21;

void check(cudaError_t status, std::string_view call) { cuda::detail::check(status, call, "a benchmark"); }

cudaEvent_t event(void* handle) { return static_cast<cudaEvent_t>(handle); }

/// Standard normal numbers; arrays repeat them.
std::vector<float> const& normal_numbers() {
  static std::vector<float> const numbers = [] {
    std::vector<float> values(block_elements);
    std::minstd_rand random{2026};
    std::normal_distribution<float> normal;
    for (auto& value : values) { value = normal(random); }
    return values;
  }();
  return numbers;
}

template <class T, class Change>
std::vector<std::byte> block_of(Change change) {
  std::vector<std::byte> block(block_elements * sizeof(T));
  for (std::size_t i = 0; i < block_elements; ++i) {
    T const value = T(change(normal_numbers()[i]));
    std::memcpy(&block[i * sizeof(T)], &value, sizeof(T));
  }
  return block;
}

}  // namespace

stage::stage(std::string only) : only_{std::move(only)} {
  cudaEvent_t events[2]{};
  for (auto& event : events) { check(cudaEventCreate(&event), "cudaEventCreate"); }
  begin_ = events[0];
  end_ = events[1];
}

stage::~stage() {
  cudaEventDestroy(event(begin_));
  cudaEventDestroy(event(end_));
}

double stage::copy_rate() {
  if (copy_rate_ == 0) {
    constexpr std::int64_t count = std::int64_t{1} << 29;
    auto const from = numbers<bfloat16>(count);
    auto const to = allocate(from.bytes());
    copy_rate_ = 2.0 * static_cast<double>(from.bytes()) /
                 seconds([&](int) { stream.copy(to.data(), from.data(), from.bytes()); });
  }
  return copy_rate_;
}

void stage::fill(void* to, std::vector<std::byte> const& block, std::size_t bytes) {
  auto* const first = static_cast<std::byte*>(to);
  stream.copy(first, block.data(), std::min(bytes, block.size()));
  for (auto done = block.size(); done < bytes; done += block.size()) {
    stream.copy(first + done, first, std::min(block.size(), bytes - done));
  }
  stream.synchronize();
}

template <class T>
buffer<cuda::device> stage::numbers(std::int64_t count, double deviation) {
  auto memory = allocate(static_cast<std::size_t>(count) * sizeof(T));
  fill(memory.data(), block_of<T>([&](float x) { return x * static_cast<float>(deviation); }),
       memory.bytes());
  return memory;
}
template buffer<cuda::device> stage::numbers<bfloat16>(std::int64_t, double);
template buffer<cuda::device> stage::numbers<float>(std::int64_t, double);

buffer<cuda::device> stage::squares(std::int64_t count, double deviation) {
  auto memory = allocate(static_cast<std::size_t>(count) * sizeof(float));
  auto const square = [&](float x) { return x * x * static_cast<float>(deviation * deviation); };
  fill(memory.data(), block_of<float>(square), memory.bytes());
  return memory;
}

buffer<cuda::device> stage::integers(std::vector<std::int32_t> const& values) {
  auto memory = allocate(values.size() * sizeof(std::int32_t));
  stream.copy(memory.data(), values.data(), memory.bytes());
  stream.synchronize();
  return memory;
}

int stage::sets_of(double bytes) {
  constexpr double several_caches = 512e6;
  return std::max(2, static_cast<int>(std::ceil(several_caches / bytes)));
}

double stage::seconds(std::function<void(int)> const& work) {
  int turn = 0;
  auto const run = [&](int calls) {
    check(cudaEventRecord(event(begin_), stream.handle()), "cudaEventRecord");
    for (int i = 0; i < calls; ++i) { work(turn++); }
    check(cudaEventRecord(event(end_), stream.handle()), "cudaEventRecord");
    check(cudaEventSynchronize(event(end_)), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, event(begin_), event(end_)), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e-3 / calls;
  };
  run(3);  // warm-up: loads kernels, chooses algorithms
  auto const calls = std::max(1, static_cast<int>(std::ceil(seconds_of_a_run / run(3))));
  std::vector<double> times;
  for (int i = 0; i < runs; ++i) { times.push_back(run(calls)); }
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[runs / 2];
}

void stage::report_bytes(std::string_view name, std::string_view type, std::string_view shape, double bytes,
                         std::function<void(int)> const& work) {
  auto const copied = copy_rate();
  auto const time = seconds(work);
  std::printf(
      "{\"kernel\": \"%.*s\", \"type\": \"%.*s\", \"shape\": \"%.*s\", \"microseconds\": %.2f, "
      "\"gigabytes_per_second\": %.0f, \"copy_gigabytes_per_second\": %.0f, \"share_of_copy\": %.3f}\n",
      static_cast<int>(name.size()), name.data(), static_cast<int>(type.size()), type.data(),
      static_cast<int>(shape.size()), shape.data(), time * 1e6, bytes / time * 1e-9, copied * 1e-9,
      bytes / time / copied);
  std::fflush(stdout);
}

}  // namespace superoffload::bench
