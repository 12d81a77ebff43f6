// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "support/fault_case.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <unistd.h>
#include <utility>

namespace superoffload::test {
namespace {

struct counts {
  long tried = 0;
  long survived = 0;
};

std::atomic<long> failed{0};  // assertions
std::mutex mutex;
std::map<std::string, counts> faults;

struct listener : doctest::IReporter {
  explicit listener(doctest::ContextOptions const&) {}
  void report_query(doctest::QueryData const&) override {}
  void test_run_start() override { process_ = ::getpid(); }
  void test_run_end(doctest::TestRunStats const&) override {
    char const* const file = std::getenv("SUPEROFFLOAD_FAULT_COUNTS");
    if (file == nullptr ||
        process_ != ::getpid()) {  // a child that a signal ended before it was another program
      return;
    }
    std::ofstream out{file, std::ios::app};
    for (auto const& [name, count] : faults) {
      out << R"({"fault": ")" << name << R"(", "tried": )" << count.tried << R"(, "survived": )"
          << count.survived << "}\n";
    }
  }
  void test_case_start(doctest::TestCaseData const&) override {}
  void test_case_reenter(doctest::TestCaseData const&) override {}
  void test_case_end(doctest::CurrentTestCaseStats const&) override {}
  void test_case_exception(doctest::TestCaseException const&) override { ++failed; }
  void subcase_start(doctest::SubcaseSignature const&) override {}
  void subcase_end() override {}
  void log_assert(doctest::AssertData const& assertion) override { failed += assertion.m_failed ? 1 : 0; }
  void log_message(doctest::MessageData const& message) override {
    failed += message.m_severity == doctest::assertType::is_warn ? 0 : 1;
  }
  void test_case_skipped(doctest::TestCaseData const&) override {}

private:
  pid_t process_ = 0;
};
REGISTER_LISTENER("fault_counts", 1, listener);

}  // namespace

bool long_tests() { return std::getenv("SUPEROFFLOAD_LONG_TESTS") != nullptr; }

fault_case::fault_case(std::string fault, long cases)
    : fault_{std::move(fault)}, cases_{cases}, failed_before_{failed} {}

fault_case::~fault_case() {
  bool const survived = failed == failed_before_ && std::uncaught_exceptions() == 0;
  if (survived && !happens_) {
    return;
  }
  std::lock_guard const lock{mutex};
  auto& count = faults[fault_];
  count.tried += cases_;
  count.survived += survived ? cases_ : 0;
}

}  // namespace superoffload::test
