// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "conformance/attention_results.hpp"
#include "cpu/every_set.hpp"

using namespace superoffload;
using namespace superoffload::cpu;

TEST_CASE("attention: every instruction set, any number of threads") {
  for_every_set(across_sets::may_differ, [](auto& lab) { conformance::check_attention(lab); });
}

TEST_CASE("attention: a document that is not finite does not change its neighbours") {
  for_every_set(
      across_sets::may_differ,
      [](auto& lab) {
        for (std::int32_t const head_dim : {64, 20}) {
          conformance::attention_case const c{{130, 70, 0, 200}, 4, 2, head_dim, 0, true};
          for (std::size_t const spoiled : test::slowed ? std::vector{1U} : std::vector{0U, 1U, 3U}) {
            conformance::check_isolation<float>(lab.device, c, spoiled);
            conformance::check_isolation<bfloat16>(lab.device, c, spoiled);
          }
        }
      },
      {2});
}
