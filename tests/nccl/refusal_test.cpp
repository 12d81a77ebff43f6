// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/nccl/communicator.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace superoffload;

bool contains(std::string const& text, std::string const& part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

TEST_SUITE("host") {
  TEST_CASE("a library that is not a usable NCCL is refused with the reason") {
    CHECK(contains(nccl::refusal_of("/nowhere/libnccl.so.2"), "/nowhere/libnccl.so.2 cannot be loaded ("));
    CHECK(nccl::refusal_of(SUPEROFFLOAD_OLD_NCCL) == "NCCL 2.17.3 is too old: expected 2.18 or newer");
    CHECK(contains(nccl::refusal_of(SUPEROFFLOAD_OTHER_LIBRARY), " has no ncclGetVersion: is it NCCL?"));
    CHECK(contains(nccl::refusal_of(SUPEROFFLOAD_INCOMPLETE_NCCL), " has no ncclGetUniqueId: is it NCCL?"));
  }

  TEST_CASE("versions are refused by number") {
    CHECK(nccl::refusal_of(21800) == "");
    CHECK(nccl::refusal_of(22809) == "");
    CHECK(contains(nccl::refusal_of(2804), "NCCL 2.8.4 is too old"));
    CHECK(contains(nccl::refusal_of(30100), "NCCL 3.1.0 is of another major version"));
  }

  TEST_CASE("the library that the build found is used") {
    CHECK(nccl::refusal() == "");
    CHECK(nccl::version().starts_with("2."));
  }
}

}  // namespace
