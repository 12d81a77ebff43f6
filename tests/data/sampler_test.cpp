// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/sampler.hpp>

#include <doctest/doctest.h>

#include "numbered_examples.hpp"

#include <algorithm>
#include <limits>

using namespace superoffload;
using namespace superoffload::data;

namespace {

using rows = std::vector<std::int64_t>;

rows flat(std::vector<sequence> const& step) {
  rows out;
  for (auto const& line : step) { out.insert(out.end(), line.begin(), line.end()); }
  return out;
}

TEST_CASE("every row once in an epoch, whatever the batch size") {
  for (std::int64_t const count : {1, 2, 7, 30}) {
    auto const examples = testing::numbered_examples(count, 9);
    for (std::int64_t const batch_size : {std::int64_t{1}, std::int64_t{2}, std::int64_t{7}, std::int64_t{8},
                                          std::numeric_limits<std::int64_t>::max()}) {
      for (int variant = 0; variant < 4; ++variant) {
        CAPTURE(count);
        CAPTURE(batch_size);
        CAPTURE(variant);
        sampler from{examples, {batch_size, 5, (variant & 1) != 0, (variant & 2) != 0, 20}};
        for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
          auto const steps = from.steps_in_epoch(epoch);
          rows seen;
          for (std::int64_t step = 0; step < steps; ++step) {
            CHECK(from.where().epoch == epoch);
            auto const chosen = from.next();
            CHECK(!chosen.empty());
            CHECK(static_cast<std::int64_t>(chosen.size()) <= batch_size);
            if (step + 1 < steps) {
              CHECK(static_cast<std::int64_t>(chosen.size()) == batch_size);
            }
            auto const part = flat(chosen);
            seen.insert(seen.end(), part.begin(), part.end());
          }
          CHECK(from.where() == position{epoch + 1, 0});
          CHECK(from.epochs() == static_cast<double>(epoch + 1));
          std::sort(seen.begin(), seen.end());
          REQUIRE(static_cast<std::int64_t>(seen.size()) == count);
          for (std::int64_t row = 0; row < count; ++row) {
            CHECK(seen[static_cast<std::size_t>(row)] == row);
          }
        }
      }
    }
  }
}

TEST_CASE("file order without shuffling; the last step of an epoch is smaller") {
  auto const examples = testing::numbered_examples(5, 4);
  sampler from{examples, {2, 9, false, false, 0}};
  CHECK(from.steps_in_epoch(0) == 3);
  CHECK(flat(from.next()) == rows{0, 1});
  CHECK(flat(from.next()) == rows{2, 3});
  CHECK(from.epochs() == 0.8);
  CHECK(flat(from.next()) == rows{4});
  CHECK(flat(from.next()) == rows{0, 1});
}

TEST_CASE("epochs and seeds have orders of their own; the same ones repeat") {
  auto const examples = testing::numbered_examples(50, 4);
  auto const epoch_of = [&](std::uint64_t seed, std::int64_t epoch) {
    sampler from{examples, {50, seed, true, false, 0}};
    from.seek({epoch, 0});
    return flat(from.next());
  };
  CHECK(epoch_of(1, 0) == epoch_of(1, 0));
  CHECK(epoch_of(1, 0) != epoch_of(1, 1));
  CHECK(epoch_of(1, 0) != epoch_of(2, 0));
}

TEST_CASE("going on from any position equals never having stopped") {
  auto const examples = testing::numbered_examples(37, 11);
  for (int variant = 0; variant < 4; ++variant) {
    sampling const options{3, 11, (variant & 1) != 0, (variant & 2) != 0, 16};
    std::vector<rows> whole;
    std::vector<position> positions;
    std::vector<double> epochs;
    sampler uninterrupted{examples, options};
    for (int step = 0; step < 40; ++step) {
      positions.push_back(uninterrupted.where());
      epochs.push_back(uninterrupted.epochs());
      whole.push_back(flat(uninterrupted.next()));
    }
    REQUIRE(uninterrupted.where().epoch >= 2);
    sampler reused{examples, options};
    for (std::size_t step = positions.size(); step-- > 0;) {
      sampler resumed{examples, options};
      resumed.seek(positions[step]);
      CHECK(resumed.where() == positions[step]);
      CHECK(resumed.epochs() == epochs[step]);
      for (std::size_t i = step; i < positions.size(); ++i) { REQUIRE(flat(resumed.next()) == whole[i]); }
      CHECK(resumed.where() == uninterrupted.where());
      reused.seek(positions[step]);
      CHECK(flat(reused.next()) == whole[step]);
    }
  }
}

