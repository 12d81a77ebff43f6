// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Attention in bfloat16 at the head dimensions that have a kernel of their own: it rounds weights to
// bfloat16, so it is held against the same in float by the size of the whole error, not element by element.
// A build for another architecture than 90a (SUPEROFFLOAD_CUDA_ARCHITECTURES=90-real, say) tests the kernels
// with mma.sync on a Hopper GPU.
#include "conformance/kernels/attention.hpp"

#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>

#include <doctest/doctest.h>

namespace {

using namespace superoffload;
using conformance::array;
using lab = conformance::lab<cuda::device>;

struct results {
  std::vector<double> out, log_sum_exp, d_q, d_k, d_v;
};

/// The inputs are drawn in bfloat16 and, where T is wider, widened.
template <element T>
results attend(lab& in, conformance::attention_case const& c) {
  in.random.seed(7);
  std::vector<std::int32_t> starts{0};
  for (auto const length : c.lengths) { starts.push_back(starts.back() + length); }
  std::int64_t const rows = starts.back();
  array<cuda::device, std::int32_t> const device_starts{in, starts};
  kernel::attention_shape const shape{.starts = device_starts.data(),
                                      .documents = std::ssize(c.lengths),
                                      .rows = rows,
                                      .heads = c.heads,
                                      .kv_heads = c.kv_heads,
                                      .head_dim = c.head_dim,
                                      .longest = *std::max_element(c.lengths.begin(), c.lengths.end()),
                                      .window = c.window,
                                      .scale = 1 / std::sqrt(static_cast<double>(c.head_dim))};
  auto const draw = [&](std::int64_t count) {
    auto const values = in.normal<bfloat16>(count);
    std::vector<T> widened;
    for (auto const value : values) { widened.push_back(conformance::rounded<T>(double{value})); }
    return widened;
  };
  auto const width = shape.qkv_columns();
  auto const out_width = std::int64_t{c.heads} * c.head_dim;
  array<cuda::device, T> const qkv{in, draw(rows * width)}, sinks{in, draw(c.heads)},
      d_out{in, draw(rows * out_width)};
  array<cuda::device, T> const out{in, rows * out_width}, d_qkv{in, rows * width};
  array<cuda::device, wide<T>> const log_sum_exp{in, c.heads * rows}, delta{in, c.heads * rows};
  auto const* const used_sinks = c.sinks ? sinks.data() : nullptr;
  conformance::launch_with_scratch(in, kernel::attention_forward<T>{.shape = shape,
                                                                    .qkv = qkv.data(),
                                                                    .out = out.data(),
                                                                    .log_sum_exp = log_sum_exp.data(),
                                                                    .sinks = used_sinks});
  conformance::launch_with_scratch(in, kernel::attention_backward<T>{.shape = shape,
                                                                     .qkv = qkv.data(),
                                                                     .out = out.data(),
                                                                     .d_out = d_out.data(),
                                                                     .log_sum_exp = log_sum_exp.data(),
                                                                     .delta = delta.data(),
                                                                     .d_qkv = d_qkv.data(),
                                                                     .sinks = used_sinks});
  results r;
  for (double const value : out.values()) { r.out.push_back(value); }
  for (double const value : log_sum_exp.values()) { r.log_sum_exp.push_back(value); }
  auto const gradient = d_qkv.values();
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    auto const head = static_cast<std::int64_t>(i) % width / c.head_dim;
    (head < c.heads ? r.d_q : head < c.heads + c.kv_heads ? r.d_k : r.d_v).push_back(gradient[i]);
  }
  return r;
}

/// |actual - expected| / |expected|, infinite where something is not a number.
double relative_error(std::vector<double> const& actual, std::vector<double> const& expected) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::isfinite(error) ? std::sqrt(error / size) : std::numeric_limits<double>::infinity();
}

/// Twice in bfloat16, to the same bits, and close to the same in float.
void check(cuda::device& device, conformance::attention_case const& c) {
  CAPTURE(c.lengths);
  CAPTURE(c.heads);
  CAPTURE(c.kv_heads);
  CAPTURE(c.head_dim);
  CAPTURE(c.window);
  CAPTURE(c.sinks);
  lab first{device}, second{device}, reference{device};
  auto const actual = attend<bfloat16>(first, c);
  attend<bfloat16>(second, c);
  CHECK(first.digest == second.digest);
  auto const expected = attend<float>(reference, c);
  CHECK(relative_error(actual.out, expected.out) < 4e-3);
  CHECK(relative_error(actual.log_sum_exp, expected.log_sum_exp) < 1e-5);
  CHECK(relative_error(actual.d_v, expected.d_v) < 6e-3);
  if (c.window == 1 || *std::max_element(c.lengths.begin(), c.lengths.end()) == 1) {
    // One weight of 1: no gradient but rounding.
    return;
  }
  CHECK(relative_error(actual.d_q, expected.d_q) < 1e-2);
  CHECK(relative_error(actual.d_k, expected.d_k) < 1e-2);
}

TEST_CASE("attention in bfloat16 on the matrix units is that in float") {
  conformance::attention_case const cases[] = {{{64}, 1, 1, 64, 0, false},
                                               {{1, 63, 200, 0, 65}, 4, 2, 64, 0, false},
                                               {{300}, 8, 2, 128, 0, false},
                                               {{129, 5, 260}, 4, 4, 128, 0, true},
                                               {{515}, 2, 1, 64, 100, false},
                                               {{257, 130}, 4, 1, 128, 33, true},
                                               {{1}, 2, 1, 128, 0, false},
                                               {{1024}, 2, 2, 64, 128, true},
                                               {{192, 191, 193, 384}, 3, 3, 64, 0, true},
                                               {{2048}, 4, 1, 128, 0, false},
                                               {{700}, 4, 2, 128, 1, false},
                                               {std::vector<std::int32_t>(70, 130), 2, 1, 128, 0, false}};
  cuda::device device;
  for (auto const& c : cases) { check(device, c); }
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

}  // namespace
