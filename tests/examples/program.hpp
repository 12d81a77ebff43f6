// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace superoffload::test {

/// Without the lines that say how long work of a second or more took: whether there are any depends on the
/// machine's load.
inline std::string without_times(std::string const& said) {
  static std::regex const time{"[a-zA-Z ]+: ([0-9.]+ [KMGT]?i?B in )?[0-9.]+ s(, .*)?\n"};
  std::string kept;
  for (std::size_t begin = 0; begin < said.size();) {
    auto const end = std::min(said.find('\n', begin), said.size() - 1) + 1;
    auto const line = said.substr(begin, end - begin);
    kept += std::regex_match(line, time) ? "" : line;
    begin = end;
  }
  return kept;
}

struct outcome {
  int status = -1;  ///< exit code, or 128 + signal
  std::string out;
  std::string err;  ///< without_times
};

/// A program that was started with its output caught in files.
class program {
public:
  /// `prepare` runs in the child before the program, for limits.
  program(std::filesystem::path const& file, std::vector<std::string> const& arguments,
          std::function<void()> const& prepare = {}, std::filesystem::path const& input = "/dev/null") {
    std::vector<char*> argv{const_cast<char*>(file.c_str())};
    for (auto const& argument : arguments) { argv.push_back(const_cast<char*>(argument.c_str())); }
    argv.push_back(nullptr);
    auto const out = directory_.path() / "out";
    auto const err = directory_.path() / "err";
    child_ = ::fork();
    REQUIRE(child_ >= 0);
    if (child_ == 0) {
      ::dup2(::open(input.c_str(), O_RDONLY), 0);
      ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT, 0600), 1);
      ::dup2(::open(err.c_str(), O_WRONLY | O_CREAT, 0600), 2);
      if (prepare) {
        prepare();
      }
      ::execv(file.c_str(), argv.data());
      ::_exit(127);
    }
  }
  ~program() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
  }

  /// To a program that is still running: kill(-1) would reach everybody else.
  void send(int signal) const {
    REQUIRE(child_ > 0);
    ::kill(child_, signal);
  }
  [[nodiscard]] bool running() {
    if (child_ > 0 && ::waitpid(child_, &status_, WNOHANG) == child_) {
      child_ = -1;
    }
    return child_ > 0;
  }
  /// Of a program that has not been waited for.
  [[nodiscard]] pid_t id() const noexcept { return child_; }
  [[nodiscard]] std::string errors_so_far() const { return contents_of(directory_.path() / "err"); }

  outcome wait() {
    if (child_ > 0) {
      ::waitpid(child_, &status_, 0);
    }
    child_ = -1;
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_),
            contents_of(directory_.path() / "out"), without_times(errors_so_far())};
  }

private:
  scratch_directory directory_;
  pid_t child_ = -1;
  int status_ = 0;
};

inline outcome run(std::filesystem::path const& file, std::vector<std::string> const& arguments) {
  return program{file, arguments}.wait();
}

/// Writes a file and says where.
inline std::filesystem::path write_file(std::filesystem::path const& file, std::string const& text) {
  std::ofstream{file, std::ios::binary} << text;
  return file;
}

}  // namespace superoffload::test
