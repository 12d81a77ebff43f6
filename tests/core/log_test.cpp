// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/log.hpp>

#include <doctest/doctest.h>

#include "support/collected.hpp"

#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace superoffload;
using test::collected;

/// What `body` writes to standard error, in a process of its own whose standard error is a pipe. It is read
/// after `wait`.
template <class Body, class Wait>
std::string standard_error_of(Body const& body, Wait const& wait) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  auto const child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    body();
    ::_exit(0);
  }
  ::close(ends[1]);
  wait();
  std::string all;
  char part[4096];
  for (ssize_t n = 0; (n = ::read(ends[0], part, sizeof part)) > 0;) {
    all.append(part, static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  return all;
}

template <class Body>
std::string standard_error_of(Body const& body) {
  return standard_error_of(body, [] {});
}

TEST_CASE("a sink gets every line with its level, from any thread, until it is replaced") {
  {
    collected seen{true};
    CHECK(log_is_live());
    log(log_level::note, "step ", 3);
    std::thread{[] { log_line(log_level::warning, "from a thread"); }}.join();
    log_line(log_level::status, "half");
    CHECK(seen.lines == std::vector<std::string>{"2 step 3", "3 from a thread", "0 half"});
  }
  collected after;
  CHECK_FALSE(log_is_live());
  CHECK(after.lines.empty());
}

TEST_CASE("lines below the level are dropped, and a program may have no sink") {
  collected seen;
  auto const before = set_log_level(log_level::warning);
  log_line(log_level::note, "a note");
  log_line(log_level::error, "an error");
  set_log_level(before);
  CHECK(seen.lines == std::vector<std::string>{"4 an error"});
  set_log_sink({});
  log_line(log_level::error, "nowhere");
  CHECK(seen.lines.size() == 1);
}

TEST_CASE("standard error names notes and warnings, and shows no status unless it is a terminal") {
  auto const text = standard_error_of([] {
    set_log_sink(standard_error_sink());
    if (!log_is_live()) {
      log_line(log_level::info, "a line");
      log_line(log_level::note, "one");
      log_line(log_level::warning, "two");
      log_line(log_level::error, "three");
    }
  });
  CHECK(text == "a line\nnote: one\nwarning: two\nthree\n");
}

TEST_CASE("a log whose level leaves statuses out is not live") {
  collected const seen{true};
  auto const before = set_log_level(log_level::info);
  CHECK_FALSE(log_is_live());
  set_log_level(before);
  CHECK(log_is_live());
}

TEST_CASE("a status is cut to the width, between its parts where it can be") {
  auto const shown = [](std::string const& status, char const* columns) {
    auto const text = standard_error_of([&] {
      ::setenv("COLUMNS", columns, 1);
      set_log_sink(standard_error_sink());
      log_line(log_level::status, status);
    });
    std::string const erase = "\r\x1b[2K";
    REQUIRE(text.starts_with(erase));
    return text.substr(erase.size());
  };
  CHECK(shown("0123456789", "11") == "0123456789");
  CHECK(shown("0123456789", "10") == "012345678");
  CHECK(shown("loss 1  device 2", "16") == "loss 1");
  CHECK(shown("loss 1  device 2", "17") == "loss 1  device 2");
  CHECK(shown("  loss", "4") == "  l");
  CHECK(shown("loss", "1").empty());
  CHECK(shown("loss", "wide") == "loss");
}

TEST_CASE("a status is erased by an empty one, by a line, at the end and by a signal handler") {
  auto const text = standard_error_of([] {
    set_log_sink(standard_error_sink());
    log_line(log_level::status, "");  // there is none
    log_line(log_level::status, "one");
    log_line(log_level::status, "");
    log_line(log_level::status, "two");
    log_line(log_level::info, "a line");
    log_line(log_level::status, "three");
    erase_status();
    erase_status();
    log_line(log_level::status, "four");
    flush_log();
  });
  std::string const erase = "\r\x1b[2K";
  CHECK(text == erase + "one" + erase + erase + "two" + erase + "a line\n" + erase + "three" + erase + erase +
                    "four" + erase);
}

TEST_CASE("a program does not wait for a reader: lines that a full pipe does not take are counted") {
  int logged[2];
  REQUIRE(::pipe(logged) == 0);
  auto const text = standard_error_of(
      [&] {
        set_log_sink(standard_error_sink());
        std::string const line(1000, 'x');
        for (int i = 0; i < 1000; ++i) { log_line(log_level::info, line); }  // 1 MB for a pipe of 64 KiB
        ::close(logged[0]);
        ::close(logged[1]);
        flush_log();
        log_line(log_level::info, "the end");
        flush_log();
      },
      [&] {  // until the other process has closed its end
        ::close(logged[1]);
        char none = 0;
        CHECK(::read(logged[0], &none, 1) == 0);
        ::close(logged[0]);
      });
  CAPTURE(text.size());
  CHECK(text.find(" lines were left out: they were not read)\nthe end\n") != std::string::npos);
  CHECK(text.size() < 1'000'000);
}

}  // namespace
