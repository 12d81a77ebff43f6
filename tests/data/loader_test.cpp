// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/data/loader.hpp>

#include <doctest/doctest.h>

#include "numbered_examples.hpp"

#include <algorithm>
#include <limits>
#include <set>

using namespace superoffload;
using namespace superoffload::data;

namespace {

/// The real documents of a batch with their targets, padding cut off (its ids are -2 here), in their order.
std::vector<std::vector<std::int32_t>> documents_of(batch const& made) {
  std::vector<std::vector<std::int32_t>> documents;
  for (std::size_t d = 0; d + 1 < made.starts.size(); ++d) {
    std::vector<std::int32_t> document;
    for (auto t = static_cast<std::size_t>(made.starts[d]); t < static_cast<std::size_t>(made.starts[d + 1]);
         ++t) {
      if (made.tokens[t] == -2) {
        CHECK(made.targets[t] == -1);
        continue;
      }
      document.push_back(made.tokens[t]);
      document.push_back(made.targets[t]);
    }
    if (!document.empty()) {
      documents.push_back(std::move(document));
    }
  }
  return documents;
}

struct whole_step {
  std::vector<std::vector<std::int32_t>> documents;
  std::int64_t label_tokens = 0;
  std::int64_t tokens = 0;
  std::int64_t sequences = 0;
  double epoch = 0.0;

  friend bool operator==(whole_step const&, whole_step const&) = default;
};

std::vector<whole_step> run(example_set const& examples, loader_options options, int steps) {
  std::vector<loader> ranks;
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    ranks.emplace_back(examples, options);
  }
  std::vector<whole_step> out;
  for (int i = 0; i < steps; ++i) {
    std::vector<global_step> parts;
    for (auto& rank : ranks) { parts.push_back(rank.next()); }
    whole_step whole{{}, 0, parts[0].tokens, parts[0].sequences, parts[0].epoch};
    std::int64_t tokens = 0;
    for (std::size_t m = 0; m < static_cast<std::size_t>(options.micro_batches); ++m) {
      for (auto const& part : parts) {
        REQUIRE(part.micro_batches.size() == static_cast<std::size_t>(options.micro_batches));
        CHECK(part.label_tokens == parts[0].label_tokens);
        CHECK(part.tokens == parts[0].tokens);
        auto const documents = documents_of(part.micro_batches[m]);
        whole.documents.insert(whole.documents.end(), documents.begin(), documents.end());
        whole.label_tokens += part.micro_batches[m].label_tokens();
      }
    }
    if (options.padding == pad_to::none) {  // parts are balanced, not cut
      std::ranges::sort(whole.documents);
    }
    for (auto const& document : whole.documents) { tokens += static_cast<std::int64_t>(document.size()) / 2; }
    CHECK(tokens == whole.tokens);
    CHECK(whole.label_tokens == parts[0].label_tokens);
    out.push_back(std::move(whole));
  }
  return out;
}

TEST_CASE("a step trains on the same, however many ranks and micro-batches share it") {
  auto const examples = testing::numbered_examples(41, 12);
  for (int variant = 0; variant < 16; ++variant) {
    loader_options options{.batch_size = 6, .seed = 17, .max_length = 20, .pad_id = -2};
    options.shuffle = (variant & 1) != 0;
    options.packing = (variant & 2) != 0;
    options.padding = static_cast<pad_to>(variant / 4 % 3);
    options.tokens_per_batch = variant >= 12 ? 50 : 0;
    CAPTURE(variant);
    auto const expected = run(examples, options, 20);
    CHECK(expected.back().epoch > 2.0);
    for (std::int64_t const world : {1, 2, 3, 4}) {
      for (std::int64_t const micro_batches : {1, 2, 3, 7}) {
        options.world = world;
        options.micro_batches = micro_batches;
        CHECK(run(examples, options, 20) == expected);
      }
    }
  }
}

TEST_CASE("sequences are spread evenly, first over the micro-batches, then over the ranks") {
  auto const examples = testing::numbered_examples(5, 1);
  loader_options options{.batch_size = 5, .micro_batches = 3, .world = 2, .shuffle = false};
  std::vector<std::vector<std::int64_t>> rows;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    rows.emplace_back();
    for (auto const& part : loader{examples, options}.next().micro_batches) {
      rows.back().push_back(part.rows());
    }
  }
  CHECK(rows == std::vector<std::vector<std::int64_t>>{{1, 1, 1}, {1, 1, 0}});
}

TEST_CASE("going on from a saved position, with shuffling and packing, on other ranks") {
  auto const examples = testing::numbered_examples(41, 12);
  loader_options options{.batch_size = 3, .micro_batches = 2, .seed = 17, .packing = true, .max_length = 20};
  loader uninterrupted{examples, options};
  for (int step = 0; step < 30; ++step) {
    auto const saved = uninterrupted.where();
    loader resumed{examples, options};
    resumed.seek(saved);
    auto const expected = uninterrupted.next();
    auto const found = resumed.next();
    CHECK(found.epoch == expected.epoch);
    CHECK(found.label_tokens == expected.label_tokens);
    CHECK(resumed.where() == uninterrupted.where());
    for (std::size_t m = 0; m < 2; ++m) {
      CHECK(found.micro_batches[m].tokens == expected.micro_batches[m].tokens);
      CHECK(found.micro_batches[m].targets == expected.micro_batches[m].targets);
      CHECK(found.micro_batches[m].positions == expected.micro_batches[m].positions);
      CHECK(found.micro_batches[m].starts == expected.micro_batches[m].starts);
    }
  }
}

