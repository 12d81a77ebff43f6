// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/nccl/communicator.hpp>

#include <doctest/doctest.h>

#include "nccl/groups.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace so = superoffload;

int so::test::gpus() {
  static std::string const found = child::start([]() -> std::string {
                                     try {
                                       return std::to_string(cuda::device::count());
                                     } catch (error const& e) {
                                       std::printf("%s\n", e.what());
                                       return "0";
                                     }
                                   }).finish();
  return std::atoi(found.c_str());
}

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  setenv("SUPEROFFLOAD_TUNING", "", 0);  // tests do not touch the user's files
  doctest::Context context{argc, argv};
  char const* const variable = std::getenv("SUPEROFFLOAD_TEST_SUITE");
  std::string const suite = variable != nullptr ? variable : "";
  if (!suite.empty()) {
    context.addFilter("test-suite", suite.c_str());
  }
  if (suite != "host") {
    auto const refused = so::nccl::refusal();
    int const wanted = suite == "one_gpu" ? 1 : 2;
    if (!refused.empty() || so::test::gpus() < wanted) {
      std::printf("skipped: %s\n",
                  refused.empty()
                      ? so::concat("expected ", wanted, " GPUs or more, found ", so::test::gpus()).c_str()
                      : refused.c_str());
      return skipped;
    }
    std::printf("NCCL %s, %d GPUs\n", so::nccl::version().c_str(), so::test::gpus());
  }
  return context.run();
}
