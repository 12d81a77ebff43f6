// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cudnn/attention.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  namespace so = superoffload;
  constexpr int skipped = 77;
  char const* const suite = std::getenv("SUPEROFFLOAD_TEST_SUITE");
  try {
    if (auto const reason = so::cudnn::refusal(); !reason.empty()) {
      std::printf("skipped: %s\n", reason.c_str());
      return skipped;
    }
    if (suite != nullptr && std::string{suite} == "gpu") {
      so::cuda::device device;
      so::cudnn::attention const attention{device};
      std::printf("%s on %s\n", attention.name().c_str(), device.model().c_str());
    }
  } catch (so::error const& error) {
    std::printf("skipped: %s\n", error.what());
    return skipped;
  }
  doctest::Context context{argc, argv};
  if (suite != nullptr) {
    context.addFilter("test-suite", suite);
  }
  return context.run();
}
