// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/run/run_state.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>

namespace {

using namespace superoffload;

train::run_state sample() {
  train::run_state s;
  s.step = 17;
  s.accepted_steps = 15;
  s.skips_in_a_row = 2;
  s.where = {3, 44};
  s.best_eval_loss = 1.2345678901234567;
  s.first_eval_loss = 2.25;
  s.hit_rate = 0.25;
  s.identity = {{"dtype", "bf16"}, {"seed", "7"}};
  s.settings = {{"--lr", "0.1"}, {"config.json's rope_theta", "10000.0"}};
  return s;
}

TEST_CASE("a saved state is read back unchanged") {
  auto const back = train::parse_run_state(to_json(sample()), "manifest");
  CHECK(back.step == 17);
  CHECK(back.accepted_steps == 15);
  CHECK(back.skips_in_a_row == 2);
  CHECK(back.where == data::position{3, 44});
  CHECK(back.best_eval_loss == 1.2345678901234567);
  CHECK(back.first_eval_loss == 2.25);
  CHECK(back.hit_rate == 0.25);
  CHECK_NOTHROW(train::expect_same_identity(back, sample(), "manifest"));
}

TEST_CASE("changed, new and missing settings are named") {
  auto const back = train::parse_run_state(to_json(sample()), "manifest");
  auto other = sample();
  CHECK(train::differences(back.settings, other.settings).empty());
  other.settings = {{"--lr", "0.2"}, {"tokenizer.json", "x"}};
  CHECK(train::differences(back.settings, other.settings) ==
        "--lr is '0.2' and was '0.1', tokenizer.json is 'x' and was missing, config.json's rope_theta is "
        "missing "
        "and was '10000.0'");
}

TEST_CASE("a state of an earlier version has no settings") {
  auto state = sample();
  state.settings.clear();
  auto text = to_json(state);
  std::string const field = ",\"settings\":{}";
  auto const at = text.find(field);
  REQUIRE(at != std::string::npos);
  CHECK(train::parse_run_state(text.erase(at, field.size()), "manifest").settings.empty());
}

TEST_CASE("a state without a hit rate has the hit rate 1") {
  auto text = to_json(sample());
  std::string const field = "\"hit_rate\":0.25,";
  auto const at = text.find(field);
  REQUIRE(at != std::string::npos);
  CHECK(train::parse_run_state(text.erase(at, field.size()), "manifest").hit_rate == 1.0);
}

TEST_CASE("the hit rate of a checkpoint of earlier versions is read by its name there") {
  auto text = to_json(sample());
  std::string const field = "\"hit_rate\"";
  text.replace(text.find(field), field.size(), "\"acceptance\"");
  CHECK(train::parse_run_state(text, "manifest").hit_rate == sample().hit_rate);
}

TEST_CASE("a run that differs from the saved one is refused by the setting's name") {
  auto other = sample();
  other.identity[1].second = "8";
  CHECK_THROWS_WITH_AS(train::expect_same_identity(sample(), other, "manifest"),
                       doctest::Contains("seed '7'"), error);
  other.identity.emplace_back("packing", "on");
  other.identity[1].second = "7";
  CHECK_THROWS_WITH_AS(train::expect_same_identity(sample(), other, "manifest"),
                       doctest::Contains("'packing'"), error);
}

TEST_CASE("a damaged state is refused by field") {
  auto const damaged = [](std::string const& from, std::string const& to) {
    auto text = to_json(sample());
    auto const at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  for (auto const& [from, to, field] : {std::array<std::string, 3>{"\"step\":17", "\"step\":-1", "step"},
                                        {"\"step\":17", "\"step\":\"x\"", "step"},
                                        {"\"accepted_steps\":15", "\"accepted_steps\":99", "accepted_steps"},
                                        {"\"hit_rate\":0.25", "\"hit_rate\":1.5", "hit_rate"},
                                        {"\"epoch\":3", "\"epoch\":3.5", "data_position.epoch"},
                                        {"\"dtype\":\"bf16\"", "\"dtype\":16", "identity.dtype"},
                                        {"{", "[", "valid JSON"}}) {
    CHECK_THROWS_WITH_AS(train::parse_run_state(damaged(from, to), "manifest"),
                         doctest::Contains(field.c_str()), error);
  }
}

}  // namespace
