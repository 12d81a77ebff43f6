// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/launcher.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

extern char** environ;

namespace superoffload::comm {
namespace detail {

using clock = std::chrono::steady_clock;

inline constexpr int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// The signals that the launcher reads from a descriptor instead of being interrupted by them.
class caught_signals {
public:
  caught_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int const number : forwarded) { sigaddset(&set, number); }
    for (int const number : {SIGCHLD, SIGTSTP, SIGCONT}) { sigaddset(&set, number); }
    descriptor_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    expect_call(descriptor_ >= 0, exit_code::io_failure, "no signalfd");
    sigprocmask(SIG_BLOCK, &set, &before_);
    // Some parents ignore SIGCHLD. Then children would end without a notice.
    struct sigaction action{};
    action.sa_handler = SIG_DFL;
    sigemptyset(&action.sa_mask);
    sigaction(SIGCHLD, &action, &on_child_);
  }
  caught_signals(caught_signals const&) = delete;
  caught_signals& operator=(caught_signals const&) = delete;
  ~caught_signals() {
    ::close(descriptor_);
    sigaction(SIGCHLD, &on_child_, nullptr);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  [[nodiscard]] sigset_t const& before() const noexcept { return before_; }
  [[nodiscard]] int next() const {
    signalfd_siginfo info{};
    return ::read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }

private:
  sigset_t before_{};
  struct sigaction on_child_{};
  int descriptor_ = -1;
};

/// Text on its way to a descriptor of ours. It never blocks, even if no process reads it: a blocked launcher
/// would miss the ends of ranks, and signals.
class output {
public:
  explicit output(int to) : to_{to} {}

  void put(std::string const& line) {
    if (waiting_.size() > max_waiting) {
      ++left_out_;
      return;
    }
    if (left_out_ > 0) {
      waiting_ += concat("(", left_out_, " lines were left out: they were not read)\n");
      left_out_ = 0;
    }
    waiting_ += line;
    flush();
  }
  /// Writes what can be written without blocking.
  void flush() {
    while (!waiting_.empty() && can_write()) {
      auto const written =
          uninterrupted([&] { return ::write(to_, waiting_.data(), std::min(waiting_.size(), piece)); });
      if (written < 0 && errno != EAGAIN) {
        waiting_.clear();  // no process reads our output
      } else if (written > 0) {
        waiting_.erase(0, static_cast<std::size_t>(written));
      }
    }
  }
  [[nodiscard]] bool waits() const noexcept { return !waiting_.empty(); }
  [[nodiscard]] int descriptor() const noexcept { return to_; }

private:
  static constexpr std::size_t max_waiting = std::size_t{1} << 20;
  static constexpr std::size_t piece = 512;  // a pipe that is ready takes that much

  [[nodiscard]] bool can_write() const {
    pollfd about{.fd = to_, .events = POLLOUT, .revents = 0};
    return uninterrupted([&] { return ::poll(&about, 1, 0); }) > 0;
  }

  int to_;
  std::string waiting_;
  std::size_t left_out_ = 0;
};

/// Lines of a rank on their way to our own output.
struct line_reader {
  int from = -1;
  output* to = nullptr;
  std::string text{};

  /// Whether there may be more to read.
  bool take(std::string const& prefix) {
    char block[4096];
    while (true) {
      auto const got = uninterrupted([&] { return ::read(from, block, sizeof block); });
      if (got < 0) {
        return errno == EAGAIN;
      }
      if (got == 0) {
        return false;
      }
      text.append(block, static_cast<std::size_t>(got));
      for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
        to->put(concat(prefix, std::string_view{text}.substr(0, end), "\n"));
        text.erase(0, end + 1);
      }
      if (text.size() > 65536) {
        to->put(concat(prefix, text, "\n"));
        text.clear();
      }
    }
  }
  void finish(std::string const& prefix) {
    take(prefix);
    if (!text.empty()) {
      to->put(concat(prefix, text, "\n"));
    }
    ::close(std::exchange(from, -1));
  }
};

struct child {
  pid_t process = -1;
  line_reader out{};
  line_reader err{};
  std::optional<siginfo_t> end{};              ///< how it ended
  std::optional<clock::time_point> stopped{};  ///< since when
};

using pipe = int[2];
inline constexpr int read_end = 0;
inline constexpr int write_end = 1;

/// The prepared start of a rank: everything that allocates happens before the fork.
struct preparation {
  int rank;
  std::string const& program;
  std::vector<std::string> variables;
  std::vector<char*> argv, envp;
  std::vector<cpu_set_t> processors;  ///< empty: not bound
  pipe out{-1, -1}, err{-1, -1};      ///< of every rank but the first
  pipe failure{-1, -1};               ///< for the number of an error before the program runs
};

