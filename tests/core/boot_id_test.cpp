// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/boot_id.hpp>

#include <doctest/doctest.h>

#include <filesystem>

namespace {

using namespace superoffload;

TEST_CASE("a start of the machine has one name, of one line") {
  auto const name = boot_id();
  CHECK(name == boot_id());
  CHECK(name.find('\n') == std::string::npos);
  CHECK(name.size() == (std::filesystem::exists("/proc/sys/kernel/random/boot_id") ? 36U : 0U));
}

}  // namespace
