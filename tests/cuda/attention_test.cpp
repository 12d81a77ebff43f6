// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Attention in bfloat16 for the head dimensions that have their own kernel. It rounds weights to bfloat16, so
// it is compared with the same in float by the norm of the error, not element by element. A build for another
// architecture than 90a (such as SUPEROFFLOAD_CUDA_ARCHITECTURES=90-real) tests the kernels with mma.sync on
// a Hopper GPU.
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>

#include <doctest/doctest.h>

#include "conformance/attention_results.hpp"

#include <initializer_list>
#include <vector>

namespace {

using namespace superoffload;
using conformance::relative_error;
using lab = conformance::lab<cuda::device>;

/// Runs twice in bfloat16, with the same bits, and compares with float.
void check(cuda::device& device, conformance::attention_case const& c) {
  CAPTURE(c);
  lab first{device}, second{device}, reference{device};
  auto const actual = conformance::attend<bfloat16>(first, c);
  conformance::attend<bfloat16>(second, c);
  CHECK(first.digest == second.digest);
  auto const expected = conformance::attend<float>(reference, c);
  CHECK(relative_error(actual.out, expected.out) < 4e-3);
  CHECK(relative_error(actual.log_sum_exp, expected.log_sum_exp) < 1e-5);
  CHECK(relative_error(actual.d_v, expected.d_v) < 6e-3);
  if (c.sinks) {
    CHECK(conformance::sinks_error(actual, expected) < 1e-2);
  }
  if (c.window == 1 || *std::max_element(c.lengths.begin(), c.lengths.end()) == 1) {
    // One weight of 1: the gradient is rounding error only.
    return;
  }
  CHECK(relative_error(actual.d_q, expected.d_q) < 1e-2);
  CHECK(relative_error(actual.d_k, expected.d_k) < 1e-2);
}

void check_all(std::initializer_list<conformance::attention_case> cases) {
  cuda::device device;
  for (auto const& c : cases) { check(device, c); }
}

// Short enough for a sanitizer.
TEST_CASE("attention in bfloat16 on the matrix units is that in float") {
  check_all({{{64}, 1, 1, 64, 0, false},
             {{1, 63, 200, 0, 65}, 4, 2, 64, 0, false},
             {{300}, 8, 2, 128, 0, false},
             {{129, 5, 260}, 4, 4, 128, 0, true},
             {{257, 130}, 4, 1, 128, 33, true},
             {{1}, 2, 1, 128, 0, false},
             {{192, 191, 193, 384}, 3, 3, 64, 0, true},
             {{300, 65}, 4, 2, 128, 0, false, 0.1},
             {{257}, 2, 1, 64, 100, false, 0.5}});
}

TEST_CASE("attention in bfloat16 on the matrix units, long and many documents") {
  check_all({{{515}, 2, 1, 64, 100, false},
             {{1024}, 2, 2, 64, 128, true},
             {{2048}, 4, 1, 128, 0, false},
             {{700}, 4, 2, 128, 1, false},
             {std::vector<std::int32_t>(70, 130), 2, 1, 128, 0, false}});
}

TEST_CASE("attention in bfloat16 on the matrix units, random shapes") {
  cuda::device device;
  std::mt19937 random{2026};
  auto const up_to = [&](std::int32_t most) { return static_cast<std::int32_t>(random() % most) + 1; };
  for (int i = 0; i < 40; ++i) {
    conformance::attention_case c;
    bool const many_short = i % 4 == 0;
    auto const longest = many_short ? 90 : 600;
    c.lengths.resize(many_short ? 40 + up_to(40) : up_to(5));
    for (auto& length : c.lengths) { length = up_to(longest + 1) - 1; }
    c.lengths.front() = up_to(longest);
    std::int32_t const groups[] = {1, 4, 8};
    c.kv_heads = up_to(3);
    c.heads = c.kv_heads * groups[random() % 3];
    c.head_dim = random() % 2 == 0 ? 64 : 128;
    c.window = random() % 3 == 0 ? up_to(300) : 0;
    c.sinks = random() % 2 == 0;
    check(device, c);
  }
}

TEST_CASE("a document that is not finite does not change its neighbours") {
  cuda::device device;
  for (std::size_t const spoiled : {0U, 1U, 3U}) {
    conformance::check_isolation<float>(device, {{130, 70, 0, 200}, 4, 2, 64, 0, true}, spoiled);
    conformance::check_isolation<bfloat16>(device, {{130, 70, 0, 200}, 4, 2, 72, 0, true}, spoiled);
  }
}

}  // namespace
