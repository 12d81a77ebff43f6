// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernels.hpp"

#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>

#include <doctest/doctest.h>

namespace {

using namespace superoffload;
using cuda_lab = conformance::lab<cuda::device>;

static_assert(launches<cuda::device, kernel::gemm<bfloat16, float>>);
static_assert(!launches<cuda::device, kernel::gemm<double, float>>);

/// Runs `check(lab)` twice: the second run must give the same bits.
template <class Check>
void twice(Check check) {
  cuda::device device;
  cuda_lab first{device}, second{device};
  check(first);
  check(second);
  CHECK(first.digest == second.digest);
}

TEST_CASE("adamw") {
  twice([](auto& lab) { conformance::check_adamw(lab); });
}
TEST_CASE("attention") {
  twice([](auto& lab) { conformance::check_attention(lab); });
}
TEST_CASE("cross_entropy") {
  twice([](auto& lab) { conformance::check_cross_entropy(lab); });
}
TEST_CASE("dropout") {
  twice([](auto& lab) { conformance::check_dropout(lab); });
}
TEST_CASE("column_parts") {
  twice([](auto& lab) { conformance::check_column_parts(lab); });
}

TEST_CASE("elementwise") {
  twice([](auto& lab) { conformance::check_elementwise(lab); });
}
TEST_CASE("embedding") {
  twice([](auto& lab) { conformance::check_embedding(lab); });
}
TEST_CASE("expert_swiglu") {
  twice([](auto& lab) { conformance::check_expert_swiglu(lab); });
}
TEST_CASE("float8") {
  if (multiplies_float8(cuda::device{})) {
    twice([](auto& lab) { conformance::check_float8(lab); });
  }
}
TEST_CASE("gemm") {
  twice([](auto& lab) { conformance::check_gemm(lab); });
}
TEST_CASE("grouped_gemm") {
  twice([](auto& lab) { conformance::check_grouped_gemm(lab); });
}
TEST_CASE("head_norm") {
  twice([](auto& lab) { conformance::check_head_norm(lab); });
}
TEST_CASE("reduction") {
  twice([](auto& lab) { conformance::check_reduction(lab); });
}
TEST_CASE("load_balancing") {
  twice([](auto& lab) { conformance::check_load_balancing(lab); });
}
TEST_CASE("rms_norm") {
  twice([](auto& lab) { conformance::check_rms_norm(lab); });
}
TEST_CASE("rotary") {
  twice([](auto& lab) { conformance::check_rotary(lab); });
}
TEST_CASE("routing") {
  twice([](auto& lab) { conformance::check_routing(lab); });
}
TEST_CASE("stored_adamw") {
  twice([](auto& lab) { conformance::check_stored_adamw(lab); });
}
TEST_CASE("swiglu") {
  twice([](auto& lab) { conformance::check_swiglu(lab); });
}

// Sizes that models have: rows are aligned, so that memory is accessed 16 bytes at a time, and longer than a
// block.
TEST_CASE_TEMPLATE("rows as models have them", T, bfloat16, float, double) {
  twice([](auto& lab) {
    for (bool const flag : {false, true}) {
      conformance::check_rms_norm<T>(lab, 130, 1024, flag);
      conformance::check_rms_norm<T>(lab, 65, 8200, flag);
      conformance::check_rms_norm<T>(lab, 3, 40000, flag);
      conformance::check_rms_norm<T>(lab, 5000, 24, flag);
      conformance::check_rms_norm<T>(lab, 33, 128, flag);
      conformance::check_swiglu<T>(lab, 3, 4096, flag);
      conformance::check_swiglu<T>(lab, 2, 5000, flag);
      conformance::check_column_sum<T, T>(lab, 70, 640, flag);
      conformance::check_column_sum<T, T>(lab, 5000, 40, flag);
      conformance::check_column_sum<T, T>(lab, 3000, 13, flag);
      conformance::check_rotary<T>(lab, 17, 9, 128, flag);
      conformance::check_rotary<T>(lab, 17, 40, 128, flag, 1024);
      conformance::check_rotary<T>(lab, 3, 70, 64, flag, 8);
      conformance::check_head_norm<T>(lab, 5000, 6, 2, 128, 256, flag);
    }
    conformance::check_embedding<T, T>(lab, 300, 2048);
    for (auto const where : {conformance::logits_gradient::none, conformance::logits_gradient::separate,
                             conformance::logits_gradient::in_place}) {
      conformance::check_cross_entropy<T>(lab, 9, 20000, 3, where);
      conformance::check_cross_entropy<T>(lab, 3, 32768, 10, where);
      conformance::check_cross_entropy<T>(lab, 2, 128256, 2, where);
      conformance::check_cross_entropy<T>(lab, 2, 300000, 2, where);
    }
    conformance::check_cross_entropy_not_a_number<T>(lab, 36000);
  });
}

TEST_CASE("GEMMs as models have them") {
  twice([](auto& lab) {
    conformance::gemm_case const cases[] = {
        {256, 384, 512, false, true, false, false, false}, {256, 384, 512, false, false, true, false, false},
        {256, 384, 512, true, false, true, false, false},  {128, 256, 2048, true, true, false, true, false},
        {128, 192, 320, false, true, false, false, true},  {128, 192, 320, false, true, false, true, true},
        {128, 192, 320, false, true, true, true, true}};
    for (auto const& c : cases) {
      conformance::check_gemm<float, float>(lab, c);
      conformance::check_gemm<bfloat16, bfloat16>(lab, c);
      conformance::check_gemm<bfloat16, float>(lab, c);
      conformance::check_gemm<double, double>(lab, c);
    }
  });
}

// Widths that Hopper's kernel supports: groups end inside of a tile, and so do results.
TEST_CASE("groups as models have them") {
  twice([](auto& lab) {
    conformance::grouped_case const cases[] = {{{0, 130, 1, 64, 300, 0}, 320, 192},
                                               {{128, 256, 0, 17}, 768, 256},
                                               {{5}, 64, 64},
                                               {{700, 90}, 264, 640},
                                               {std::vector<std::int32_t>(40, 70), 256, 128}};
    for (auto const& c : cases) {
      for (bool const flag : {false, true}) {
        for (bool const transpose_b : {false, true}) {
          conformance::check_grouped_gemm<bfloat16>(lab, c, transpose_b, flag);
        }
        conformance::check_grouped_outer<bfloat16, bfloat16>(lab, c, flag);
        conformance::check_grouped_outer<bfloat16, float>(lab, c, flag);
      }
      conformance::check_grouped_gemm<float>(lab, c, true, true);
    }
    conformance::check_grouping<bfloat16>(lab, lab.integers(40000, 0, 127), 128, 8, 256, true, true);
    conformance::check_expert_swiglu<bfloat16>(lab, kernel::expert_gate::clamped, 70, 2880, true);
    conformance::check_expert_swiglu<bfloat16>(lab, kernel::expert_gate::silu, 70, 768, true);
  });
}

TEST_CASE_TEMPLATE("heads as models have them", T, float, double) {
  twice([](auto& lab) {
    conformance::attention_case const cases[] = {
        {{97, 1, 200}, 4, 2, 64, 0, false}, {{200}, 4, 1, 128, 0, false}, {{150, 70}, 2, 2, 128, 33, true},
        {{70}, 2, 1, 80, 0, false},         {{90}, 2, 1, 256, 0, true},   {{90, 3}, 2, 1, 64, 0, false, 0.1}};
    for (auto const& c : cases) { conformance::check_attention<T>(lab, c); }
  });
}

}  // namespace
