// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The paper's ablation as the simulator sees it, one line of JSON a row: ablation bench/hardware/gh200.json
#include <superoffload/train/planning/machine_file.hpp>

#include "offload/paper_ablation.hpp"

#include <cstdio>
#include <exception>

int main(int count, char** arguments) {
  try {
    if (count != 2) {
      std::fputs("usage: ablation MACHINE.json\n", stderr);
      return 2;
    }
    auto const rows =
        superoffload::bench::paper_ablation{superoffload::train::read_machine(arguments[1])}.rows();
    for (auto const& r : rows) {
      std::printf("{\"policy\": \"%s\", \"simulated_tflops\": %.2f, \"times_the_first\": %.3f, ",
                  r.name.c_str(), r.tflops, r.tflops / rows.front().tflops);
      if (r.published > 0.0) {
        std::printf("\"published_tflops\": %.2f, \"published_times_the_first\": %.3f, ", r.published,
                    r.published / rows.front().published);
      }
      std::printf("\"step_time_ms\": %.1f, \"gpu_idle_share\": %.3f}\n", r.step.step_time * 1e3,
                  1.0 - r.step.busy[0] - r.step.busy[1]);
    }
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "ablation: %s\n", e.what());
    return 2;
  }
}