TEST_CASE("a copy goes its own way") {
  auto const examples = testing::numbered_examples(10, 4);
  sampler first{examples, {1, 3, true, false, 0}};
  (void)first.next();
  auto second = first;
  auto const expected = flat(first.next());
  (void)first.next();
  CHECK(flat(second.next()) == expected);
}

TEST_CASE("the steps of some epochs are as many as it takes to get there") {
  auto const examples = testing::numbered_examples(37, 11);
  for (int variant = 0; variant < 4; ++variant) {
    sampler from{examples, {4, 11, (variant & 1) != 0, (variant & 2) != 0, 16}};
    for (std::int64_t const epochs : {1, 2, 5}) {
      auto walker = from;
      std::int64_t steps = 0;
      for (; walker.where().epoch < epochs; ++steps) { (void)walker.next(); }
      CHECK(from.steps_in(static_cast<double>(epochs)) == steps);
    }
  }
  auto const ten = testing::numbered_examples(10, 3);
  sampler const from{ten, {1, 0, true, false, 0}};
  CHECK(from.steps_in(1.1) == 11);
  CHECK(from.steps_in(1.11) == 12);
  CHECK(from.steps_in(0.5) == 5);
  CHECK(from.steps_in(1e-9) == 1);
  for (double const wrong : {0.0, -1.0, 1e7, std::numeric_limits<double>::quiet_NaN()}) {
    CHECK_THROWS_AS((void)from.steps_in(wrong), error);
  }
}

TEST_CASE("a step of a token budget takes sequences while they fit") {
  auto const examples = testing::numbered_examples(37, 11);
  for (int variant = 0; variant < 4; ++variant) {
    CAPTURE(variant);
    sampling const options{1, 11, (variant & 1) != 0, (variant & 2) != 0, 16, 40};
    sampler from{examples, options};
    std::vector<position> positions;
    std::vector<rows> steps;
    for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
      rows seen;
      auto const expected = from.steps_in_epoch(epoch);
      std::int64_t tokens_before = 0;
      for (std::int64_t step = 0; step < expected; ++step) {
        CHECK(from.where().epoch == epoch);
        positions.push_back(from.where());
        auto const chosen = from.next();
        auto const tokens_of = [&](rows const& some) {
          std::int64_t tokens = 0;
          for (auto const row : some) { tokens += examples[row].length(); }
          return tokens;
        };
        steps.push_back(flat(chosen));
        auto const tokens = tokens_of(steps.back());
        CHECK(tokens <= 40);
        if (step > 0) {  // the step before had no room for this one's first sequence
          CHECK(tokens_before + tokens_of(flat({chosen.front()})) > 40);
        }
        tokens_before = tokens;
        seen.insert(seen.end(), steps.back().begin(), steps.back().end());
      }
      CHECK(from.where() == position{epoch + 1, 0});
      std::sort(seen.begin(), seen.end());
      REQUIRE(seen.size() == 37);
      for (std::int64_t row = 0; row < 37; ++row) { CHECK(seen[static_cast<std::size_t>(row)] == row); }
    }
    CHECK(from.steps_in(3.0) == static_cast<std::int64_t>(steps.size()));
    for (std::size_t i = 0; i < steps.size(); ++i) {
      sampler resumed{examples, options};
      resumed.seek(positions[i]);
      CHECK(flat(resumed.next()) == steps[i]);
    }
  }
  CHECK_THROWS_AS((sampler{examples, {1, 0, true, false, 0, 10}}), error);
  CHECK_THROWS_AS((sampler{examples, {1, 0, true, true, 16, 15}}), error);
}

TEST_CASE("positions and options that cannot be") {
  auto const examples = testing::numbered_examples(10, 8);
  sampler from{examples, {3, 0, true, false, 0}};
  (void)from.next();
  for (position const wrong : {position{-1, 0}, {0, -1}, {0, 10}, {7, 11}}) {
    CHECK_THROWS_AS(from.seek(wrong), error);
    CHECK(from.where() == position{0, 3});
  }
  from.seek({1'000'000'000'000, 9});
  CHECK(from.next().size() == 1);
  CHECK_THROWS_AS((sampler{examples, {0, 0, true, false, 0}}), error);
  CHECK_THROWS_AS((sampler{examples, {1, 0, true, true, 7}}), error);
  example_set const none;
  CHECK_THROWS_AS((sampler{none, {1, 0, true, false, 0}}), error);
}

}  // namespace