TEST_CASE("what dropout draws from is a function of the place in the data") {
  auto const examples = testing::numbered_examples(8, 5);
  loader_options const options{.batch_size = 4, .micro_batches = 2, .seed = 9};
  loader straight{examples, options};
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 3; ++i) {
    for (auto const& made : straight.next().micro_batches) { seen.insert(made.noise); }
  }
  CHECK(seen.size() == 6);  // over an epoch's end, too
  loader again{examples, options};
  static_cast<void>(again.next());
  loader resumed{examples, options};
  resumed.seek(again.where());
  auto const expected = again.next(), found = resumed.next();
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(found.micro_batches[i].noise == expected.micro_batches[i].noise);
  }
  auto other = options;
  other.seed = 10;
  CHECK(loader{examples, other}.next().micro_batches[0].noise != *seen.begin());
}

TEST_CASE("an evaluation: all examples in file order, as often as wanted") {
  auto const examples = testing::numbered_examples(10, 6);
  loader from{examples, {.batch_size = 4, .shuffle = false}};
  CHECK(from.steps_per_epoch() == 3);
  for (int round = 0; round < 2; ++round) {
    std::int64_t next_id = 0;
    std::int64_t labels = 0;
    for (std::int64_t step = 0; step < from.steps_per_epoch(); ++step) {
      auto const made = from.next();
      labels += made.label_tokens;
      for (auto const& part : made.micro_batches) {
        for (std::int64_t d = 0; d < part.documents(); ++d) {
          auto const first = static_cast<std::size_t>(part.starts[static_cast<std::size_t>(d)]);
          CHECK(part.tokens[first] == next_id);
          next_id += examples[step * 4 + d].length();
        }
      }
    }
    CHECK(next_id == examples.tokens());
    std::int64_t all = 0;
    for (std::int64_t row = 0; row < examples.size(); ++row) { all += examples[row].label_tokens(); }
    CHECK(labels == all);
  }
}

TEST_CASE("a batch larger than the data set is an epoch a step") {
  auto const examples = testing::numbered_examples(3, 5);
  loader from{examples, {.batch_size = std::numeric_limits<std::int64_t>::max(), .micro_batches = 5}};
  CHECK(from.steps_per_epoch() == 1);
  auto const made = from.next();
  CHECK(made.sequences == 3);
  CHECK(made.epoch == 1.0);
  CHECK(made.micro_batches[2].documents() == 1);
  CHECK(made.micro_batches[3].rows() == 0);
}

TEST_CASE("a step without any label has the divisor 0") {
  auto const examples = testing::examples_of({{1, 2, 3}, {4, 5}}, 2);
  loader from{examples, {.batch_size = 1, .shuffle = false}};
  CHECK(from.next().label_tokens == 1);
  CHECK(from.next().label_tokens == 0);
}

TEST_CASE("padding that is learnt counts in the divisor, on all ranks") {
  auto const examples = testing::numbered_examples(10, 8);
  loader_options options{.batch_size = 4, .shuffle = false, .padding = pad_to::max_length, .max_length = 8};
  options.world = 2;
  options.learn_padding = true;
  std::int64_t labels = 0, divisor = 0;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    loader rank{examples, options};
    auto const step = rank.next();
    divisor = step.label_tokens;
    for (auto const& batch : step.micro_batches) { labels += batch.label_tokens(); }
  }
  CHECK(labels == divisor);
  options.rank = 0;
  options.learn_padding = false;
  CHECK(loader{examples, options}.next().label_tokens < divisor);
  options.learn_padding = true;
  for (auto const padding : {pad_to::none, pad_to::longest}) {
    options.padding = padding;
    CHECK_THROWS_AS(loader(examples, options), error);
  }
  options.padding = pad_to::max_length;
  options.packing = true;
  CHECK_THROWS_AS(loader(examples, options), error);
}

TEST_CASE("options that cannot be") {
  auto const examples = testing::numbered_examples(10, 8);
  for (auto const& wrong :
       {loader_options{.batch_size = 0}, loader_options{.batch_size = -1}, loader_options{.micro_batches = 0},
        loader_options{.micro_batches = 10'000'000}, loader_options{.rank = 1}, loader_options{.rank = -1},
        loader_options{.world = 0}, loader_options{.packing = true, .max_length = 7},
        loader_options{.padding = pad_to::max_length, .max_length = 7}, loader_options{.tokens_per_batch = 7},
        loader_options{.tokens_per_batch = std::int64_t{1} << 31},
        loader_options{.tokens_per_batch = 100, .padding = pad_to::longest},
        loader_options{.batch_size = 10, .padding = pad_to::max_length, .max_length = 1 << 30}}) {
    try {
      loader const never{examples, wrong};
      CHECK_MESSAGE(false, "accepted");
    } catch (error const& e) { CHECK(e.code() == exit_code::bad_input); }
  }
  CHECK_NOTHROW(loader(examples, {.packing = true, .max_length = 8}));
}

}  // namespace
