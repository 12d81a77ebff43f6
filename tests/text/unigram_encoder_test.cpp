// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/text/unigram_encoder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace superoffload;
using namespace superoffload::text;
using id_list = std::vector<std::int32_t>;

namespace {

struct model {
  std::vector<std::string> tokens;
  std::vector<double> scores;
};

id_list encode(model const& m, std::string_view piece, unigram_options options = {.unk_id = 0}) {
  id_list ids;
  unigram_encoder{m.tokens, m.scores, options}.encode(piece, ids);
  return ids;
}

/// The highest sum of scores over all ways to cut `piece`.
double best_by_definition(model const& m, std::string_view piece) {
  if (piece.empty()) {
    return 0;
  }
  auto best = -std::numeric_limits<double>::infinity();
  for (std::size_t id = 0; id < m.tokens.size(); ++id) {
    if (piece.starts_with(m.tokens[id])) {
      best = std::max(best, m.scores[id] + best_by_definition(m, piece.substr(m.tokens[id].size())));
    }
  }
  return best;
}

model const small{{"<unk>", "a", "ab", "b", "xy"}, {0, -1, -1.5, -2, -3}};

}  // namespace

TEST_CASE("the tokens have the highest sum of scores") {
  std::mt19937 random{1};
  for (int round = 0; round < 50; ++round) {
    model m{{"a", "b", "c"}, {-3.5, -3.25, -4}};
    for (int i = 0; i < 12; ++i) {
      std::string token;
      for (auto left = 2 + random() % 3; left > 0; --left) { token += static_cast<char>('a' + random() % 3); }
      if (std::ranges::find(m.tokens, token) == m.tokens.end()) {
        m.tokens.push_back(token);
        m.scores.push_back(-static_cast<double>(random() % 64) / 4);
      }
    }
    std::string piece;
    for (auto left = random() % 14; left > 0; --left) { piece += static_cast<char>('a' + random() % 3); }
    CAPTURE(piece);
    std::string joined;
    double sum = 0;
    for (auto const id : encode(m, piece, {})) {
      joined += m.tokens[static_cast<std::size_t>(id)];
      sum += m.scores[static_cast<std::size_t>(id)];
    }
    CHECK(joined == piece);
    CHECK(sum == best_by_definition(m, piece));
  }
}

// As of Hugging Face tokenizers 0.23.3.
TEST_CASE("characters without token are one unknown token, bytes, or an error") {
  CHECK(encode(small, "").empty());
  CHECK(encode(small, "abx") == id_list{2, 0});
  CHECK(encode(small, "xyx") == id_list{4, 0});
  CHECK(encode(small, "xqya") == id_list{0, 1});
  CHECK(encode(small, "a<unk><unk>") == id_list{1, 0});
  CHECK(encode({{"<unk>", "a", "xy"}, {0, -1, -1000}}, "xyz") == id_list{2, 0});
  CHECK_THROWS_WITH_AS(static_cast<void>(encode(small, "ax", {})),
                       "text 'x' has no token; expected a model with unk_id", error);
  auto bytes = small;
  bytes.tokens.insert(bytes.tokens.end(), {"<0xC3>", "<0xA9>"});
  bytes.scores.insert(bytes.scores.end(), {-20, -20});
  CHECK(encode(bytes, "a\u00e9\u00e9", {.byte_fallback = true, .unk_id = 0}) == id_list{1, 5, 6, 5, 6});
  CHECK(encode(bytes, "a\u00e9\u00e8", {.byte_fallback = true, .unk_id = 0}) == id_list{1, 0});
  CHECK(encode(bytes, "a\u00e9", {.unk_id = 0}) == id_list{1, 0});
}

TEST_CASE("of equal tokens the last counts") {
  CHECK(encode({{"a", "aa", "a"}, {-1, -9, -5}}, "aa") == id_list{1});
  CHECK(encode({{"a", "aa", "a"}, {-5, -9, -1}}, "aa") == id_list{2, 2});
}

TEST_CASE("tokens begin where they are located") {
  id_list ids;
  std::vector<std::size_t> starts;
  unigram_encoder{small.tokens, small.scores, {.unk_id = 0}}.encode("abqqb", ids, &starts);
  CHECK(ids == id_list{2, 0, 3});
  CHECK(starts == std::vector<std::size_t>{0, 2, 4});
}

TEST_CASE("a piece of a million bytes") {
  model const m{{"<unk>", "a", std::string(256, 'a')}, {0, -1, -1}};
  auto const ids = encode(m, std::string(1'000'003, 'a'));
  CHECK(std::ranges::count(ids, 2) == 3906);
  CHECK(std::ranges::count(ids, 1) == 1'000'003 - 3906 * 256);
}
