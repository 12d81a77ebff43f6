// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/current_error.hpp>
#include <superoffload/core/system_call.hpp>

#include <doctest/doctest.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

using namespace superoffload;

namespace {

template <class Action>
error error_of(Action&& action) {
  try {
    action();
  } catch (...) { return current_error(); }
  return {exit_code::ok, "no error"};
}

bool says(error const& e, std::string_view part) {
  return std::string_view{e.what()}.find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("exceptions of the standard library get an exit code and a message") {
  auto const own = error_of([] { fail(exit_code::nonfinite, "step 3"); });
  CHECK(own.code() == exit_code::nonfinite);
  CHECK(std::string_view{own.what()} == "step 3");

  auto const memory = error_of([] { throw std::bad_alloc{}; });
  CHECK(memory.code() == exit_code::cannot_fit);
  CHECK(says(memory, "--batch_size"));

  auto const files = error_of([] {
    namespace fs = std::filesystem;
    (void)fs::file_size("/nonexistent/a\nfile");
  });
  CHECK(files.code() == exit_code::io_failure);
  CHECK(says(files, "No such file"));
  CHECK(says(files, "/nonexistent/a\\x0afile"));

  auto const threads = error_of(
      [] { throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again)}; });
  CHECK(threads.code() == exit_code::cannot_fit);
  CHECK(says(threads, "ulimit -u"));

  auto const logic = error_of([] { (void)std::vector<int>{}.at(1); });
  CHECK(logic.code() == exit_code::internal);
  CHECK(says(logic, "range"));
  CHECK(error_of([] { throw 1; }).code() == exit_code::internal);
}

TEST_CASE("an interrupted call is repeated, and the reason of a failure is that of the call") {
  int calls = 0;
  CHECK(uninterrupted([&] {
          errno = EINTR;
          return ++calls < 4 ? -1 : 7;
        }) == 7);
  CHECK(calls == 4);
  errno = 0;
  auto const failed = error_of([&] {
    expect_call(uninterrupted([] {
                  errno = ENOSPC;
                  return -1;
                }) == 0,
                exit_code::io_failure, "a", 1);
  });
  CHECK(failed.code() == exit_code::io_failure);
  CHECK(std::string_view{failed.what()} == "a1: No space left on device");
}
