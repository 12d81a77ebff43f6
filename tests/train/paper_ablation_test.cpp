// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "offload/paper_ablation.hpp"

#include <superoffload/train/planning/machine_file.hpp>

#include <doctest/doctest.h>

#include <filesystem>

namespace {

using namespace superoffload;

TEST_CASE("with the paper's policies the simulator reproduces the paper's ablation") {
  auto const machine = train::read_machine(std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "gh200.json");
  auto const rows = bench::paper_ablation{machine}.rows();
  REQUIRE(rows.size() == 7);
  for (std::size_t i = 1; i < 5; ++i) {
    CAPTURE(rows[i].name);
    auto const published = [&](std::size_t over) { return rows[i].published / rows[over].published; };
    auto const simulated = [&](std::size_t over) { return rows[i].tflops / rows[over].tflops; };
    CHECK(rows[i].tflops > rows[i - 1].tflops);
    CHECK(simulated(0) == doctest::Approx(published(0)).epsilon(0.15));
    CHECK(simulated(i - 1) == doctest::Approx(published(i - 1)).epsilon(0.15));
  }
  // With this library's policies nothing but the GPU's time is exposed, so faster GEMMs make faster steps.
  CHECK(rows[5].tflops >= 0.995 * rows[4].tflops);
  CHECK(rows[6].tflops > 1.5 * rows[5].tflops);
}

}  // namespace
