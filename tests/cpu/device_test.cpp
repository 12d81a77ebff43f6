// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/device.hpp"

#include <superoffload/cpu/device.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <thread>
#include <utility>

using namespace superoffload;

template <>
struct conformance::tasks<cpu::device> {
  static void delay(cpu::stream& queue) {
    queue.enqueue([] { std::this_thread::sleep_for(std::chrono::milliseconds{5}); });
  }
  static void fail(cpu::stream& queue) {
    queue.enqueue([] { superoffload::fail(exit_code::internal, "this task fails"); });
  }
};

TEST_CASE_TEMPLATE_INVOKE(device_conformance, cpu::device);

TEST_CASE("a device counts its memory by kind") {
  cpu::device device{1};
  CHECK(device.bytes_in_use() == 0);
  {
    buffer<cpu::device> small{device, 1000};
    buffer<cpu::device> const large{device, 5U << 20};
    buffer<cpu::device> const host{device, 300, memory::host};
    CHECK(device.bytes_in_use() == 1000 + (5U << 20));
    CHECK(device.bytes_in_use(memory::host) == 300);
    auto const moved = std::move(small);
    CHECK(device.bytes_in_use() == 1000 + (5U << 20));
  }
  CHECK(device.bytes_in_use() == 0);
  CHECK(device.bytes_in_use(memory::host) == 0);
  CHECK(device.peak_bytes() == 1000 + (5U << 20));
  CHECK(device.peak_bytes(memory::host) == 300);
}

TEST_CASE("a failed allocation is not counted") {
  cpu::device device{1};
  CHECK_THROWS_AS((buffer<cpu::device>{device, std::size_t{1} << 60}), error);
  CHECK(device.bytes_in_use() == 0);
  CHECK(device.peak_bytes() == 0);
}

TEST_CASE("a device has the threads it was given") {
  cpu::device device{3};
  cpu::stream const queue{device};
  CHECK(device.threads().size() == 3);
  CHECK(&queue.threads() == &device.threads());
}
