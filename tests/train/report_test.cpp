// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/report.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

using namespace superoffload;

/// What a run is told that needs 1000 bytes and 100 for each of its sequences, or 10 with recompute.
struct situation {
  std::int64_t batch_size = 8, accumulation = 1;
  recompute::choice recompute = recompute::choice::none;
  std::size_t available = 0;

  [[nodiscard]] static std::size_t bytes(std::int64_t sequences, recompute::choice recompute) {
    return 1000 + static_cast<std::size_t>(sequences) * (recompute == recompute::choice::none ? 100 : 10);
  }
  [[nodiscard]] std::string verdict() const {
    train::training_options o;
    o.batch_size = batch_size;
    o.accumulation = accumulation;
    train::plan p;
    p.weights = bytes((batch_size + accumulation - 1) / accumulation, recompute);
    o.recompute = recompute;
    try {
      train::expect_fits(p, available, "the device", o, bytes);
    } catch (error const& e) {
      CHECK(e.code() == exit_code::cannot_fit);
      std::string const what = e.what();
      CHECK(what.starts_with("the plan needs "));
      CHECK(what.find(" of memory on the device, but ") != std::string::npos);
      return what.substr(what.find("; ") + 2);
    }
    return "fits";
  }
};

TEST_CASE("a plan that does not fit names the largest micro-batch that does, and the flags for it") {
  auto const largest = [](char const* sequences, char const* flags) {
    return std::string{"the largest micro-batch that fits has "} + sequences + " of 1024 tokens: use" + flags;
  };
  CHECK(situation{.available = 1800}.verdict() == "fits");
  CHECK(situation{.available = 1799}.verdict() == largest("7 sequences", " --gradient_accumulation_steps 2"));
  CHECK(situation{.available = 1300}.verdict() == largest("3 sequences", " --gradient_accumulation_steps 3"));
  CHECK(situation{.available = 1100}.verdict() == largest("1 sequence", " --gradient_accumulation_steps 8"));
  CHECK(situation{.accumulation = 2, .available = 1399}.verdict() ==
        largest("3 sequences", " --gradient_accumulation_steps 3"));
  CHECK(situation{.available = 1099}.verdict() == largest("8 sequences", " --activation_checkpointing auto"));
  CHECK(situation{.available = 1050}.verdict() ==
        largest("5 sequences", " --activation_checkpointing auto --gradient_accumulation_steps 2"));
  CHECK(situation{.recompute = recompute::choice::automatic, .available = 1050}.verdict() ==
        largest("5 sequences", " --gradient_accumulation_steps 2"));
  CHECK(situation{.batch_size = 1'000'000, .available = 1'001'000}.verdict() ==
        largest("10000 sequences", " --gradient_accumulation_steps 100"));
}

TEST_CASE("where no batch fits, it says what one sequence needs") {
  CHECK(situation{.available = 1009}.verdict().starts_with(
      "one sequence of 1024 tokens alone needs 1010 B: no batch fits; "));
  CHECK(situation{.available = 0}.verdict().find("no batch fits") != std::string::npos);
}

}  // namespace
