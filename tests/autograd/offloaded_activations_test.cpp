// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/autograd/offloaded_activations.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/cpu/device.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using namespace superoffload;
using autograd::activation_buffers;

constexpr std::size_t bytes = 4096;

/// Blocks that fill their buffers in forward and read them, and the one of the block before, in backward.
struct blocks {
  cpu::device device{2};
  cpu::stream compute{device};
  activation_buffers how;
  buffer<cpu::device> memory;
  autograd::offloaded_activations<cpu::device> moved;
  std::vector<std::uint8_t> wrong;  // by block: bytes that were not as its forward left them

  blocks(int count, int of)
      : how{count, bytes, of},
        memory{device, static_cast<std::size_t>(count) * bytes},
        moved{device, compute, how.host_bytes()},
        wrong(static_cast<std::size_t>(of)) {}

  void forward(int seed, std::chrono::microseconds pause) {
    moved.begin(how, static_cast<std::byte*>(memory.data()));
    for (int block = 0; block < how.blocks; ++block) {
      moved.enter_forward(block);
      auto* const to = moved.on_device(block);
      compute.enqueue([=] {
        std::this_thread::sleep_for(pause);
        std::fill(to, to + bytes, static_cast<std::byte>(seed + block));
      });
      moved.leave_forward(block, block, bytes);
    }
  }
  void backward(int seed, std::chrono::microseconds pause) {
    for (int block = how.blocks - 1; block >= 0; --block) {
      moved.enter_backward(block);
      for (int const read : {block, block - 1}) {
        if (read >= 0) {
          auto const* const from = moved.on_device(read);
          auto* const count = &wrong[static_cast<std::size_t>(read)];
          compute.enqueue([=] {
            std::this_thread::sleep_for(pause);
            *count |= std::any_of(from, from + bytes,
                                  [=](std::byte b) { return b != static_cast<std::byte>(seed + read); });
          });
        }
      }
      moved.leave_backward(block);
    }
    compute.synchronize();
    for (auto const w : wrong) { CHECK(w == 0); }
  }
};

TEST_CASE("a block finds what it kept, however many buffers there are, and whichever side is late") {
  using namespace std::chrono_literals;
  for (int const count : {2, 3, 4, 7}) {
    CAPTURE(count);
    blocks b{count, 7};
    CHECK(b.how.leaving() == 7 - count);
    for (auto const pause : {0us, 300us}) {
      for (int seed = 1; seed < 100; seed += 9) {
        b.forward(seed, pause);
        b.backward(seed, 300us - pause);
      }
    }
  }
}

TEST_CASE("a forward without a backward, and one with fewer blocks, may come between") {
  using namespace std::chrono_literals;
  blocks b{3, 7};
  for (int seed = 1; seed < 100; seed += 9) {
    b.forward(seed, 0us);
    b.forward(seed + 1, 0us);
    b.backward(seed + 1, 0us);
    b.moved.begin({}, nullptr);
    b.how.blocks = seed % 2 == 0 ? 7 : 5;
  }
}

TEST_CASE("more than the planned host memory is refused with both numbers") {
  blocks b{3, 7};
  activation_buffers const larger{3, 2 * bytes, 7};
  CHECK_THROWS_WITH_AS(b.moved.begin(larger, nullptr), doctest::Contains("32768"), error);
  CHECK_THROWS_WITH_AS(b.moved.begin(larger, nullptr), doctest::Contains("16384"), error);
}

}  // namespace
