// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/program.hpp>
#include <superoffload/comm/agreement.hpp>
#include <superoffload/core/current_error.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/core/version.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <string>
#include <unistd.h>

namespace superoffload::cli {
namespace detail {

inline char const* name_of_program = "";

/// A closed one would become the number of the next file, which would then get what is said. Opened the wrong
/// way round: to use it still fails.
SUPEROFFLOAD_INLINE void take_standard_descriptors() {
  for (int const descriptor : {0, 1, 2}) {
    if (::fcntl(descriptor, F_GETFD) < 0 && errno == EBADF &&
        ::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) != descriptor) {
      std::_Exit(static_cast<int>(exit_code::io_failure));
    }
  }
}

/// A signal that ends the program leaves no status on the terminal.
SUPEROFFLOAD_INLINE void erase_status_on_signals() {
  for (int const number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct ::sigaction former{}, action{};
    action.sa_handler = [](int signal) {
      erase_status();
      std::raise(signal);
    };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    if (::sigaction(number, nullptr, &former) == 0 && former.sa_handler == SIG_DFL) {
      ::sigaction(number, &action, nullptr);
    }
  }
}

SUPEROFFLOAD_INLINE int report(char const* what, exit_code code) noexcept {
  std::fflush(stdout);
  flush_log();
  bool const colored = log_is_colored();
  std::fprintf(stderr, "%s: %serror:%s %s\n", name_of_program, colored ? "\x1b[31m" : "",
               colored ? "\x1b[0m" : "", what);
  return static_cast<int>(code);
}

/// Has something that was written to standard output been lost? Not if its reader has gone, nor if it was
/// closed (take_standard_descriptors).
SUPEROFFLOAD_INLINE bool lost_output() {
  bool const open = (::fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) != O_RDONLY;
  bool const failed = open && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0);
  ::pollfd about{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return failed && !(::poll(&about, 1, 0) == 1 && (about.revents & POLLERR) != 0);
}

/// Tells of the exception that is being handled.
SUPEROFFLOAD_INLINE int report_current() noexcept {
  try {
    auto const e = current_error();
    return report(printable(e.what(), 4000).c_str(), e.code());
  } catch (...) {  // no memory for the text
    return report("out of memory", exit_code::cannot_fit);
  }
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string version_line(std::string const& name) {
  return concat(name, " (superoffload) ", SUPEROFFLOAD_VERSION_MAJOR, '.', SUPEROFFLOAD_VERSION_MINOR, '.',
                SUPEROFFLOAD_VERSION_PATCH);
}

SUPEROFFLOAD_INLINE char const* program_name(int argc, char** argv) {
  if (argc == 0) {
    return "superoffload";
  }
  char const* const slash = std::strrchr(argv[0], '/');
  return slash == nullptr ? argv[0] : slash + 1;
}

SUPEROFFLOAD_INLINE int run_program(char const* name, std::function<int(int, char**)> const& body, int argc,
                                    char** argv) {
  detail::take_standard_descriptors();
  // A file-size limit, and a pipe that is read no more, is a failed write with its reason, not a death.
  for (int const signal : {SIGXFSZ, SIGPIPE}) { std::signal(signal, SIG_IGN); }
  detail::erase_status_on_signals();
  detail::name_of_program = name;
  std::set_terminate([] {
    std::_Exit(std::current_exception() != nullptr
                   ? detail::report_current()
                   : detail::report("terminated without an exception", exit_code::internal));
  });
  try {
    int const code = body(argc, argv);
    return code == 0 && detail::lost_output()
               ? detail::report(
                     "standard output: cannot be written (is the disk full?); the program has done "
                     "all else",
                     exit_code::io_failure)
               : code;
  } catch (comm::agreed_error const& e) {
    return e.is_first() ? detail::report_current() : static_cast<int>(e.code());
  } catch (...) {
    int const code = detail::report_current();
    if (code == static_cast<int>(exit_code::device_lost)) {
      std::_Exit(code);  // what a driver does at the end of a process may wait for the device
    }
    return code;
  }
}

}  // namespace superoffload::cli
