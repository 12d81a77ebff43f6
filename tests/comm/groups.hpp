// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/shared.hpp>
#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/device.hpp>

#include "support/sanitizer.hpp"

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace superoffload::test {

/// The numbers of ranks that tests try. Above three, only the number differs; one has no threads of others.
inline std::vector<int> numbers_of_ranks() {
  return under_thread_sanitizer ? std::vector{3} : std::vector{1, 2, 3, 4};
}

using group_of_host = comm::shared_communicator<cpu::device>;

/// Runs a rank: body(device, group) on the CPU.
struct rank_on_cpu {
  template <class Body>
  static void run(comm::shared_segment& shared, int rank, Body& body) {
    cpu::device own{1};
    group_of_host group{shared, rank};
    body(own, group);
  }
};

/// Ranks as threads of this process.
template <class Rank>
struct threads_of {
  comm::shared_segment::settings settings{.piece_bytes = 4096};

  template <class Body>
  std::vector<std::string> run(int ranks, Body body) {
    settings.ranks = ranks;
    comm::shared_segment shared{settings};
    std::vector<std::string> outcomes(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        try {
          Rank::run(shared, r, body);
        } catch (std::exception const& e) { outcomes[static_cast<std::size_t>(r)] = e.what(); }
      });
    }
    for (auto& thread : threads) { thread.join(); }
    return outcomes;
  }
};

/// A forked process that prints a text before it ends.
struct child {
  pid_t process;
  int words;

  template <class Say>
  static child start(Say say) {
    std::array<int, 2> ends{};
    expect(pipe(ends.data()) == 0, exit_code::io_failure, "no pipe");
    std::fflush(nullptr);  // or the child would write it, too
    pid_t const process = fork();
    expect(process >= 0, exit_code::io_failure, "no process");
    if (process == 0) {
      auto const said = say() + '\n';
      std::fflush(nullptr);
      auto const written = write(ends[1], said.data(), said.size());
      _exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
    }
    close(ends[1]);
    return {process, ends[0]};
  }

  /// The child's output, "ended" when there is none.
  [[nodiscard]] std::string finish() const {
    std::string said;
    std::array<char, 256> block{};
    for (ssize_t got = 0; (got = read(words, block.data(), block.size())) > 0;) {
      said.append(block.data(), static_cast<std::size_t>(got));
    }
    close(words);
    int status = 0;
    waitpid(process, &status, 0);
    if (said.empty()) {
      return "ended";
    }
    said.pop_back();
    return status == 0 ? said : said + concat(" (status ", status, ")");  // a sanitizer may have failed
  }
};

/// Ranks as forked processes. A body that ends its process leaves "ended".
template <class Rank>
struct processes_of {
  comm::shared_segment::settings settings{.piece_bytes = 4096};
  int stops = -1;  ///< a rank that does not end by itself: it is killed when all others have ended

  template <class Body>
  std::vector<std::string> run(int ranks, Body body) {
    settings.ranks = ranks;
    comm::shared_segment shared{settings};
    std::vector<child> children;
    for (int r = 0; r < ranks; ++r) {
      children.push_back(child::start([&]() -> std::string {
        try {
          Rank::run(shared, r, body);
          return "";
        } catch (std::exception const& e) { return e.what(); }
      }));
    }
    std::vector<std::string> outcomes(children.size());
    for (std::size_t r = 0; r < children.size(); ++r) {
      if (static_cast<int>(r) != stops) {
        outcomes[r] = children[r].finish();
      }
    }
    if (stops >= 0 && stops < ranks) {
      auto const& last = children[static_cast<std::size_t>(stops)];
      kill(last.process, SIGKILL);
      outcomes[static_cast<std::size_t>(stops)] = last.finish();
    }
    return outcomes;
  }
};

using threads_of_a_process = threads_of<rank_on_cpu>;
using processes = processes_of<rank_on_cpu>;

}  // namespace superoffload::test
