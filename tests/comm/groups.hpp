// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/region.hpp>
#include <superoffload/comm/shared.hpp>
#include <superoffload/cpu/device.hpp>

#include <doctest/doctest.h>

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

using group_of_host = comm::shared_communicator<cpu::device>;

/// Ranks as threads of this process.
struct threads_of_a_process {
  comm::region::settings settings{.piece_bytes = 4096};

  template <class Body>
  std::vector<std::string> run(int ranks, Body body) {
    settings.ranks = ranks;
    comm::region shared{settings};
    std::vector<std::string> outcomes(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r) {
      threads.emplace_back([&, r] {
        try {
          cpu::device own{1};
          group_of_host group{shared, r};
          body(own, group);
        } catch (std::exception const& e) { outcomes[static_cast<std::size_t>(r)] = e.what(); }
      });
    }
    for (auto& thread : threads) { thread.join(); }
    return outcomes;
  }
};

/// Ranks as processes, forked from this one. A body that ends its process leaves "ended".
struct processes {
  comm::region::settings settings{.piece_bytes = 4096};
  int stops = -1;  ///< a rank that will not end by itself: ended when all others have

  template <class Body>
  std::vector<std::string> run(int ranks, Body body) {
    settings.ranks = ranks;
    comm::region shared{settings};
    struct child {
      pid_t process;
      int words;
    };
    std::vector<child> children;
    for (int r = 0; r < ranks; ++r) {
      std::array<int, 2> ends{};
      REQUIRE(pipe(ends.data()) == 0);
      std::fflush(nullptr);  // or the child would write it too
      pid_t const process = fork();
      REQUIRE(process >= 0);
      if (process == 0) {
        std::string said = "ended";
        try {
          cpu::device own{1};
          group_of_host group{shared, r};
          body(own, group);
          said = "";
        } catch (std::exception const& e) { said = e.what(); }
        said += '\n';
        auto const written = write(ends[1], said.data(), said.size());
        _exit(written == static_cast<ssize_t>(said.size()) ? 0 : 1);
      }
      close(ends[1]);
      children.push_back({process, ends[0]});
    }
    std::vector<std::string> outcomes(children.size());
    auto const finish = [&](std::size_t r) {
      std::string said;
      std::array<char, 256> block{};
      for (ssize_t got = 0; (got = read(children[r].words, block.data(), block.size())) > 0;) {
        said.append(block.data(), static_cast<std::size_t>(got));
      }
      close(children[r].words);
      int status = 0;
      waitpid(children[r].process, &status, 0);
      outcomes[r] = said.empty() ? "ended" : said.substr(0, said.size() - 1);
      if (!said.empty() && status != 0) {  // a sanitizer has the last word
        outcomes[r] += concat(" (status ", status, ")");
      }
    };
    for (std::size_t r = 0; r < children.size(); ++r) {
      if (static_cast<int>(r) != stops) {
        finish(r);
      }
    }
    if (stops >= 0 && stops < ranks) {
      kill(children[static_cast<std::size_t>(stops)].process, SIGKILL);
      finish(static_cast<std::size_t>(stops));
    }
    return outcomes;
  }
};

}  // namespace superoffload::test
