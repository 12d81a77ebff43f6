// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/policy.hpp>

#include <doctest/doctest.h>

#include <concepts>

using namespace superoffload;

namespace {
struct llama {
  using policy_category = category::architecture;
};
struct bf16 {
  using policy_category = category::precision;
};
struct float32 {
  using policy_category = category::precision;
};
struct no_policy {};
}  // namespace

TEST_CASE("a policy names its category") {
  CHECK(policy_of<llama, category::architecture>);
  CHECK_FALSE(policy_of<llama, category::precision>);
  CHECK_FALSE(policy<no_policy>);
  CHECK_FALSE(policy_of<no_policy, category::precision>);
  CHECK_FALSE(policy<int>);
}

TEST_CASE("policies are found in any order, or the default is used") {
  CHECK(std::same_as<pick<category::precision, float32, llama, bf16>, bf16>);
  CHECK(std::same_as<pick<category::precision, float32, bf16, llama>, bf16>);
  CHECK(std::same_as<pick<category::precision, float32, llama>, float32>);
  CHECK(std::same_as<pick<category::precision, float32>, float32>);
  CHECK(std::same_as<pick<category::precision, void, no_policy, int, float32, bf16>, float32>);
}

TEST_CASE("policies of a category are counted") {
  CHECK(count_of<category::precision> == 0);
  CHECK(count_of<category::precision, llama> == 0);
  CHECK(count_of<category::precision, bf16, llama, float32> == 2);
}
