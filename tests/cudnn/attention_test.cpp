// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// cuDNN's attention against the device's own: both round weights to bfloat16, so each is compared with the
// same in float by the norm of the error.
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cudnn/attention.hpp>
#include <superoffload/cudnn/choose.hpp>

#include <doctest/doctest.h>

#include "conformance/attention_results.hpp"

#include <memory>
#include <random>

namespace {

using namespace superoffload;
using lab = conformance::lab<cuda::device>;

void check_against_float(conformance::attention_case const& c, cudnn::attention::settings settings = {}) {
  CAPTURE(c);
  cuda::device own, with_cudnn;
  with_cudnn.attend_with(std::make_unique<cudnn::attention>(with_cudnn, settings));
  lab first{with_cudnn}, second{with_cudnn}, flash{own}, reference{own};
  auto const actual = conformance::attend<bfloat16>(first, c);
  conformance::attend<bfloat16>(second, c);
  CHECK(first.digest == second.digest);
  auto const same = conformance::attend<bfloat16>(flash, c);
  auto const expected = conformance::attend<float>(reference, c);
  CHECK(conformance::relative_error(actual.out, expected.out) < 4e-3);
  CHECK(conformance::relative_error(actual.out, same.out) < 6e-3);
  CHECK(conformance::relative_error(actual.d_v, expected.d_v) < 8e-3);
  CHECK(conformance::relative_error(actual.d_v, same.d_v) < 1e-2);
  if (c.sinks) {
    CHECK(conformance::sinks_error(actual, expected) < 2e-2);
    CHECK(conformance::sinks_error(actual, same) < 2e-2);
  }
  if (*std::max_element(c.lengths.begin(), c.lengths.end()) ==
      1) {  // one weight of 1: the gradient is rounding error only
    return;
  }
  CHECK(conformance::relative_error(actual.d_q, expected.d_q) < 1e-2);
  CHECK(conformance::relative_error(actual.d_k, expected.d_k) < 1e-2);
}

TEST_SUITE("gpu") {
  TEST_CASE("cuDNN's attention is close to that in float, and repeats bit for bit") {
    conformance::attention_case const cases[] = {
        {{128}, 1, 1, 64, 0, false},        {{256, 256, 256}, 4, 2, 128, 0, false},
        {{1024, 1024}, 8, 1, 64, 0, false}, {{1, 63, 200, 0, 65}, 4, 2, 64, 0, false},
        {{300}, 8, 2, 128, 0, false},       {{129, 5, 260}, 4, 4, 128, 0, true},
        {{515}, 2, 1, 64, 100, false},      {{515, 515}, 4, 1, 64, 0, false},
        {{257, 130}, 4, 1, 128, 33, true},  {{1}, 2, 1, 128, 0, false},
        {{1024}, 2, 2, 64, 128, true},      {{384, 384}, 4, 2, 96, 0, false},
        {{384, 17}, 4, 2, 80, 0, true},     {{256, 90}, 2, 1, 256, 0, false},
        {{512}, 2, 1, 256, 200, false}};
    for (auto const& c : cases) { check_against_float(c); }
  }

  TEST_CASE("packed documents of any number and length") {
    std::mt19937 random{20240229};
    auto const draw = [&](int least, int most) {
      return std::uniform_int_distribution<int>{least, most}(random);
    };
    for (int i = 0; i < 12; ++i) {
      conformance::attention_case c{};
      auto const documents = draw(1, 40);
      auto const longest = draw(1, 3) == 1 ? 700 : 90;
      for (int k = 0; k < documents; ++k) { c.lengths.push_back(draw(0, longest)); }
      c.lengths.push_back(draw(1, longest));
      c.kv_heads = draw(1, 3);
      c.heads = c.kv_heads * draw(1, 4);
      c.head_dim = draw(1, 2) * 64;
      c.window = draw(0, 1) * draw(1, 200);
      c.sinks = draw(0, 1) == 1;
      check_against_float(c);
    }
  }

  TEST_CASE("a backward in pieces, concurrent on streams, is the same") {
    // The whole takes 37, 26 and 48 MiB.
    for (int const streams : {1, 2, 3}) {
      CAPTURE(streams);
      cudnn::attention::settings const settings{.workspace_bytes = std::size_t{12} << 20, .streams = streams};
      check_against_float({{1024}, 16, 4, 64, 0, false}, settings);
      check_against_float({{512, 512, 512, 512, 512}, 8, 8, 64, 0, false}, settings);
      check_against_float({{600, 100, 1, 500, 0}, 8, 2, 128, 0, false}, settings);
    }
  }

  TEST_CASE("cuDNN is chosen by name, or where the device's own kernels are slower") {
    using wanted = kernel::attention_implementation;
    cuda::device device;
    std::int32_t rows = 1;
    auto const choose = [&](wanted which, std::int32_t head_dim, bool in_bfloat16) {
      auto const note = cudnn::choose_attention(device, which,
                                                {.starts = nullptr,
                                                 .documents = 1,
                                                 .rows = rows,
                                                 .heads = 8,
                                                 .kv_heads = 1,
                                                 .head_dim = head_dim,
                                                 .longest = rows,
                                                 .scale = 1},
                                                false, in_bfloat16);
      CHECK(note == "");
      return device.attention() != nullptr;
    };
    CHECK(choose(wanted::cudnn, 128, true));
    CHECK(choose(wanted::automatic, 128, true) != cuda::has_hopper_attention(device, 128));
    CHECK(choose(wanted::automatic, 96, true));
    CHECK_FALSE(choose(wanted::automatic, 96, false));
    CHECK_FALSE(choose(wanted::flash, 96, true));
    CHECK_THROWS_AS(choose(wanted::cudnn, 96, false), error);
    CHECK_THROWS_AS(choose(wanted::cudnn, 100, true), error);
    rows = 40000;  // longer than its workspace allows
    CHECK_THROWS_WITH_AS(choose(wanted::cudnn, 128, true), doctest::Contains("a document of 40000 tokens"),
                         error);
    CHECK(choose(wanted::automatic, 96, true));
  }

  TEST_CASE("the device's own kernels compute documents that are too long or too many") {
    cuda::device device;
    cudnn::attention const attention{device};
    kernel::attention_shape shape{.starts = nullptr,
                                  .documents = 1,
                                  .rows = 32768,
                                  .heads = 32,
                                  .kv_heads = 8,
                                  .head_dim = 128,
                                  .longest = 32768,
                                  .scale = 1};
    CHECK(attention.supports(shape));
    shape.heads = 64;
    CHECK_FALSE(attention.supports(shape));
    shape.heads = 32;
    shape.rows = shape.longest = 40000;
    CHECK_FALSE(attention.supports(shape));
    shape.rows = 8192;
    shape.longest = 4096;
    shape.documents = 3000;
    CHECK_FALSE(attention.supports(shape));
    shape.documents = 4;
    CHECK(attention.supports(shape));
  }
}

}  // namespace
