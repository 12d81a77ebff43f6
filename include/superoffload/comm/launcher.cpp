// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/launcher.hpp>
#include <superoffload/core/error.hpp>

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
namespace {

using clock = std::chrono::steady_clock;

constexpr int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};

/// The signals that the launcher reads instead of being interrupted by them.
class caught_signals {
public:
  caught_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (int const number : forwarded) { sigaddset(&set, number); }
    for (int const number : {SIGCHLD, SIGTSTP, SIGCONT}) { sigaddset(&set, number); }
    sigprocmask(SIG_BLOCK, &set, &before_);
    descriptor_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    expect(descriptor_ >= 0, exit_code::io_failure, "no signalfd: ", std::strerror(errno));
  }
  caught_signals(caught_signals const&) = delete;
  caught_signals& operator=(caught_signals const&) = delete;
  ~caught_signals() {
    ::close(descriptor_);
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
  int descriptor_ = -1;
};

/// Lines of a rank on their way to our own output.
struct line_reader {
  int from = -1;
  int to = -1;
  std::string text{};

  /// Whether there may be more.
  bool take(std::string const& prefix) {
    char block[4096];
    while (true) {
      auto const got = ::read(from, block, sizeof block);
      if (got < 0) {
        return errno == EAGAIN || errno == EINTR;
      }
      if (got == 0) {
        return false;
      }
      text.append(block, static_cast<std::size_t>(got));
      for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
        put(prefix, std::string_view{text}.substr(0, end));
        text.erase(0, end + 1);
      }
      if (text.size() > 65536) {
        put(prefix, text);
        text.clear();
      }
    }
  }
  void finish(std::string const& prefix) {
    take(prefix);
    if (!text.empty()) {
      put(prefix, text);
    }
    ::close(std::exchange(from, -1));
  }

private:
  void put(std::string const& prefix, std::string_view line) const {
    auto const whole = concat(prefix, line, "\n");
    for (std::string_view rest{whole}; !rest.empty();) {
      auto const written = ::write(to, rest.data(), rest.size());
      if (written < 0 && errno != EINTR) {
        return;  // nobody reads us
      }
      rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    }
  }
};

struct child {
  pid_t process = -1;
  line_reader out{};
  line_reader err{};
  std::optional<siginfo_t> end{};              ///< how it ended
  std::optional<clock::time_point> stopped{};  ///< since when
};

class launching {
public:
  launching(launch_settings const& settings, std::string const& program,
            std::vector<std::string> const& arguments)
      : settings_{&settings}, region_{settings.shared}, own_{::getpid()} {
    try {
      for (int r = 0; r < settings.shared.ranks; ++r) { start(r, program, arguments); }
    } catch (...) {
      end_all();
      throw;
    }
  }
  launching(launching const&) = delete;
  launching& operator=(launching const&) = delete;

  int wait() {
    while (true) {
      look();
      if (std::all_of(children_.begin(), children_.end(), [](auto const& c) { return c.end.has_value(); })) {
        break;
      }
      sleep();
      for (int number = signals_.next(); number != 0; number = signals_.next()) { handle(number); }
    }
    end_all();
    return code();
  }

private:
  static constexpr int read_end = 0;
  static constexpr int write_end = 1;

