// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/range.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace superoffload;
using namespace std::chrono_literals;

template <class Body>
std::string refusal(exit_code code, Body body) {
  try {
    body();
  } catch (error const& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "accepted";
}
bool says(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("invalid settings are refused") {
  auto const with = [](comm::shared_segment::settings const& s) {
    return refusal(exit_code::bad_input, [&] { comm::shared_segment{s}; });
  };
  CHECK(says(with({.ranks = 0}), "0 ranks on one host: expected 1 to 1024"));
  CHECK(says(with({.ranks = 1025}), "1025 ranks"));
  CHECK(says(with({.ranks = 2, .piece_bytes = 100}), "pieces of 100 bytes"));
  CHECK(says(with({.ranks = 2, .patience = 0ms}), "patience of 0 ms"));
}

TEST_CASE("a rank is taken only once, and never again after it has left") {
  comm::shared_segment shared{{.ranks = 2}};
  {
    comm::shared_membership const first{shared, 1};
    CHECK(says(refusal(exit_code::rank_failed, [&] { comm::shared_membership{shared, 1}; }),
               "rank 1 was already taken"));
  }
  CHECK(says(refusal(exit_code::rank_failed, [&] { comm::shared_membership{shared, 1}; }), "already taken"));
  for (int const rank : {-1, 2}) {
    CHECK(says(refusal(exit_code::bad_input, [&] { comm::shared_membership{shared, rank}; }),
               "expected 0 to 1"));
  }
}

TEST_CASE("two processes cannot be the same rank, whether or not the first one lives") {
  comm::shared_segment shared{{.ranks = 2}};
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  std::fflush(nullptr);
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    comm::shared_membership const first{shared, 0};
    (void)!write(ends[1], "!", 1);
    while (true) { pause(); }
  }
  char byte = 0;
  REQUIRE(read(ends[0], &byte, 1) == 1);
  auto const join = [&] {
    return refusal(exit_code::rank_failed, [&] { comm::shared_membership{shared, 0}; });
  };
  CHECK(says(join(), "rank 0 is taken by another process"));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  CHECK(says(join(), "rank 0 was already taken"));
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("a process attaches to a segment by its descriptor, and refuses any other file") {
  comm::shared_segment const shared{{.ranks = 3}};
  {
    auto const same = comm::shared_segment::attach(dup(shared.descriptor()));
    CHECK(same.ranks() == 3);
  }
  CHECK(says(refusal(exit_code::bad_input, [] { (void)comm::shared_segment::attach(-1); }), "descriptor -1"));
  CHECK(
      says(refusal(exit_code::bad_input, [] { (void)comm::shared_segment::attach(999); }), "descriptor 999"));
  int const small = memfd_create("small", MFD_CLOEXEC);
  REQUIRE(ftruncate(small, 10) == 0);
  CHECK(says(refusal(exit_code::bad_input, [&] { (void)comm::shared_segment::attach(small); }),
             "has 10 bytes"));
  close(small);
  // A segment of another version has different first bytes; others are cut short.
  auto const copy_of = [&](std::size_t bytes) {
    int const copy = memfd_create("copy", MFD_CLOEXEC);
    std::vector<char> content(bytes);
    REQUIRE(pread(shared.descriptor(), content.data(), bytes, 0) == static_cast<ssize_t>(bytes));
    REQUIRE(write(copy, content.data(), bytes) == static_cast<ssize_t>(bytes));
    return copy;
  };
  auto const all = static_cast<std::size_t>(lseek(shared.descriptor(), 0, SEEK_END));
  int const other = copy_of(all);
  REQUIRE(pwrite(other, "12345678", 8, 0) == 8);
  CHECK(says(refusal(exit_code::bad_input, [&] { (void)comm::shared_segment::attach(other); }),
             "another version"));
  int const cut = copy_of(all - 4096);
  CHECK(says(refusal(exit_code::bad_input, [&] { (void)comm::shared_segment::attach(cut); }),
             "another version"));
}

TEST_CASE("a segment has no name that could be left behind") {
  auto const entries = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] auto const& entry : std::filesystem::directory_iterator{"/dev/shm"}) { ++count; }
    return count;
  };
  auto const before = entries();
  comm::shared_segment const shared{{.ranks = 2}};
  CHECK(entries() == before);
  CHECK((fcntl(shared.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  // /proc shows it to processes of the same user only.
  struct stat about{};
  REQUIRE(fstat(shared.descriptor(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE("the patience limits the wait for a rank that lives but does not come") {
  test::threads_of_a_process groups;
  groups.settings.patience = 200ms;
  auto const outcomes = groups.run(3, [](auto&, auto& group) {
    enter_range("forward of ", "model.layers.3");
    group.barrier();
    if (group.rank() == 1) {
      try {
        while (true) {
          std::this_thread::sleep_for(10ms);
          group.check();
        }
      } catch (error const&) {}
      return;
    }
    group.barrier();
  });
  for (int const r : {0, 2}) {
    auto const& said = outcomes[static_cast<std::size_t>(r)];
    CAPTURE(said);
    CHECK(says(said, "rank 1 did not come to barrier (call 2, in forward of model.layers.3) within 200 ms"));
  }
}

TEST_CASE("a process outside of the group can fail it") {
  comm::shared_segment shared{{.ranks = 2}};
  comm::shared_membership rank{shared, 0};
  rank.check();
  shared.mark_failed(1, "was killed by signal 9");
  shared.mark_failed(0, "comes too late");
  CHECK(refusal(exit_code::rank_failed, [&] { rank.check(); }) == "rank 1 was killed by signal 9");
}

TEST_CASE("a reason of any length is kept up to the limit") {
  comm::shared_segment shared{{.ranks = 2}};
  comm::shared_membership rank{shared, 0};
  shared.mark_failed(1, std::string(5000, 'x'), 0);
  auto const said = refusal(exit_code::rank_failed, [&] { rank.check(); });
  CHECK(said.size() > 400);
  CHECK(said.size() < 600);
}

TEST_CASE("work on two streams without events between them is an error, not done in any order") {
  test::threads_of_a_process groups;
  auto const outcomes = groups.run(1, [](auto& device, auto& group) {
    cpu::stream slow{device};
    cpu::stream quick{device};
    double value = 1;
    slow.enqueue([] { std::this_thread::sleep_for(50ms); });
    group.queue(slow, comm::all_gather{&value, &value, sizeof value});
    group.queue(quick, comm::all_gather{&value, &value, sizeof value});
    try {
      quick.synchronize();
    } catch (error const&) {
      slow.synchronize();
      throw;
    }
  });
  CHECK(says(outcomes[0], "must be ordered by events"));
}

}  // namespace
