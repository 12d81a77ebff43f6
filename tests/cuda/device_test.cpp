// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/device.hpp"

#include <superoffload/core/error.hpp>
#include <superoffload/core/range.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/small_copy.hpp>
#include <superoffload/zero/prefetcher.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <cuda_runtime_api.h>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace superoffload;

/// A failing kernel would lose the device, so there is no `fail`.
template <>
struct conformance::tasks<cuda::device> {
  static void delay(cuda::stream& queue) {
    auto const sleep = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds{5}); };
    REQUIRE(cudaLaunchHostFunc(queue.handle(), sleep, nullptr) == cudaSuccess);
  }
};

TEST_CASE_TEMPLATE_INVOKE(device_conformance, cuda::device);

TEST_CASE("collectives and prefetched weights have priority over other work") {
  cuda::device device;
  auto const priority_of = [](cuda::stream const& stream) {
    int priority = 1;
    REQUIRE(cudaStreamGetPriority(stream.handle(), &priority) == cudaSuccess);
    return priority;
  };
  int lowest = 0, highest = 0;
  REQUIRE(cudaDeviceGetStreamPriorityRange(&lowest, &highest) == cudaSuccess);
  REQUIRE(highest < 0);
  cuda::stream compute{device};
  zero::prefetcher<cuda::device> ahead{device, compute, {256, 1}};
  CHECK(priority_of(compute) == 0);
  CHECK(priority_of(ahead.transfer()) == highest);
}

TEST_CASE("small copies are complete, at any address and from any memory") {
  cuda::device device;
  cuda::stream stream{device};
  constexpr std::size_t most = cuda::most_small_copy + 64;
  buffer<cuda::device> const pinned{device, most, memory::host}, back{device, most, memory::host};
  buffer<cuda::device> const there{device, most};
  std::vector<std::byte> pageable(most), arrived(most);
  for (std::size_t i = 0; i < most; ++i) {
    pageable[i] = pinned.as<std::byte>()[i] = static_cast<std::byte>((i * 2654435761U) >> 13);
  }
  for (std::size_t const bytes : {std::size_t{1}, std::size_t{15}, std::size_t{16}, std::size_t{4099},
                                  cuda::most_small_copy, cuda::most_small_copy + 1}) {
    for (std::size_t const offset : {0U, 1U, 8U, 16U}) {
      CAPTURE(bytes);
      CAPTURE(offset);
      for (bool const locked : {true, false}) {
        auto const* const from = (locked ? pinned.as<std::byte>() : pageable.data()) + offset;
        auto* const to = locked ? back.as<std::byte>() : arrived.data();
        std::memset(to, 0xEE, most);
        stream.fill_zero(there.data(), there.bytes());
        stream.copy(there.as<std::byte>() + offset, from, bytes);
        stream.copy(to + offset, there.as<std::byte>() + offset, bytes);
        stream.synchronize();
        CHECK(std::memcmp(to + offset, from, bytes) == 0);
        CHECK(to[offset + bytes] == std::byte{0xEE});
      }
    }
  }
}

TEST_CASE("a small copy does not wait for large ones of another stream") {
  cuda::device device;
  cuda::stream large{device}, small{device};
  constexpr std::size_t bytes = std::size_t{256} << 20;
  constexpr int copies = 16;
  buffer<cuda::device> const from{device, bytes, memory::host}, to{device, bytes},
      host{device, 8, memory::host}, one{device, 8};
  std::deque<cuda::event> ends;
  for (int i = 0; i < copies; ++i) {
    large.copy(to.data(), from.data(), bytes);
    large.record(ends.emplace_back(device));
  }
  small.copy(one.data(), host.data(), 8);
  small.synchronize();
  CHECK_FALSE(ends.back().done());  // 4 GiB take a twentieth of a second or more
  large.synchronize();
}

TEST_CASE("a GPU counts its memory by kind") {
  cuda::device device;
  CHECK(device.bytes_in_use() == 0);
  {
    buffer<cuda::device> small{device, 1000};
    buffer<cuda::device> const large{device, 5U << 20};
    buffer<cuda::device> const host{device, 300, memory::host};
    buffer<cuda::device> const mapped{device, 9U << 20, memory::host};
    CHECK(device.bytes_in_use() == 1000 + (5U << 20));
    CHECK(device.bytes_in_use(memory::host) == 300 + (9U << 20));
    auto const moved = std::move(small);
    CHECK(device.bytes_in_use() == 1000 + (5U << 20));
  }
  CHECK(device.bytes_in_use() == 0);
  CHECK(device.bytes_in_use(memory::host) == 0);
  CHECK(device.peak_bytes() == 1000 + (5U << 20));
  CHECK(device.peak_bytes(memory::host) == 300 + (9U << 20));
}

TEST_CASE("memory in use is not available, and released memory is again") {
  cuda::device device;
  auto const before = device.available_bytes();
  auto const bytes = before / 4;  // other programs may use memory, too, but hardly this much
  std::size_t during = 0;
  {
    buffer<cuda::device> const block{device, bytes};
    during = device.available_bytes();
  }
  CHECK(during + bytes / 2 < before);
  CHECK(during + bytes / 2 < device.available_bytes());
}

template <class Body>
exit_code code_of(Body body) {
  try {
    body();
  } catch (error const& e) {
    MESSAGE(std::string{e.what()});
    return e.code();
  }
  return exit_code::ok;
}

TEST_CASE("errors say what failed and leave the device usable") {
  cuda::device device;
  CHECK(code_of([&] { buffer<cuda::device> const too_large{device, std::size_t{1} << 50}; }) ==
        exit_code::cannot_fit);
  CHECK(device.bytes_in_use() == 0);
  CHECK(code_of([] { cuda::device const none{1000}; }) == exit_code::device);
  CHECK(code_of([] { cuda::device const none{-1}; }) == exit_code::device);
  cuda::stream stream{device};
  enter_range("test of ", "errors");
  try {
    buffer<cuda::device> const there{device, 16};
    stream.copy(there.data(), reinterpret_cast<void const*>(16), std::size_t{1} << 50);
    FAIL("copied");
  } catch (error const& e) {
    CHECK(e.code() == exit_code::device);
    CHECK(std::string{e.what()}.starts_with(
        "cudaMemcpyAsync on stream 0 of CUDA device 0 failed, last range test of errors: "));
  }
  CHECK_FALSE(cuda::detail::device_is_lost());
  stream.synchronize();
}
