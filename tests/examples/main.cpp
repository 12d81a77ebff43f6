// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <superoffload/core/error.hpp>

#include "examples/finetune.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  using namespace superoffload;
  constexpr int skipped = 77;
  doctest::Context context{argc, argv};
  context.setAsDefaultForAssertsOutOfTestCases();
  context.setAssertHandler([](doctest::AssertData const& failed) {
    std::fprintf(stderr, "%s:%d: failed: %s\n", failed.m_file, failed.m_line, failed.m_expr);
  });
  if (test::test_device() == "cuda") {
    auto const plan =
        test::run(test::finetune_llama, {"--device", "cuda", "--dry_run", "--model", test::models / "llama"});
    if (plan.status == static_cast<int>(exit_code::device) ||
        plan.status == static_cast<int>(exit_code::driver)) {
      std::printf("skipped: %s", plan.err.c_str());
      return skipped;
    }
    std::printf("%s", plan.out.c_str());
  }
  return context.run();
}
