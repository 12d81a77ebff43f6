// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/run/stop_request.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace superoffload;
using train::stop_request;

/// How a process ends in which `body` runs: 0, or the signal that ended it.
int end_of(std::function<void()> const& body) {
  auto const child = ::fork();
  if (child == 0) {
    for (int const number : {SIGINT, SIGTERM, SIGHUP}) { std::signal(number, SIG_DFL); }
    body();
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/// The same for what must come quickly: a busy machine may need several attempts.
int end_of_quick(std::function<void()> const& body) {
  int end = end_of(body);
  for (int attempt = 1; attempt < 5 && end != 0; ++attempt) { end = end_of(body); }
  return end;
}

void expect(bool condition) {
  if (!condition) {
    std::raise(SIGABRT);
  }
}

void wait_for_another_request() {
  std::this_thread::sleep_for(stop_request::same_request + std::chrono::milliseconds{50});
}

TEST_CASE("a signal that comes again at once is the same request, later it ends the program") {
  for (int const number : {SIGINT, SIGTERM}) {
    CAPTURE(number);
    CHECK(end_of_quick([=] {
            stop_request const request;
            expect(request.signal() == 0);
            for (int i = 0; i < 3; ++i) { std::raise(number); }
            expect(request.signal() == number);
          }) == 0);
    CHECK(end_of([=] {
            stop_request const request;
            std::raise(number);
            wait_for_another_request();
            std::raise(number);
          }) == number);
  }
}

TEST_CASE("a signal of another kind ends the program at once, and a closed terminal never does") {
  CHECK(end_of([] {
          stop_request const request;
          std::raise(SIGTERM);
          std::raise(SIGINT);
        }) == SIGINT);
  CHECK(end_of([] {
          stop_request const request;
          std::raise(SIGTERM);
          std::raise(SIGHUP);
          wait_for_another_request();
          std::raise(SIGHUP);
          expect(request.signal() == SIGTERM);
        }) == 0);
}

TEST_CASE("signals that several threads get at once are one request") {
  CHECK(end_of_quick([] {
          stop_request const request;
          std::vector<std::thread> threads;
          for (int i = 0; i < 8; ++i) {
            threads.emplace_back([] { std::raise(SIGTERM); });
          }
          for (auto& thread : threads) { thread.join(); }
          expect(request.signal() == SIGTERM);
        }) == 0);
}

TEST_CASE("a new request knows nothing of a former one") {
  CHECK(end_of_quick([] {
          {
            stop_request const request;
            std::raise(SIGINT);
          }
          stop_request const request;
          expect(request.signal() == 0);
          std::raise(SIGTERM);
          expect(request.signal() == SIGTERM);
        }) == 0);
}

}  // namespace
