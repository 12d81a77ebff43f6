// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/directory.hpp>
#include <superoffload/io/file_lock.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "scratch_directory.hpp"

#include <atomic>
#include <csignal>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

TEST_CASE("one process at a time holds a lock, and its end leaves nothing") {
  scratch_directory const directory;
  {
    auto const first = file_lock::acquire(directory / "lock");
    REQUIRE(first);
    CHECK(first->weakness().empty());
    CHECK_FALSE(file_lock::acquire(directory / "lock"));
    CHECK(list_directory(directory.path()) == std::vector<std::string>{"lock"});
  }
  CHECK(list_directory(directory.path()).empty());
  CHECK(file_lock::acquire(directory / "lock"));
}

TEST_CASE("a lock ends with its process") {
  scratch_directory const directory;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  auto const child = ::fork();
  if (child == 0) {
    auto const lock = file_lock::acquire(directory / "lock");
    char const has = lock ? 'y' : 'n';
    if (::write(ready[1], &has, 1) == 1) {
      ::pause();
    }
    ::_exit(1);
  }
  char has = 0;
  REQUIRE(::read(ready[0], &has, 1) == 1);
  CHECK(has == 'y');
  CHECK_FALSE(file_lock::acquire(directory / "lock"));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(file_lock::acquire(directory / "lock"));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("with any number of threads, never do two hold a lock at once") {
  scratch_directory const directory;
  std::atomic<int> holders = 0, taken = 0;
  std::atomic<bool> alone = true;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 2000; ++k) {
        if (auto const lock = file_lock::acquire(directory / "lock")) {
          alone = alone && ++holders == 1;
          ++taken;
          --holders;
        }
      }
    });
  }
  for (auto& thread : threads) { thread.join(); }
  CHECK(alone);
  CHECK(taken > 0);
}

TEST_CASE("a file that cannot be locked is named") {
  scratch_directory const directory;
  check_failure(failure_of([&] { file_lock::acquire(directory / "absent/lock"); }), exit_code::io_failure,
                "absent/lock", "No such file");
  REQUIRE(::mkfifo((directory / "pipe").c_str(), 0600) == 0);
  check_failure(failure_of([&] { file_lock::acquire(directory / "pipe"); }), exit_code::bad_input, "pipe",
                "regular file");
}
