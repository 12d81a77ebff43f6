// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/host_name.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <unistd.h>

namespace {

TEST_CASE("the host's name is the system's, and not empty") {
  std::array<char, 256> name{};
  REQUIRE(::gethostname(name.data(), name.size() - 1) == 0);
  CHECK(superoffload::host_name() == (name[0] != '\0' ? name.data() : "host"));
  CHECK_FALSE(superoffload::host_name().empty());
}

}  // namespace
