// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/fault.hpp>
#include <superoffload/train/run/checkpoint_writer.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/scratch_directory.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

/// A state whose bytes are all `value`; the test changes it as training would.
struct changing_state {
  std::vector<std::byte> bytes = std::vector<std::byte>(3 << 20);

  void become(int value) { std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(value)); }
  [[nodiscard]] std::vector<io::blob> blobs() {
    return {{"state", bytes.size(), [this](std::uint64_t offset, std::span<std::byte> to) {
               std::memcpy(to.data(), bytes.data() + offset, to.size());
             }}};
  }
};

std::byte first_of(std::filesystem::path const& checkpoint) {
  auto const reader = io::checkpoint_reader::open(checkpoint);
  reader.verify();
  std::byte value{};
  reader.read("state", 0, {&value, 1});
  return value;
}

TEST_CASE("a checkpoint has the state at the time of save(), although training continues") {
  test::scratch_directory const root;
  changing_state state;
  train::checkpoint_writer writer{root.path(), 2};
  CHECK_FALSE(writer.completed());
  for (int step = 1; step <= 4; ++step) {
    state.become(step);
    writer.save(step, "{}", state.blobs());
    state.become(99);  // at once
  }
  auto const last = writer.wait();
  REQUIRE(last);
  CHECK(last->directory == root.path() / "checkpoint-4");
  CHECK(last->bytes == state.bytes.size());
  CHECK(last->seconds > 0.0);
  CHECK_FALSE(writer.wait());
  CHECK(first_of(last->directory) == std::byte{4});
  CHECK(first_of(root.path() / "checkpoint-3") == std::byte{3});
  CHECK_FALSE(std::filesystem::exists(root.path() / "checkpoint-2"));
}

TEST_CASE("a failure is reported at once or by the next call") {
  test::scratch_directory const root;
  auto const file = root.path() / "file";
  std::ofstream{file} << "not a directory";
  changing_state state;
  train::checkpoint_writer writer{file, 0};
  CHECK_THROWS_AS(writer.save(1, "{}", state.blobs()), error);
  CHECK_FALSE(writer.wait());
  train::checkpoint_writer other{root.path(), 0};
  auto blobs = state.blobs();
  blobs.front().name = std::string(1000, 'x');  // refused when it is written
  other.save(1, "{}", blobs);
  CHECK_THROWS_AS(other.wait(), error);
  CHECK_FALSE(other.wait());
}

TEST_CASE("ranks write a checkpoint together, which is complete for all of them at once or for none") {
  test::scratch_directory const root;
  test::threads_of_a_process groups;
  conformance::all_succeeded(groups.run(3, [&](auto&, auto& group) {
    train::checkpoint_writer writer{root.path(), 1, comm::host_group{group}};
    for (int step = 1; step <= 3; ++step) {
      changing_state state;
      state.bytes.resize(static_cast<std::size_t>(2 - group.rank()) * 1000);  // the last rank has nothing
      state.become(10 * step + group.rank());
      writer.save(step, concat("{\"rank\":", group.rank(), "}"), state.blobs());
      std::optional<train::saved_checkpoint> done;
      while (!done) { done = writer.completed(); }
      conformance::require(done->directory == root.path() / concat("checkpoint-", step),
                           "another checkpoint");
      conformance::require(done->bytes == 3000, "not the bytes of all ranks");
    }
    conformance::require(!writer.wait(), "there is another one");
  }));
  auto const reader = io::checkpoint_reader::open(root.path() / "checkpoint-3");
  CHECK(reader.world_size() == 3);
  CHECK(reader.state_json() == "{\"rank\":0}");
  REQUIRE(reader.whole_bytes("state") == 3000);
  std::vector<std::byte> some(1000);
  reader.read_whole("state", 1500, some);
  CHECK(std::count(some.begin(), some.end(), std::byte{30}) == 500);
  CHECK(std::count(some.begin(), some.end(), std::byte{31}) == 500);
  CHECK_FALSE(std::filesystem::exists(root.path() / "checkpoint-2"));
}

/// The place of a rank of two hosts with two ranks each.
train::output_place place_of(int rank) {
  return {.keeper = rank / 2 * 2, .host = concat("host ", rank / 2), .share = 0.5};
}

