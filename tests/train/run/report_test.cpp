// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/run/report.hpp>
#include <superoffload/train/run/run_data.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace superoffload;

/// The refusal of a run that needs 1000 bytes and 100 for each of its sequences, or 10 with recompute.
struct situation {
  std::int64_t batch_size = 8, accumulation = 1;
  recompute::choice recompute = recompute::choice::none;
  std::size_t available = 0;

  [[nodiscard]] static std::size_t bytes(std::int64_t sequences, recompute::choice recompute) {
    return 1000 + static_cast<std::size_t>(sequences) * (recompute == recompute::choice::none ? 100 : 10);
  }
  /// The text after the planner's "the plan needs ..., but ... are available".
  [[nodiscard]] std::string advice() const {
    train::training_options o;
    o.batch_size = batch_size;
    o.accumulation = accumulation;
    o.recompute = recompute;
    offload::plan p;
    p.fits = false;
    p.refusal = "the plan needs more; the planner's advice";
    auto const text = train::refusal_of(p, "the device", o, [this](train::training_options const& other) {
      return bytes((other.batch_size + other.accumulation - 1) / other.accumulation, other.recompute) <=
             available;
    });
    CHECK(text.starts_with("the plan needs more"));
    return text.substr(text.find("; ") + 2);
  }
};

TEST_CASE("the refusal of a plan names the largest micro-batch that fits, and the flags for it") {
  auto const largest = [](char const* sequences, char const* flags) {
    return std::string{"the largest micro-batch that fits has "} + sequences + " of 1024 tokens: use" + flags;
  };
  CHECK(situation{.available = 1799}.advice() == largest("4 sequences", " --gradient_accumulation_steps 2"));
  CHECK(situation{.available = 1300}.advice() == largest("3 sequences", " --gradient_accumulation_steps 3"));
  CHECK(situation{.available = 1100}.advice() == largest("1 sequence", " --gradient_accumulation_steps 8"));
  CHECK(situation{.accumulation = 2, .available = 1399}.advice() ==
        largest("3 sequences", " --gradient_accumulation_steps 3"));
  CHECK(situation{.available = 1099}.advice() == largest("8 sequences", " --activation_checkpointing auto"));
  CHECK(situation{.available = 1050}.advice() ==
        largest("4 sequences", " --activation_checkpointing auto --gradient_accumulation_steps 2"));
  CHECK(situation{.recompute = recompute::choice::automatic, .available = 1050}.advice() ==
        largest("4 sequences", " --gradient_accumulation_steps 2"));
  CHECK(situation{.batch_size = 1'000'000, .available = 1'001'000}.advice() ==
        largest("10000 sequences", " --gradient_accumulation_steps 100"));
}

TEST_CASE("the refusal of a plan for several ranks names how many may share the micro-batch that fits") {
  train::training_options o;
  o.batch_size = 6;
  o.ranks = 6;
  o.recompute = recompute::choice::automatic;
  offload::plan p;
  p.refusal = "the plan needs more; the planner's advice";
  // A rank has room for a third of a sequence.
  auto const advice = [&](exit_code of_three, std::int64_t room_for_thirds) {
    auto const text = train::refusal_of(p, "it", o, [&](train::training_options const& other) {
      expect(other.sequence_ranks != 3 || of_three == exit_code::ok, of_three,
             "three do not divide the heads");
      return 3 * train::most_rows(other) <= room_for_thirds * other.sequence_ranks * o.max_length;
    });
    return text.substr(text.find("; ") + 2);
  };
  CHECK(advice(exit_code::ok, 1) ==
        "the largest micro-batch that fits has 1 sequence of 1024 tokens, shared by 3 ranks: use "
        "--sequence_parallel 3 --gradient_accumulation_steps 3");
  CHECK(advice(exit_code::bad_input, 1) ==
        "the largest micro-batch that fits has 2 sequences of 1024 tokens, shared by 6 ranks: use "
        "--sequence_parallel 6 --gradient_accumulation_steps 3");
  CHECK(advice(exit_code::ok, 0) == "the planner's advice");
  CHECK_THROWS_AS(static_cast<void>(advice(exit_code::internal, 1)), error);
  o.sequence_ranks = 6;
  CHECK(advice(exit_code::ok, 1) ==
        "the largest micro-batch that fits has 2 sequences of 1024 tokens: use --gradient_accumulation_steps "
        "3");
}

TEST_CASE("the refusal of a plan for long sequences names tiles of MLPs, before more ranks") {
  train::training_options o;
  o.batch_size = 4;
  o.max_length = 40000;
  o.ranks = 2;
  o.recompute = recompute::choice::automatic;
  offload::plan p;
  p.refusal = "the plan needs more; the planner's advice";
  auto const advice = [&](std::int64_t room_for_tokens) {
    auto const text = train::refusal_of(p, "it", o, [&](train::training_options const& other) {
      auto const rows = train::most_rows(other) / other.sequence_ranks;
      return rows <= room_for_tokens * (other.tiled_mlp > 0 ? 2 : 1);
    });
    return text.substr(text.find("; ") + 2);
  };
  CHECK(advice(40000) ==
        "the largest micro-batch that fits has 1 sequence of 40000 tokens: use --gradient_accumulation_steps "
        "2");
  CHECK(advice(20000) ==
        "the largest micro-batch that fits has 1 sequence of 40000 tokens: use --tiled_mlp 16384 "
        "--gradient_accumulation_steps 2");
  CHECK(advice(10000) ==
        "the largest micro-batch that fits has 1 sequence of 40000 tokens, shared by 2 ranks: use "
        "--sequence_parallel 2 --tiled_mlp 16384 --gradient_accumulation_steps 4");
  CHECK(advice(9999) == "the planner's advice");
  o.tiled_mlp = 1024;
  CHECK(advice(9999) == "the planner's advice");
}

TEST_CASE("a plan warns if less memory can be locked than it needs, and only then") {
  offload::plan p;
  p.pinned = 123'456'789;
  auto const text = [&](std::size_t lockable) {
    train::engine_outline outline;
    outline.lockable = lockable;
    return train::describe(p, {}, {}, outline);
  };
  auto const told = text(65536);
  auto const at =
      told.find("123456789 bytes of host memory are to be page-locked, but this process may lock 65536");
  REQUIRE(at != std::string::npos);
  auto const line = told.substr(at, told.find('\n', at) - at);
  CHECK(line.find("ulimit -l") != std::string::npos);
  CHECK(text(p.pinned).find("page-locked") == std::string::npos);
  CHECK(train::describe(p, {}, {}, train::engine_outline{}).find("page-locked") == std::string::npos);
}

TEST_CASE("if no micro-batch fits, the planner's advice stays") {
  CHECK(situation{.available = 1009}.advice() == "the planner's advice");
  CHECK(situation{.available = 0}.advice() == "the planner's advice");
}

}  // namespace
