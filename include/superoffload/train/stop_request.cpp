// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/stop_request.hpp>

#include <atomic>
#include <csignal>
#include <mutex>

namespace superoffload::train {
namespace {

std::atomic<int> requested{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not take a lock");

constexpr int handled[] = {SIGTERM, SIGINT};
struct sigaction former[2];
std::mutex mutex;  // of what follows
int objects = 0;

void remember(int number) {
  if (requested.exchange(number) != 0) {
    std::signal(number, SIG_DFL);
    std::raise(number);
  }
}

}  // namespace

stop_request::stop_request() {
  std::lock_guard const lock{mutex};
  if (objects++ > 0) {
    return;
  }
  requested = 0;
  struct sigaction action{};
  action.sa_handler = remember;
  sigemptyset(&action.sa_mask);
  for (int i = 0; i < 2; ++i) { sigaction(handled[i], &action, &former[i]); }
}

stop_request::~stop_request() {
  std::lock_guard const lock{mutex};
  if (--objects > 0) {
    return;
  }
  for (int i = 0; i < 2; ++i) { sigaction(handled[i], &former[i], nullptr); }
}

int stop_request::signal() const noexcept { return requested; }

}  // namespace superoffload::train
