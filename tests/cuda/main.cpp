// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/device.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  setenv("SUPEROFFLOAD_TUNING", "", 0);  // tests do not touch the user's files
  doctest::Context context{argc, argv};
  char const* const suite = std::getenv("SUPEROFFLOAD_TEST_SUITE");
  if (suite != nullptr && std::string{suite} == "host") {
    context.addFilter("test-suite", suite);
    return context.run();
  }
  try {
    superoffload::cuda::device const device;
    std::printf("on %s\n", device.model().c_str());
  } catch (superoffload::error const& error) {
    std::printf("skipped: %s\n", error.what());
    return skipped;
  }
  return context.run();
}
