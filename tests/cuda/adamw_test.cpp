// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/kernels/adamw.hpp"

#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>

#include <doctest/doctest.h>

#include "conformance/kernels/stored_adamw.hpp"

// usual_float.cuh
namespace superoffload::test {
std::uint64_t different_roots();
std::uint64_t different_quotients();
}  // namespace superoffload::test

namespace {

using namespace superoffload;

TEST_CASE_TEMPLATE("an optimizer step has the same bits on the GPU and on the CPU", T, float, bfloat16) {
  cpu::device cpu;
  cuda::device cuda;
  conformance::lab<cpu::device> on_cpu{cpu};
  conformance::lab<cuda::device> on_cuda{cuda};
  for (std::int64_t const count : {1, 8, 1023, 300007}) {
    conformance::check_adamw<T>(on_cpu, count);
    conformance::check_adamw<T>(on_cuda, count);
    CHECK(on_cpu.digest == on_cuda.digest);
  }
}

TEST_CASE("an optimizer step on state of fewer bytes has the same bits on the GPU and on the CPU") {
  cpu::device cpu;
  cuda::device cuda;
  conformance::lab<cpu::device> on_cpu{cpu};
  conformance::lab<cuda::device> on_cuda{cuda};
  conformance::check_stored_adamw(on_cpu);
  conformance::check_stored_adamw(on_cuda);
  CHECK(on_cpu.digest == on_cuda.digest);
}

TEST_CASE("every root of usual_float, and 2^32 of its quotients, has the bits of exact_float") {
  cuda::device const selected;
  CHECK(test::different_roots() == 0);
  CHECK(test::different_quotients() == 0);
}

}  // namespace
