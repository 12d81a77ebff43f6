// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/launcher.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/topology.hpp>

#include <doctest/doctest.h>

#include "examples/program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <pty.h>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <vector>

namespace {

using namespace superoffload;
using test::outcome;
using test::program;

std::filesystem::path const rank_program{SUPEROFFLOAD_RANK_PROGRAM};

bool says(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::vector<std::string> arguments(int ranks, std::vector<std::string> const& work, int grace = 4000,
                                   int patience = 60000) {
  std::vector<std::string> all{std::to_string(ranks), std::to_string(grace), std::to_string(patience)};
  all.insert(all.end(), work.begin(), work.end());
  return all;
}
void no_core() {
  rlimit const none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
}
outcome run(int ranks, std::vector<std::string> const& work, int grace = 4000, int patience = 60000) {
  return program{rank_program, arguments(ranks, work, grace, patience), no_core}.wait();
}

/// The processes in lines "rank <n> is <process>".
std::vector<pid_t> processes_in(std::string const& text) {
  std::vector<pid_t> found;
  for (auto at = text.find("rank "); at != std::string::npos; at = text.find("rank ", at + 1)) {
    auto const is = text.find(" is ", at);
    if (is != std::string::npos && is - at < 12) {
      found.push_back(std::atoi(text.c_str() + is + 4));
    }
  }
  return found;
}
bool all_gone(std::vector<pid_t> const& processes) {
  return std::all_of(processes.begin(), processes.end(),
                     [](pid_t p) { return p <= 0 || (kill(p, 0) != 0 && errno == ESRCH); });
}
/// Waits for `text` in the program's output; gives up after a minute.
bool has_said(program& of, std::string_view text, std::size_t times) {
  for (int i = 0; i < 6000; ++i) {
    auto const said = of.errors_so_far();
    std::size_t count = 0;
    for (auto at = said.find(text); at != std::string::npos; at = said.find(text, at + 1)) { ++count; }
    if (count >= times) {
      return true;
    }
    if (!of.running()) {
      return false;
    }
    usleep(10000);
  }
  return false;
}

TEST_CASE("ranks are started and find each other, and only rank 0's output has no prefix") {
  for (int const ranks : {1, 2, 3, 5}) {
    CAPTURE(ranks);
    auto const done = run(ranks, {"sum"});
    CAPTURE(done.err);
    CHECK(done.status == 0);
    auto const sum = concat("the sum is ", ranks * (ranks - 1) / 2, "\n");
    CHECK(says("\n" + done.out, "\n" + sum));
    for (int r = 1; r < ranks; ++r) {
      CHECK(says("\n" + done.out, concat("\nrank ", r, ": ", sum)));
      CHECK(says("\n" + done.err, concat("\nrank ", r, ": rank ", r, " is ")));
    }
    CHECK(std::ssize(processes_in(done.err)) >= ranks);
  }
}

TEST_CASE("ranks are bound to cores of their own, as far as there are enough, and have no input") {
  auto const host = cpu::read_topology(cpu::allowed_processors());
  for (int const ranks : {1, 2, 64}) {
    CAPTURE(ranks);
    auto const done = run(ranks, {"where"});
    CHECK(done.status == 0);
    auto const divided = cpu::divide_processors(host, ranks);
    for (int r = 0; r < ranks; ++r) {
      std::string line = r == 0 ? "processors" : concat("rank ", r, ": processors");
      for (int const id :
           divided.empty() ? cpu::allowed_processors() : divided[static_cast<std::size_t>(r)]) {
        line += concat(" ", id);
      }
      CHECK(says("\n" + done.out, "\n" + line + " input 0\n"));
    }
  }
}

TEST_CASE("when one rank ends, all end, with its name and its exit code") {
  struct end {
    std::string fault;
    int code;
    std::string said;
  };
  for (auto const& e : std::vector<end>{{"kill", 10, "was ended by signal 9"},
                                        {"segv", 10, "was ended by signal 11"},
                                        {"exit0", 10, "ended before"},
                                        {"exit4", 4, "ended with exit code 4"},
                                        {"throw", 4, "the disk is gone"}}) {
    for (int const step : {-1, 0, 7}) {
      for (int const culprit : {0, 2}) {
        CAPTURE(e.fault);
        CAPTURE(step);
        CAPTURE(culprit);
        auto const done = run(3, {"forever", e.fault, std::to_string(culprit), std::to_string(step)}, 4000,
                              e.fault == "exit0" && step < 0 ? 500 : 60000);
        CAPTURE(done.err);
        CHECK(done.status == e.code);
        if (e.fault != "exit0" || step >= 0) {
          CHECK(says(done.err, e.said));
        }
        CHECK(says(done.err, concat("rank ", culprit, " ")));
        CHECK(all_gone(processes_in(done.err)));
      }
    }
  }
}

TEST_CASE("a rank that is stopped, or hangs, is killed") {
  for (auto const* fault : {"stop", "hang"}) {
    CAPTURE(fault);
    auto const done =
        run(2, {"forever", fault, "1", "5"}, 700, std::string_view{fault} == "stop" ? 60000 : 700);
    CAPTURE(done.err);
    CHECK(done.status == 10);
    CHECK(says(done.err, std::string_view{fault} == "stop" ? "rank 1 of 2 has been stopped by signal 19"
                                                           : "rank 1 did not come to all_gather"));
    CHECK(says(done.err, "rank 1 of 2 did not end within 700 ms: killed"));
    CHECK(all_gone(processes_in(done.err)));
  }
}

TEST_CASE("signals are forwarded, and the run has the ranks' exit code") {
  for (int const signal : {SIGTERM, SIGINT}) {
    program running{rank_program, arguments(3, {"forever"})};
    REQUIRE(has_said(running, "working", 3));
    running.send(signal);
    auto const done = running.wait();
    CAPTURE(done.err);
    CHECK(done.status == 7);
    CHECK_FALSE(says(done.err, "ended"));
    CHECK(all_gone(processes_in(done.err)));
  }
}

TEST_CASE("a signal that ends a rank before it can answer ends the run as it would end one process") {
  for (int const signal : {SIGTERM, SIGINT}) {
    program running{rank_program, arguments(3, {"forever", "mortal", "1", "-1"}), no_core};
    REQUIRE(has_said(running, "working", 3));
    running.send(signal);
    auto const done = running.wait();
    CAPTURE(done.err);
    CHECK(done.status == 128 + signal);
    CHECK(all_gone(processes_in(done.err)));
  }
}

TEST_CASE("a signal while ranks are started starts no more of them") {
  program running{rank_program, arguments(64, {"forever"}, 500), no_core};
  REQUIRE(has_said(running, "rank 0 is", 1));
  running.send(SIGTERM);
  auto const done = running.wait();
  CAPTURE(done.err);
  CHECK((done.status == 128 + SIGTERM || done.status == 7));  // 7: all had been started
  CHECK(all_gone(processes_in(done.err)));
}

TEST_CASE("ranks end with a launcher that is killed") {
  program running{rank_program, arguments(3, {"forever"})};
  REQUIRE(has_said(running, "working", 3));
  auto const ranks = processes_in(running.errors_so_far());
  CHECK(ranks.size() >= 3);
  running.send(SIGKILL);
  CHECK(running.wait().status == 128 + SIGKILL);
  bool gone = false;
  for (int i = 0; i < 1000 && !gone; ++i) {
    gone = all_gone(ranks);
    usleep(10000);
  }
  CHECK(gone);
}

TEST_CASE("a suspended run continues") {
  program running{rank_program, arguments(2, {"forever"}, 300, 300)};
  REQUIRE(has_said(running, "working", 2));
  running.send(SIGTSTP);
  usleep(1000000);  // longer than grace and patience
  CHECK(running.running());
  running.send(SIGCONT);
  usleep(500000);
  CHECK(running.running());
  running.send(SIGTERM);
  auto const done = running.wait();
  CAPTURE(done.err);
  CHECK(done.status == 7);
}

TEST_CASE("processes that ranks leave behind end with the run") {
  auto const done = run(2, {"steps", "child", "1", "3"});
  CAPTURE(done.err);
  CHECK(done.status == 0);
  auto const processes = processes_in(done.err);
  CHECK(says(done.err, "rank child is"));
  bool gone = false;
  for (int i = 0; i < 1000 && !gone; ++i) {  // init reaps it some time later
    gone = std::all_of(processes.begin(), processes.end(), [](pid_t p) {
      return p <= 0 || kill(p, 0) != 0 || says(test::contents_of(concat("/proc/", p, "/stat")), ") Z ");
    });
    usleep(10000);
  }
  CHECK(gone);
}

TEST_CASE("a missing program is an error of the launcher") {
  try {
    (void)comm::launch({.shared = {.ranks = 2}}, "/nonexistent/program", {"program"});
    CHECK(false);
  } catch (error const& e) {
    CHECK(e.code() == exit_code::io_failure);
    CHECK(says(e.what(), "cannot start rank 0 as /nonexistent/program: No such file"));
  }
}

TEST_CASE("a parent that ignores the end of its children does not hide the ends of ranks") {
  auto const ignores = [] {
    std::signal(SIGCHLD, SIG_IGN);
    alarm(60);
  };
  auto const done = program{rank_program, arguments(3, {"sum"}), ignores}.wait();
  CHECK(done.status == 0);
  auto const ended = program{rank_program, arguments(3, {"steps", "kill", "1", "3"}), ignores}.wait();
  CHECK(ended.status == static_cast<int>(exit_code::rank_failed));
  CHECK(says(ended.err, "rank 1 of 3 was ended by signal 9"));
}

TEST_CASE("unread output does not block a rank, and arrives when it is read") {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  program p{rank_program, arguments(2, {"chatter"}, 4000, 3000), [&] { dup2(ends[1], 2); }};
  close(ends[1]);
  usleep(4'000'000);  // longer than the patience
  std::string said;
  std::array<char, 4096> block{};
  for (ssize_t got = 1; got > 0;) {
    got = read(ends[0], block.data(), block.size());
    said.append(block.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  close(ends[0]);
  CHECK(p.wait().status == 0);
  for (int i = 0; i < 400; ++i) { CHECK(says(said, concat("rank 1: line ", i, " of ....."))); }
}

TEST_CASE("stty tostop stops no rank") {
  int terminal = -1;
  pid_t const child = forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(child >= 0);
  if (child == 0) {
    termios settings{};
    tcgetattr(0, &settings);
    settings.c_lflag |= TOSTOP;
    tcsetattr(0, TCSANOW, &settings);
    auto all = arguments(2, {"steps"});
    std::string name = rank_program.string();
    std::vector<char*> argv{name.data()};
    for (auto& argument : all) { argv.push_back(argument.data()); }
    argv.push_back(nullptr);
    execv(name.c_str(), argv.data());
    _exit(127);
  }
  std::string said;
  std::array<char, 4096> block{};
  for (ssize_t got = 1; got > 0;) {
    got = read(terminal, block.data(), block.size());  // an error is the end of the output
    said.append(block.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
  close(terminal);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CAPTURE(said);
  CHECK(status == 0);
  CHECK(says(said, "rank 0 is"));
}

/// Ranks that another launcher starts.
struct rank_of_torchrun {
  rank_of_torchrun(int rank, std::vector<std::string> const& set, int patience = 20000)
      : process{rank_program, arguments(0, {"sum"}, 0, patience), [=] {
                  for (auto const& s : set) {
                    auto const is = s.find('=');
                    setenv(s.substr(0, is).c_str(), s.substr(is + 1).c_str(), 1);
                  }
                  setenv("RANK", std::to_string(rank).c_str(), 1);
                  setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
                }} {}
  program process;
};

std::vector<outcome> run_by_torchrun(std::vector<std::vector<std::string>> const& sets,
                                     int patience = 20000) {
  std::vector<std::unique_ptr<rank_of_torchrun>> ranks;
  for (std::size_t r = 0; r < sets.size(); ++r) {
    ranks.push_back(std::make_unique<rank_of_torchrun>(static_cast<int>(r), sets[r], patience));
  }
  std::vector<outcome> done;
  for (auto& r : ranks) { done.push_back(r->process.wait()); }
  return done;
}

std::vector<std::string> torchrun(int ranks, std::string const& job) {
  auto const n = std::to_string(ranks);
  return {"WORLD_SIZE=" + n, "LOCAL_WORLD_SIZE=" + n,
          "SUPEROFFLOAD_JOB=test " + std::to_string(getpid()) + " " + job};
}

TEST_CASE("ranks of another launcher find each other by the name of their job") {
  for (int const ranks : {1, 2, 4}) {
    auto const set = torchrun(ranks, "meets");
    for (auto const& done : run_by_torchrun(std::vector(static_cast<std::size_t>(ranks), set))) {
      CAPTURE(done.err);
      CHECK(done.status == 0);
      CHECK(done.out == concat("the sum is ", ranks * (ranks - 1) / 2, "\n"));
    }
  }
}

TEST_CASE("ranks with contradicting settings get an error that says how they differ") {
  auto const all_say = [](std::vector<outcome> const& done, std::string_view part) {
    for (auto const& d : done) {
      CAPTURE(d.err);
      CHECK(d.status == static_cast<int>(exit_code::bad_input));
      CHECK(says(d.err, part));
    }
  };
  all_say(run_by_torchrun({torchrun(2, "sizes"), torchrun(3, "sizes")}),
          "rank 1 was told of 3 ranks and rank 0 of 2");
  auto far = torchrun(4, "hosts");
  far[1] = "LOCAL_WORLD_SIZE=2";
  all_say(run_by_torchrun({far, far}), "2 of 4 ranks are of this host (torchrun says)");
  auto nameless = torchrun(2, "");
  nameless.pop_back();
  all_say(run_by_torchrun({nameless, nameless}), "set SUPEROFFLOAD_JOB");
  auto const set = torchrun(3, "again");
  std::vector<std::unique_ptr<rank_of_torchrun>> ranks;
  for (int const rank : {0, 1, 1}) { ranks.push_back(std::make_unique<rank_of_torchrun>(rank, set)); }
  std::vector<outcome> done;
  for (auto& r : ranks) { done.push_back(r->process.wait()); }
  all_say(done, "two processes say that they are rank 1 of 3");
}

TEST_CASE("missing ranks are named") {
  auto const set = torchrun(3, "late");
  auto const done = run_by_torchrun({set, set}, 500);
  CHECK(done[0].status == static_cast<int>(exit_code::rank_failed));
  CHECK(says(done[0].err, "rank 2 of 3 did not come within 500 ms"));
  CHECK(done[1].status != 0);
  rank_of_torchrun alone{1, torchrun(2, "alone"), 300};
  auto const lost = alone.process.wait();
  CHECK(lost.status == static_cast<int>(exit_code::rank_failed));
  CHECK(says(lost.err, "rank 0 of 'test "));
  CHECK(says(lost.err, "did not come within 300 ms to where rank 1 waits"));
}

TEST_CASE("a stopped rank of another launcher is noticed within seconds") {
  auto const set = torchrun(2, "stopped");
  auto const start = [&](int rank, std::string const& fault) {
    return std::make_unique<program>(rank_program, arguments(0, {"work", fault, "1", "5"}, 0, 200'000), [=] {
      for (auto const& s : set) {
        auto const is = s.find('=');
        setenv(s.substr(0, is).c_str(), s.substr(is + 1).c_str(), 1);
      }
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("LOCAL_RANK", std::to_string(rank).c_str(), 1);
      alarm(100);
    });
  };
  auto const first = start(0, "stop");
  auto const stopped = start(1, "stop");
  auto const done = first->wait();
  CAPTURE(done.err);
  CHECK(done.status == static_cast<int>(exit_code::rank_failed));
  CHECK(says(done.err, "rank 1 (process "));
  CHECK(says(done.err, "has been stopped by a signal for 8000 ms before all_gather"));
  stopped->send(SIGCONT);
  CHECK(stopped->wait().status == static_cast<int>(exit_code::rank_failed));
}

}  // namespace