inline std::vector<char*> pointers_to(std::vector<std::string> const& texts) {
  std::vector<char*> pointers;
  for (auto const& text : texts) { pointers.push_back(const_cast<char*>(text.c_str())); }
  pointers.push_back(nullptr);
  return pointers;
}

inline void open_pipes(preparation& p) {
  auto const open = [](pipe& ends) {
    expect_call(::pipe2(ends, O_CLOEXEC) == 0, exit_code::io_failure, "no pipe for a rank");
  };
  open(p.failure);
  if (p.rank != 0) {
    open(p.out);
    open(p.err);
  }
}

/// Ends the new process, which could not run its program.
[[noreturn]] inline void give_up(preparation const& p) {
  int const status = errno;
  (void)!::write(p.failure[write_end], &status, sizeof status);
  ::_exit(static_cast<int>(exit_code::io_failure));
}

class launching {
public:
  launching(launch_settings const& settings, std::string const& program,
            std::vector<std::string> const& arguments)
      : settings_{&settings}, segment_{settings.shared}, own_{::getpid()} {
    try {
      for (int r = 0; r < settings.shared.ranks && requested_ == 0; ++r) {
        start(r, program, arguments);
        handle_signals();
      }
    } catch (...) {
      end_all();
      throw;
    }
  }
  launching(launching const&) = delete;
  launching& operator=(launching const&) = delete;

  int wait() {
    if (static_cast<int>(children_.size()) < settings_->shared.ranks) {
      limit_time();  // a signal came meanwhile: those that run would wait for the others
    }
    while (true) {
      check_ranks();
      if (std::all_of(children_.begin(), children_.end(), [](auto const& c) { return c.end.has_value(); })) {
        break;
      }
      sleep();
      handle_signals();
    }
    end_all();
    write_the_rest();
    return code();
  }

private:
  [[nodiscard]] std::vector<std::string> variables_of(int rank) const {
    std::vector<std::string> variables;
    for (char** v = environ; *v != nullptr; ++v) {
      std::string_view const text{*v};
      auto const name = text.substr(0, text.find('='));
      if (name != "RANK" && name != "WORLD_SIZE" && name != "LOCAL_RANK" && name != "LOCAL_WORLD_SIZE" &&
          name != "LOCAL_SIZE" && name != "SUPEROFFLOAD_SEGMENT") {
        variables.emplace_back(text);
      }
    }
    int const ranks = settings_->shared.ranks;
    variables.push_back(concat("RANK=", rank));
    variables.push_back(concat("WORLD_SIZE=", ranks));
    variables.push_back(concat("LOCAL_RANK=", rank));
    variables.push_back(concat("LOCAL_WORLD_SIZE=", ranks));
    variables.push_back(concat("SUPEROFFLOAD_SEGMENT=", segment_.descriptor()));
    return variables;
  }

  [[nodiscard]] std::vector<cpu_set_t> processors_of(int rank) const {
    if (settings_->processors.empty()) {
      return {};
    }
    std::vector<cpu_set_t> processors(8);  // 8192 processors
    for (int const id : settings_->processors.at(static_cast<std::size_t>(rank))) {
      CPU_SET_S(static_cast<std::size_t>(id), processors.size() * sizeof(cpu_set_t), processors.data());
    }
    return processors;
  }