TEST_CASE("hosts with directories of their own write one checkpoint, each its part") {
  test::scratch_directory const roots[2];
  test::threads_of_a_process groups;
  conformance::all_succeeded(groups.run(4, [&](auto&, auto& group) {
    int const rank = group.rank();
    train::checkpoint_writer writer{roots[rank / 2].path(), 2, comm::host_group{group}, "run",
                                    place_of(rank)};
    for (int step = 1; step <= 3; ++step) {
      changing_state state;
      state.bytes.resize(1000);
      state.become(10 * step + rank);
      writer.save(step, concat("{\"rank\":", rank, "}"), state.blobs());
      auto const done = writer.wait();
      conformance::require(done && done->bytes == 4000, "not the bytes of all ranks");
    }
  }));
  for (int host = 0; host < 2; ++host) {
    CAPTURE(host);
    CHECK(io::checkpoint_steps(roots[host].path()) == std::vector<std::int64_t>{2, 3});
    auto const reader = io::open_checkpoint(roots[host].path(), 3);
    CHECK(reader.digest() == io::open_checkpoint(roots[0].path(), 3).digest());
    CHECK(reader.run() == "run");
    CHECK(reader.state_json() == "{\"rank\":0}");
    for (int rank = 0; rank < 4; ++rank) { CHECK(reader.is_here(rank) == (rank / 2 == host)); }
    std::byte value{};
    reader.read("state", 0, {&value, 1}, 2 * host + 1);
    CHECK(value == static_cast<std::byte>(31 + 2 * host));
  }
}

/// An operation on checkpoint 2 that fails on the second host, after the ranks' parts were written.
struct failing_host {
  inline static std::string root;
  inline static io::operation what;

  failing_host(std::filesystem::path const& of, io::operation fails) {
    root = of.string();
    what = fails;
    io::fault.store([](io::operation now, std::filesystem::path const& path) {
      auto const name = path.string();
      bool const of_checkpoint = name.starts_with(root + "/.tmp-2-") || name == root + "/checkpoint-2";
      bool const strikes = now == what && of_checkpoint && name.find("/rank-") == name.npos;
      return strikes ? EIO : 0;
    });
  }
  failing_host(failing_host const&) = delete;
  failing_host& operator=(failing_host const&) = delete;
  ~failing_host() { io::fault.store(nullptr); }
};

TEST_CASE("if one host cannot complete a checkpoint, every host keeps the one before") {
  for (auto const fails : {io::operation::open, io::operation::sync, io::operation::rename}) {
    CAPTURE(static_cast<int>(fails));
    test::scratch_directory const roots[2];
    failing_host const injected{roots[1].path(), fails};
    test::threads_of_a_process groups;
    auto const outcomes = groups.run(4, [&](auto&, auto& group) {
      int const rank = group.rank();
      train::checkpoint_writer writer{roots[rank / 2].path(), 1, comm::host_group{group}, "run",
                                      place_of(rank)};
      comm::abort_on_exception const guard{group};
      for (int step = 1; step <= 2; ++step) {
        changing_state state;
        writer.save(step, "{}", state.blobs());
        writer.wait();
      }
    });
    for (auto const& outcome : outcomes) {
      CHECK(outcome.find(roots[1].path().string()) != std::string::npos);
    }
    CHECK(io::open_checkpoint(roots[0].path(), 1).is_here(1));
    CHECK(io::open_checkpoint(roots[1].path(), 1).is_here(2));
    CHECK_FALSE(std::filesystem::exists(roots[1].path() / "checkpoint-2"));
    bool const committed = fails == io::operation::rename;  // on the first host, while the second one failed
    CHECK(std::filesystem::exists(roots[0].path() / "checkpoint-2") == committed);
  }
}

TEST_CASE("if one rank cannot write, no rank has saved") {
  test::scratch_directory const root;
  test::threads_of_a_process groups;
  auto const outcomes = groups.run(2, [&](auto&, auto& group) {
    changing_state state;
    auto blobs = state.blobs();
    if (group.rank() == 1) {
      blobs.front().name = std::string(1000, 'x');
    }
    train::checkpoint_writer writer{root.path(), 0, comm::host_group{group}};
    comm::abort_on_exception const guard{group};
    writer.save(1, "{}", blobs);
    writer.wait();
  });
  CHECK(outcomes[1].find("expected a name of its own") != std::string::npos);
  CHECK(outcomes[0].find("rank 1") == 0);
  CHECK(std::filesystem::is_empty(root.path()));
}

}  // namespace
