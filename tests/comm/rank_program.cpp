// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A program of several ranks, for tests of how ranks start and end:
//   rank_program RANKS GRACE_MS PATIENCE_MS WORK [WHAT RANK STEP]
// Without a launcher's environment it starts RANKS copies of itself, 0: none. Each rank writes "rank <n> is
// <process>" to its standard error first.

#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/launcher.hpp>
#include <superoffload/comm/rendezvous.hpp>
#include <superoffload/comm/shared.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/topology.hpp>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace {

using namespace superoffload;
using std::chrono::milliseconds;

std::sig_atomic_t volatile asked_to_stop = 0;

void commit(std::string_view fault) {
  if (fault == "kill") {
    raise(SIGKILL);
  } else if (fault == "segv") {
    std::signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  } else if (fault == "exit0") {
    _exit(0);
  } else if (fault == "exit4") {
    _exit(4);
  } else if (fault == "throw") {
    fail(exit_code::io_failure, "the disk is gone");
  } else if (fault == "stop") {
    raise(SIGSTOP);
  } else if (fault == "hang") {
    while (true) { usleep(100000); }
  } else if (fault == "mortal") {  // as before a run answers signals
    for (int const signal : {SIGTERM, SIGINT}) { std::signal(signal, SIG_DFL); }
  } else if (fault == "child") {  // a child that would outlive its parent
    pid_t const child = fork();
    if (child == 0) {
      while (true) { pause(); }
    }
    std::fputs(concat("rank child is ", child, "\n").c_str(), stderr);
  }
}

int work(comm::environment const& run, milliseconds patience, std::vector<std::string> const& what) {
  std::fputs(concat("rank ", run.rank, " is ", ::getpid(), "\n").c_str(), stderr);
  if (what[0] == "where") {
    std::string processors;
    for (int const id : cpu::allowed_processors()) { processors += concat(" ", id); }
    std::puts(concat("processors", processors, " input ", ::lseek(0, 0, SEEK_END)).c_str());
    return 0;
  }
  auto const number = [&](std::size_t i) { return i < what.size() ? std::stoi(what[i]) : -1; };
  std::string const fault = what.size() > 1 ? what[1] : "";
  int const culprit = number(2);
  int const step = number(3);
  if (culprit == run.rank && step < 0) {
    commit(fault);
  }
  auto shared = comm::rendezvous(run, {.patience = patience});
  cpu::device device{1};
  comm::shared_communicator<cpu::device> group{shared, run.rank};
  cpu::stream stream{device};
  struct told {
    int number, stops;
  };
  std::vector<told> all(static_cast<std::size_t>(run.ranks));
  comm::abort_on_exception const guard{group};
  for (int i = 0;; ++i) {
    if (culprit == run.rank && i == step) {
      commit(fault);
    }
    told const own{.number = run.rank, .stops = asked_to_stop != 0 ? 1 : 0};
    group.queue(stream, comm::all_gather{&own, all.data(), sizeof own});
    stream.synchronize();
    told sum{};
    for (auto const& one : all) { sum = {sum.number + one.number, sum.stops + one.stops}; }
    if (what[0] == "sum") {
      std::puts(concat("the sum is ", sum.number).c_str());
      return 0;
    }
    if (i == 3) {
      std::fputs("working\n", stderr);
    }
    if (sum.stops != 0) {
      return static_cast<int>(exit_code::interrupted);
    }
    if ((what[0] == "steps" && i == 20) || (what[0] == "chatter" && i == 400)) {
      return 0;
    }
    if (what[0] == "chatter" && run.rank != 0) {
      std::fputs(concat("line ", i, " of ", std::string(1000, '.'), "\n").c_str(), stderr);
    }
    usleep(1000);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> const arguments{argv, argv + argc};
  try {
    int const ranks = std::stoi(arguments.at(1));
    milliseconds const grace{std::stoi(arguments.at(2))};
    milliseconds const patience{std::stoi(arguments.at(3))};
    auto const run = comm::read_environment();
    if (!run) {
      expect(ranks > 0, exit_code::bad_input, "not started by a launcher");
      comm::launch_settings settings{.shared = {.ranks = ranks, .patience = patience}, .grace = grace};
      if (arguments.at(4) == "where") {
        settings.processors = cpu::divide_processors(cpu::read_topology(cpu::allowed_processors()), ranks);
      }
      return comm::launch(settings, "/proc/self/exe", arguments);
    }
    for (int const signal : {SIGTERM, SIGINT}) {
      std::signal(signal, [](int) { asked_to_stop = 1; });
    }
    return work(*run, patience, {arguments.begin() + 4, arguments.end()});
  } catch (error const& e) {
    std::fputs(concat(e.what(), "\n").c_str(), stderr);
    return static_cast<int>(e.code());
  } catch (std::exception const& e) {
    std::fputs(concat(e.what(), "\n").c_str(), stderr);
    return static_cast<int>(exit_code::internal);
  }
}
