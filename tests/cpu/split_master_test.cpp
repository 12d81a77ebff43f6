// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The master that is split into a working weight and its low half, in the kernels that read and write both: a
// step that adds nothing returns every pattern of 32 bits, and any NaN as 0x7FC00000.
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/instruction_set.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/kernel/adamw.hpp>

#include <doctest/doctest.h>

#include "support/fault_case.hpp"
#include "support/sanitizer.hpp"

#include <atomic>
#include <cstdint>
#include <vector>

using namespace superoffload;
using namespace superoffload::cpu;

namespace {

constexpr kernel::adamw_step nothing{.decay = 1.0F,
                                     .beta1 = 0.0F,
                                     .beta2 = 0.0F,
                                     .one_minus_beta1 = 1.0F,
                                     .one_minus_beta2 = 1.0F,
                                     .step_size = 0.0F,
                                     .inverse_root2 = 1.0F,
                                     .epsilon = 1.0F,
                                     .factor = 1.0F};

/// How many of the patterns [begin, end) do not come back as expected.
std::int64_t wrong_in(std::int64_t begin, std::int64_t end) {
  auto const& entry = cpu::detail::active_kernel<kernel::adamw<bfloat16>>();
  constexpr std::int64_t block = 8192;
  std::vector<bfloat16> weight(block), gradient(block);
  std::vector<std::uint16_t> low(block);
  std::vector<float> m(block), v(block);
  std::uint32_t wrong = 0;
  for (; begin < end; begin += block) {
    for (std::uint32_t i = 0; i < block; ++i) {
      auto const bits = static_cast<std::uint32_t>(begin) + i;
      weight[i].bits = static_cast<std::uint16_t>((bits + 0x8000U) >> 16);
      low[i] = static_cast<std::uint16_t>(bits);
    }
    kernel::adamw<bfloat16> const arguments{weight.data(),   low.data(), m.data(), v.data(),
                                            gradient.data(), block,      nothing};
    entry.run(arguments, 0, entry.items(arguments));
    for (std::uint32_t i = 0; i < block; ++i) {
      auto bits = static_cast<std::uint32_t>(begin) + i;
      bits = (bits & 0x7FFFFFFFU) > 0x7F800000U ? 0x7FC00000U : bits;
      bool const same = weight[i].bits == static_cast<std::uint16_t>((bits + 0x8000U) >> 16) &&
                        low[i] == static_cast<std::uint16_t>(bits);
      wrong += same ? 0 : 1;
    }
  }
  return wrong;
}

void check_patterns(std::int64_t stride) {
  auto const before = active_instruction_set();
  for (auto const set : instruction_sets) {
    if (!supported(set)) {
      continue;
    }
    CAPTURE(std::string{name_of(set)});
    test::fault_case const split{"F11", (((std::int64_t{1} << 16) + stride - 1) / stride) << 16};
    use(set);
    thread_pool threads;
    std::atomic<std::int64_t> wrong{0};
    constexpr std::int64_t slice = std::int64_t{1} << 16;
    threads.parallel_for(std::int64_t{1} << 16, stride, [&](std::int64_t first, std::int64_t) {
      wrong += wrong_in(first * slice, (first + 1) * slice);
    });
    CHECK(wrong == 0);
  }
  use(before);
}

TEST_CASE("a split master comes back: every low half of some weights") {
  check_patterns(test::in_long_tests(1, test::slowed ? 1021 : 61));
}

TEST_CASE("a split master comes back: all patterns" * doctest::skip() * doctest::test_suite("exhaustive")) {
  check_patterns(1);
}

}  // namespace
