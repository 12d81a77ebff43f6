// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace superoffload::test {

/// Whether tests take their long counts: the environment variable SUPEROFFLOAD_LONG_TESTS is set, as by
/// `tests/run.sh --long`.
[[nodiscard]] bool long_tests();

/// `many` with long_tests(), else `few`.
template <class Number>
[[nodiscard]] Number in_long_tests(Number many, Number few) {
  return long_tests() ? many : few;
}

/// A fault that a test injects, from here to the end of the scope. It is survived unless an assertion fails
/// meanwhile. With the environment variable SUPEROFFLOAD_FAULT_COUNTS a program appends to that file one line
/// of JSON for each fault that it tried: the name in docs/reliability.md, how often, and how often survived.
class fault_case {
public:
  /// `cases`: how many are tried at once.
  explicit fault_case(std::string fault, long cases = 1);
  fault_case(fault_case const&) = delete;
  fault_case& operator=(fault_case const&) = delete;
  ~fault_case();

  /// It counts only if it happens.
  void did_not_happen() noexcept { happens_ = false; }

private:
  std::string fault_;
  long cases_;
  long failed_before_;
  bool happens_ = true;
};

}  // namespace superoffload::test
