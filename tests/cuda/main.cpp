// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/device.hpp>

#include <doctest/doctest.h>

#include <cstdio>

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  try {
    superoffload::cuda::device const device;
    std::printf("on %s\n", device.model().c_str());
  } catch (superoffload::error const& error) {
    std::printf("skipped: %s\n", error.what());
    return skipped;
  }
  return doctest::Context{argc, argv}.run();
}