  /// Runs in the new process; allocates nothing.
  [[noreturn]] void run_program(preparation const& p) const {
    ::setpgid(0, group_);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGTTOU, SIG_IGN);  // the group is in the background: with stty tostop, output would stop it
    if (::getppid() != own_) {
      ::_exit(static_cast<int>(exit_code::io_failure));  // the launcher has ended already
    }
    if (int const nothing = ::open("/dev/null", O_RDONLY); nothing < 0 || ::dup2(nothing, 0) < 0) {
      give_up(p);
    }
    if (p.rank != 0 && (::dup2(p.out[write_end], 1) < 0 || ::dup2(p.err[write_end], 2) < 0)) {
      give_up(p);
    }
    if (!p.processors.empty() &&
        ::sched_setaffinity(0, p.processors.size() * sizeof(cpu_set_t), p.processors.data()) != 0) {
      give_up(p);
    }
    if (::fcntl(segment_.descriptor(), F_SETFD, 0) != 0) {
      give_up(p);
    }
    sigprocmask(SIG_SETMASK, &signals_.before(), nullptr);
    ::execve(p.program.c_str(), p.argv.data(), p.envp.data());
    give_up(p);
  }

  /// Waits until the new process runs its program; returns 0, or the number of the error that prevented it.
  int wait_for_program(pid_t process, preparation const& p) {
    ::setpgid(process, group_);  // here and in the child: either may run first
    if (group_ == 0) {
      group_ = process;
    }
    int reported = 0;
    auto const bytes = uninterrupted([&] { return ::read(p.failure[read_end], &reported, sizeof reported); });
    return bytes == sizeof reported ? reported : 0;
  }

  void start(int rank, std::string const& program, std::vector<std::string> const& arguments) {
    preparation p{.rank = rank,
                  .program = program,
                  .variables = variables_of(rank),
                  .argv = pointers_to(arguments),
                  .envp = {},
                  .processors = processors_of(rank)};
    p.envp = pointers_to(p.variables);
    open_pipes(p);
    std::fflush(nullptr);
    child c;
    c.process = ::fork();
    if (c.process == 0) {
      run_program(p);
    }
    int status = c.process < 0 ? errno : 0;
    ::close(p.failure[write_end]);
    if (c.process > 0) {
      status = wait_for_program(c.process, p);
    }
    ::close(p.failure[read_end]);
    if (rank != 0) {
      ::close(p.out[write_end]);
      ::close(p.err[write_end]);
      for (int const fd : {p.out[read_end], p.err[read_end]}) { ::fcntl(fd, F_SETFL, O_NONBLOCK); }
      c.out = {.from = p.out[read_end], .to = &out_};
      c.err = {.from = p.err[read_end], .to = &err_};
    }
    children_.push_back(std::move(c));
    expect(status == 0, exit_code::io_failure, "cannot start rank ", rank, " as ", printable(program), ": ",
           std::strerror(status));
  }

  /// Checks the state of the ranks. Their processes are not reaped until the end, so that the group's number
  /// stays theirs.
  void check_ranks() {
    auto const now = clock::now();
    for (int r = 0; r < static_cast<int>(children_.size()); ++r) {
      auto& c = children_[static_cast<std::size_t>(r)];
      siginfo_t info{};
      if (c.end) {
        continue;
      }
      expect_call(uninterrupted([&] {
                    return ::waitid(P_PID, static_cast<id_t>(c.process), &info,
                                    WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT);
                  }) == 0,
                  exit_code::io_failure, "the end of rank ", r, " (process ", c.process, ") cannot be seen");
      if (info.si_pid == 0) {
        continue;
      }
      if (info.si_code == CLD_STOPPED) {
        if (!c.stopped) {
          c.stopped = now;
        }
      } else if (info.si_code == CLD_CONTINUED) {
        c.stopped.reset();
      } else {
        c.end = info;
        note_end(r);
      }
      if (c.stopped && !c.end && !failed_ && now - *c.stopped > settings_->grace) {
        mark_failed(r, concat("has been stopped by signal ", info.si_status, " for ",
                              settings_->grace.count(), " ms"));
      }
    }
    if (deadline_ && now > *deadline_ && !killing_) {
      killing_ = true;
      for (int r = 0; r < static_cast<int>(children_.size()); ++r) {
        if (!children_[static_cast<std::size_t>(r)].end) {
          say(r, concat("did not end within ", settings_->grace.count(), " ms: killed"));
        }
      }
      ::kill(-group_, SIGKILL);
    }
  }

  static bool ended_by_itself(siginfo_t const& end) { return end.si_code == CLD_EXITED; }

  void note_end(int rank) {
    auto const& end = *children_[static_cast<std::size_t>(rank)].end;
    int const status = end.si_status;
    if (ended_by_itself(end) && (status == 0 || status == static_cast<int>(exit_code::interrupted))) {
      return;
    }
    if (ended_by_itself(end) && status == static_cast<int>(exit_code::rank_failed)) {
      limit_time();  // it has reported the failed rank, whose end is not seen here yet
    } else if (!failed_ && !killing_) {
      mark_failed(rank, ended_by_itself(end)
                            ? concat("ended with exit code ", status)
                            : concat("was ended by signal ", status, " (", ::strsignal(status), ")"));
    }
  }

  void mark_failed(int rank, std::string const& what) {
    failed_ = rank;
    segment_.mark_failed(rank, what);
    limit_time();
    say(rank, what);
  }
  void limit_time() {
    if (!deadline_) {
      deadline_ = clock::now() + settings_->grace;
    }
  }
  void say(int rank, std::string const& what) {
    err_.put(concat("rank ", rank, " of ", settings_->shared.ranks, " ", what, "\n"));
  }

  void sleep() {
    std::vector<pollfd> ready{{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
    for (auto const& c : children_) {
      for (int const fd : {c.out.from, c.err.from}) {
        if (fd >= 0) {
          ready.push_back({.fd = fd, .events = POLLIN, .revents = 0});
        }
      }
    }
    for (auto const* o : {&out_, &err_}) {
      if (o->waits()) {
        ready.push_back({.fd = o->descriptor(), .events = POLLOUT, .revents = 0});
      }
    }
    ::poll(ready.data(), ready.size(), 200);
    out_.flush();
    err_.flush();
    for (int r = 0; r < static_cast<int>(children_.size()); ++r) {
      auto& c = children_[static_cast<std::size_t>(r)];
      auto const prefix = concat("rank ", r, ": ");
      for (auto* const lines : {&c.out, &c.err}) {
        if (lines->from >= 0 && !lines->take(prefix)) {
          lines->finish(prefix);
        }
      }
    }
  }

  static bool asks_to_end(int number) { return number == SIGINT || number == SIGTERM || number == SIGHUP; }

  void handle_signals() {
    for (int number = signals_.next(); number != 0; number = signals_.next()) { handle(number); }
  }

  void handle(int number) {
    if (number == SIGCHLD) {
      return;
    }
    if (number == SIGTSTP) {
      ::kill(-group_, SIGSTOP);
      ::raise(SIGSTOP);
      number = SIGCONT;  // this process runs again
    }
    if (number == SIGCONT) {
      ::kill(-group_, SIGCONT);
      for (auto& c : children_) { c.stopped.reset(); }
      return;
    }
    if (asks_to_end(number)) {
      requested_ = number;
    }
    for (auto const& c : children_) {
      if (!c.end) {
        ::kill(c.process, number);
      }
    }
  }

  /// Waits until our output is read, unless a signal interrupts.
  void write_the_rest() {
    while (out_.waits() || err_.waits()) {
      for (int number = signals_.next(); number != 0; number = signals_.next()) {
        if (asks_to_end(number)) {
          return;
        }
      }
      sleep();
    }
  }

  /// Ends every process of the group before it returns.
  void end_all() {
    if (group_ > 0) {
      ::kill(-group_, SIGKILL);
    }
    for (int r = 0; r < static_cast<int>(children_.size()); ++r) {
      auto& c = children_[static_cast<std::size_t>(r)];
      if (c.process > 0) {
        uninterrupted([&] { return ::waitpid(c.process, nullptr, 0); });
      }
      auto const prefix = concat("rank ", r, ": ");
      for (auto* const lines : {&c.out, &c.err}) {
        if (lines->from >= 0) {
          lines->finish(prefix);
        }
      }
    }
  }

  /// Did ranks end by the signal that was forwarded to them, before they could answer it, and none failed
  /// before?
  [[nodiscard]] bool ended_as_requested() const {
    auto const ended_by_it = [&](child const& c) {
      return c.end->si_code != CLD_EXITED && c.end->si_status == requested_;
    };
    bool const by_itself = failed_ && !ended_by_it(children_[static_cast<std::size_t>(*failed_)]);
    bool const some_not_started = static_cast<int>(children_.size()) < settings_->shared.ranks;
    return requested_ != 0 && !by_itself &&
           (some_not_started || std::any_of(children_.begin(), children_.end(), ended_by_it));
  }

  [[nodiscard]] int code() const {
    if (ended_as_requested()) {
      return 128 + requested_;
    }
    int worst = 0;
    for (auto const& c : children_) {
      if (c.end->si_code != CLD_EXITED) {
        worst = static_cast<int>(exit_code::rank_failed);
      } else if (worst == 0) {
        worst = c.end->si_status;
      }
    }
    if (failed_) {
      auto const& end = *children_[static_cast<std::size_t>(*failed_)].end;
      return ended_by_itself(end) ? end.si_status : static_cast<int>(exit_code::rank_failed);
    }
    return worst;
  }

  launch_settings const* settings_;
  shared_segment segment_;
  pid_t own_;
  caught_signals signals_;
  output out_{STDOUT_FILENO}, err_{STDERR_FILENO};
  int requested_ = 0;  ///< the signal that asked the run to end, if one came
  pid_t group_ = 0;    ///< the process group of all ranks: the first rank's process
  std::vector<child> children_;
  std::optional<int> failed_;                  ///< the first rank that failed on its own
  std::optional<clock::time_point> deadline_;  ///< for all ranks that still run
  bool killing_ = false;                       ///< the deadline has passed
};

}  // namespace detail

SUPEROFFLOAD_INLINE int launch(launch_settings const& settings, std::string const& program,
                               std::vector<std::string> const& arguments) {
  expect(settings.processors.empty() || std::ssize(settings.processors) == settings.shared.ranks,
         exit_code::internal, "processors of ", settings.processors.size(), " ranks of ",
         settings.shared.ranks);
  return detail::launching{settings, program, arguments}.wait();
}

}  // namespace superoffload::comm
