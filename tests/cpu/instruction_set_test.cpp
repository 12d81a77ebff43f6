// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/instruction_set.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using namespace superoffload;
using namespace superoffload::cpu;

TEST_CASE("the active instruction set follows SUPEROFFLOAD_ISA") {
  char const* const wanted = std::getenv("SUPEROFFLOAD_ISA");
  if (wanted == nullptr || *wanted == '\0') {
    CHECK(supported(active_instruction_set()));
  } else {
    CHECK(std::string{name_of(active_instruction_set())} == wanted);
  }
}

/// Runs the case above in a process of its own, since a process decides once. True when it passed.
bool follows(char const* wanted) {
  pid_t const child = fork();
  if (child == 0) {
    setenv("SUPEROFFLOAD_ISA", wanted, 1);
    execl("/proc/self/exe", "cpu_tests", "--test-case=the active instruction set follows SUPEROFFLOAD_ISA",
          "--out=/dev/null", nullptr);
    _exit(127);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_CASE("the environment chooses among the supported instruction sets") {
  for (auto const set : instruction_sets) {
    CHECK(follows(std::string{name_of(set)}.c_str()) == supported(set));
  }
  CHECK_FALSE(follows("sse9"));
}

TEST_CASE("use of an instruction set that the machine lacks is refused") {
  auto const foreign = supported(instruction_set::neon) ? instruction_set::avx2 : instruction_set::neon;
  try {
    use(foreign);
    FAIL("accepted");
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    CHECK(std::string{e.what()}.find("scalar") != std::string::npos);
  }
}
