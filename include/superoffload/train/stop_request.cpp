// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/stop_request.hpp>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <iterator>
#include <mutex>

namespace superoffload::train {
namespace {

std::atomic<int> requested{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may not take a lock");

constexpr int handled[] = {SIGTERM, SIGINT, SIGHUP};
constexpr auto signals = std::size(handled);
struct sigaction former[signals];
std::mutex mutex;  // of what follows
int objects = 0;

void remember(int number) {
  if (number == SIGHUP) {  // a terminal that goes away may send it more than once
    int none = 0;
    requested.compare_exchange_strong(none, number);
  } else if (requested.exchange(number) != 0) {
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
  for (std::size_t i = 0; i < signals; ++i) {
    sigaction(handled[i], nullptr, &former[i]);
    bool const by_nohup = handled[i] == SIGHUP && former[i].sa_handler == SIG_IGN;
    if (!by_nohup) {
      sigaction(handled[i], &action, nullptr);
    }
  }
}

stop_request::~stop_request() {
  std::lock_guard const lock{mutex};
  if (--objects > 0) {
    return;
  }
  for (std::size_t i = 0; i < signals; ++i) { sigaction(handled[i], &former[i], nullptr); }
}

int stop_request::signal() const noexcept { return requested; }

}  // namespace superoffload::train
