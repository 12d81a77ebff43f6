// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/shared.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/mpi/membership.hpp>

#include <doctest/doctest.h>

#include "conformance/communicator.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace superoffload;
using namespace std::chrono_literals;

int number_of(int (*ask)(MPI_Comm, int*)) {
  int number = 0;
  ask(MPI_COMM_WORLD, &number);
  return number;
}

/// The first processes of the world as ranks; all of them learn what became of each.
struct processes {
  mpi::membership::settings settings{.piece_bytes = 4096};

  template <class Body>
  std::vector<std::string> run(int ranks, Body body) const {
    int const own = number_of(MPI_Comm_rank);
    MPI_Comm group = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, own < ranks ? 0 : MPI_UNDEFINED, own, &group);
    std::string said;
    if (group != MPI_COMM_NULL) {
      try {
        cpu::device device{1};
        comm::shared_communicator<cpu::device> communicator{
            std::make_unique<mpi::membership>(group, settings)};
        body(device, communicator);
      } catch (std::exception const& e) { said = e.what(); }
    }
    constexpr std::size_t most = 1024;
    said.resize(most);
    std::string all(most * static_cast<std::size_t>(number_of(MPI_Comm_size)), '\0');
    MPI_Allgather(said.data(), most, MPI_CHAR, all.data(), most, MPI_CHAR, MPI_COMM_WORLD);
    std::vector<std::string> outcomes;
    for (std::size_t r = 0; r < static_cast<std::size_t>(ranks); ++r) {
      outcomes.emplace_back(all.c_str() + r * most);
    }
    return outcomes;
  }
};

std::vector<int> numbers_of_ranks() {
  std::vector<int> all;
  for (int const ranks : {1, 2, 3, 4}) {
    if (ranks <= number_of(MPI_Comm_size)) {
      all.push_back(ranks);
    }
  }
  return all;
}

TEST_CASE("ranks compute the collectives' results by messages") {
  processes groups;
  for (int const ranks : numbers_of_ranks()) {
    conformance::communicator_computes_what_it_says(groups, ranks);
    conformance::communicator_divides_its_ranks(groups, ranks);
    conformance::communicator_agrees_on_the_host(groups, ranks);
    conformance::communicator_keeps_the_order_of_streams(groups, ranks);
  }
  groups.settings.piece_bytes = 1U << 20;
  conformance::communicator_computes_what_it_says(groups, number_of(MPI_Comm_size));
}

TEST_CASE("ranks end together") {
  processes groups;
  for (int const ranks : numbers_of_ranks()) {
    if (ranks > 1) {
      for (int const culprit : {0, ranks - 1}) {
        conformance::communicator_ends_together(groups, ranks, culprit);
      }
    }
  }
}

TEST_CASE("a rank that does not come is named when patience ends") {
  processes groups;
  groups.settings.patience = 2s;  // of a machine with other work
  int const ranks = number_of(MPI_Comm_size);
  auto const outcomes = groups.run(ranks, [&](auto&, auto& group) {
    if (group.rank() == ranks - 1) {
      std::this_thread::sleep_for(6s);
    }
    group.barrier();
  });
  for (auto const& said : outcomes) {
    CAPTURE(said);
    CHECK(said.find(concat("rank ", ranks - 1, " did not come to barrier")) != std::string::npos);
    CHECK(said.find("within 2000 ms") != std::string::npos);
  }
}

TEST_CASE("a rank that gives no sign of life is named, with its process and host, while the others compute") {
  processes groups;
  groups.settings.silence = 2s;
  int const ranks = number_of(MPI_Comm_size);
  auto const outcomes = groups.run(ranks, [&](auto&, auto& group) {
    group.barrier();
    if (group.rank() == ranks - 1) {
      // Stopped, until another process wakes it.
      pid_t const own = getpid();
      pid_t const waker = fork();
      if (waker == 0) {
        ::sleep(8);
        ::kill(own, SIGCONT);
        _exit(0);
      }
      ::raise(SIGSTOP);
    }
    for (int i = 0; i < 1000; ++i) {
      group.check();
      std::this_thread::sleep_for(10ms);
    }
  });
  char host[65] = {};
  ::gethostname(host, sizeof host - 1);
  for (int r = 0; r + 1 < ranks; ++r) {
    auto const& said = outcomes[static_cast<std::size_t>(r)];
    CAPTURE(said);
    CHECK(said.find(concat("rank ", ranks - 1, " (process ")) == 0);
    CHECK(said.find(concat("on host ", static_cast<char const*>(host))) != std::string::npos);
    CHECK(said.find("gave no sign of life for 2000 ms") != std::string::npos);
  }
}

TEST_CASE("ranks with other settings are refused") {
  processes groups;
  int const ranks = number_of(MPI_Comm_size);
  groups.settings.piece_bytes = number_of(MPI_Comm_rank) == ranks - 1 ? 8192 : 4096;
  for (auto const& said : groups.run(ranks, [](auto&, auto&) {})) {
    CAPTURE(said);
    CHECK(said.find("has another version of the program, or other settings") != std::string::npos);
  }
  groups.settings.piece_bytes = 100;
  for (auto const& said : groups.run(ranks, [](auto&, auto&) {})) {
    CHECK(said.find("pieces of 100 bytes: expected 4096 to 1 GiB") == 0);
  }
}

}  // namespace
