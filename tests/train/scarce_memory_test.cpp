// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A device refuses each allocation once while a run is measured, planned and begun. The run ends with the
// exit code for it, and no queued work outlives its memory.
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded.hpp>

#include <doctest/doctest.h>

#include "support/fault_case.hpp"
#include "support/scarce_device.hpp"
#include "support/scratch_directory.hpp"
#include "support/short_run.hpp"

namespace {

using namespace superoffload;

template <class Engine>
void check_run(offload::mode how) {
  int const refused = test::refuse_each_allocation(
      [&](test::scarce_device& device) {
        test::scratch_directory const output;
        auto o = test::short_run(output.path(), 1);
        o.offload.how = how;
        train::trainer<Engine>{device, o}.run();
      },
      [](test::scarce_device const& device, error const& thrown) {
        test::fault_case injected{"F8"};
        if (!device.refused()) {
          injected.did_not_happen();
        }
        CAPTURE(std::string{thrown.what()});
        CHECK(thrown.code() == (device.refused() ? exit_code::cannot_fit : exit_code::ok));
        CHECK(device.released_in_use() == 0);
      });
  CHECK(refused >= 25);
}

TEST_CASE("a run without memory ends after its queued work") {
  using test::scarce_device;
  SUBCASE("state on the device") {
    check_run<train::engine<model::llama, scarce_device, precision::bf16, offload::super>>(
        offload::mode::none);
  }
  SUBCASE("state in host memory") {
    check_run<train::engine<model::llama, scarce_device, precision::bf16, zero::offloaded, offload::super>>(
        offload::mode::super);
  }
}

}  // namespace