  void start(int rank, std::string const& program, std::vector<std::string> const& arguments) {
    // All that allocates happens before the fork.
    std::vector<std::string> variables;
    for (char** v = environ; *v != nullptr; ++v) {
      std::string_view const text{*v};
      auto const name = text.substr(0, text.find('='));
      if (name != "RANK" && name != "WORLD_SIZE" && name != "LOCAL_RANK" && name != "LOCAL_WORLD_SIZE" &&
          name != "LOCAL_SIZE" && name != "SUPEROFFLOAD_REGION") {
        variables.emplace_back(text);
      }
    }
    int const ranks = settings_->shared.ranks;
    variables.push_back(concat("RANK=", rank));
    variables.push_back(concat("WORLD_SIZE=", ranks));
    variables.push_back(concat("LOCAL_RANK=", rank));
    variables.push_back(concat("LOCAL_WORLD_SIZE=", ranks));
    variables.push_back(concat("SUPEROFFLOAD_REGION=", region_.descriptor()));
    std::vector<char*> envp;
    for (auto& v : variables) { envp.push_back(v.data()); }
    envp.push_back(nullptr);
    std::vector<char*> argv;
    for (auto const& a : arguments) { argv.push_back(const_cast<char*>(a.c_str())); }
    argv.push_back(nullptr);
    std::vector<cpu_set_t> processors(8);  // room for 8192
    auto const bytes = processors.size() * sizeof(cpu_set_t);
    bool const binds = !settings_->processors.empty();
    if (binds) {
      for (int const id : settings_->processors.at(static_cast<std::size_t>(rank))) {
        CPU_SET_S(static_cast<std::size_t>(id), bytes, processors.data());
      }
    }
    auto const new_pipe = [](int(&ends)[2]) {
      expect(::pipe2(ends, O_CLOEXEC) == 0, exit_code::io_failure,
             "no pipe for a rank: ", std::strerror(errno));
    };
    int out[2] = {-1, -1};
    int err[2] = {-1, -1};
    int failure[2];
    new_pipe(failure);
    if (rank != 0) {
      new_pipe(out);
      new_pipe(err);
    }
    std::fflush(nullptr);
    child c;
    c.process = ::fork();
    if (c.process == 0) {
      auto const give_up = [&] {
        int const status = errno;
        (void)!::write(failure[write_end], &status, sizeof status);
        ::_exit(static_cast<int>(exit_code::io_failure));
      };
      ::setpgid(0, group_);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != own_) {
        ::_exit(static_cast<int>(exit_code::io_failure));  // it ended before it was watched
      }
      if (int const nothing = ::open("/dev/null", O_RDONLY); nothing < 0 || ::dup2(nothing, 0) < 0) {
        give_up();
      }
      if (rank != 0 && (::dup2(out[write_end], 1) < 0 || ::dup2(err[write_end], 2) < 0)) {
        give_up();
      }
      if (binds && ::sched_setaffinity(0, bytes, processors.data()) != 0) {
        give_up();
      }
      if (::fcntl(region_.descriptor(), F_SETFD, 0) != 0) {
        give_up();
      }
      sigprocmask(SIG_SETMASK, &signals_.before(), nullptr);
      ::execve(program.c_str(), argv.data(), envp.data());
      give_up();
    }
    ::close(failure[write_end]);
    int status = c.process < 0 ? errno : 0;
    if (c.process > 0) {
      ::setpgid(c.process, group_);  // whoever comes first
      if (group_ == 0) {
        group_ = c.process;
      }
      int reported = 0;
      if (::read(failure[read_end], &reported, sizeof reported) == sizeof reported) {
        status = reported;
      }
    }
    ::close(failure[read_end]);
    if (rank != 0) {
      ::close(out[write_end]);
      ::close(err[write_end]);
      for (int const fd : {out[read_end], err[read_end]}) { ::fcntl(fd, F_SETFL, O_NONBLOCK); }
      c.out = {.from = out[read_end], .to = STDOUT_FILENO};
      c.err = {.from = err[read_end], .to = STDERR_FILENO};
    }
    children_.push_back(std::move(c));
    expect(status == 0, exit_code::io_failure, "cannot start rank ", rank, " as ", printable(program), ": ",
           std::strerror(status));
  }

  /// What has become of the ranks. They stay to be waited for until the end, so that their group stays
  /// theirs.
  void look() {
    auto const now = clock::now();
    for (int r = 0; r < static_cast<int>(children_.size()); ++r) {
      auto& c = children_[static_cast<std::size_t>(r)];
      siginfo_t info{};
      if (c.end ||
          ::waitid(P_PID, static_cast<id_t>(c.process), &info,
                   WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid == 0) {
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
        judge(r);
      }
      if (c.stopped && !c.end && !failed_ && now - *c.stopped > settings_->grace) {
        condemn(r, concat("has been stopped by signal ", info.si_status, " for ", settings_->grace.count(),
                          " ms"));
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

  void judge(int rank) {
    auto const& end = *children_[static_cast<std::size_t>(rank)].end;
    int const status = end.si_status;
    if (ended_by_itself(end) && (status == 0 || status == static_cast<int>(exit_code::interrupted))) {
      return;
    }
    if (ended_by_itself(end) && status == static_cast<int>(exit_code::rank_failed)) {
      limit_time();  // it has said who failed, which is still to be seen here
    } else if (!failed_ && !killing_) {
      condemn(rank, ended_by_itself(end)
                        ? concat("ended with exit code ", status)
                        : concat("was ended by signal ", status, " (", ::strsignal(status), ")"));
    }
  }

  void condemn(int rank, std::string const& what) {
    failed_ = rank;
    region_.condemn(rank, what);
    limit_time();
    say(rank, what);
  }
  void limit_time() {
    if (!deadline_) {
      deadline_ = clock::now() + settings_->grace;
    }
  }
  void say(int rank, std::string const& what) const {
    std::fputs(concat("rank ", rank, " of ", settings_->shared.ranks, " ", what, "\n").c_str(), stderr);
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
    ::poll(ready.data(), ready.size(), 200);
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

  void handle(int number) {
    if (number == SIGCHLD) {
      return;
    }
    if (number == SIGTSTP) {
      ::kill(-group_, SIGSTOP);
      ::raise(SIGSTOP);
      number = SIGCONT;  // here again
    }
    if (number == SIGCONT) {
      ::kill(-group_, SIGCONT);
      for (auto& c : children_) { c.stopped.reset(); }
      return;
    }
    for (auto const& c : children_) {
      if (!c.end) {
        ::kill(c.process, number);
      }
    }
  }

  /// Nobody of the group lives when this returns.
  void end_all() {
    if (group_ > 0) {
      ::kill(-group_, SIGKILL);
    }
    for (int r = 0; r < static_cast<int>(children_.size()); ++r) {
      auto& c = children_[static_cast<std::size_t>(r)];
      if (c.process > 0) {
        ::waitpid(c.process, nullptr, 0);
      }
      auto const prefix = concat("rank ", r, ": ");
      for (auto* const lines : {&c.out, &c.err}) {
        if (lines->from >= 0) {
          lines->finish(prefix);
        }
      }
    }
  }

  [[nodiscard]] int code() const {
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
  region region_;
  pid_t own_;
  caught_signals signals_;
  pid_t group_ = 0;  ///< of all ranks: the first one's
  std::vector<child> children_;
  std::optional<int> failed_;                  ///< the first rank that failed by itself
  std::optional<clock::time_point> deadline_;  ///< for all that are left
  bool killing_ = false;                       ///< it has passed
};

}  // namespace

int launch(launch_settings const& settings, std::string const& program,
           std::vector<std::string> const& arguments) {
  expect(settings.processors.empty() || std::ssize(settings.processors) == settings.shared.ranks,
         exit_code::internal, "processors of ", settings.processors.size(), " ranks of ",
         settings.shared.ranks);
  return launching{settings, program, arguments}.wait();
}

}  // namespace superoffload::comm
