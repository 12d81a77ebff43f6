// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/byte_pair_encoder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

using namespace superoffload::text;

namespace {

struct vocabulary {
  std::vector<std::string> tokens;
  std::vector<merge> merges;
};

/// The 256 bytes and `count` random merges over "abc", so that many of them compete.
vocabulary random_vocabulary(unsigned seed, int count) {
  std::mt19937 random{seed};
  vocabulary out;
  for (int byte = 0; byte < 256; ++byte) { out.tokens.emplace_back(1, static_cast<char>(byte)); }
  std::vector<std::int32_t> usable{'a', 'b', 'c'};
  std::map<std::string, std::int32_t> known{{"a", 'a'}, {"b", 'b'}, {"c", 'c'}};
  while (static_cast<int>(out.merges.size()) < count) {
    auto const left = usable[random() % usable.size()];
    auto const right = usable[random() % usable.size()];
    auto const text =
        out.tokens[static_cast<std::size_t>(left)] + out.tokens[static_cast<std::size_t>(right)];
    bool const listed =
        std::ranges::any_of(out.merges, [&](merge const& m) { return m.left == left && m.right == right; });
    if (listed || text.size() > 12) {
      continue;
    }
    auto const [entry, is_new] = known.emplace(text, static_cast<std::int32_t>(out.tokens.size()));
    if (is_new) {
      out.tokens.push_back(text);
      usable.push_back(entry->second);
    }
    out.merges.push_back({left, right, entry->second});  // sometimes a second way to the same token
  }
  std::ranges::shuffle(out.merges, random);
  return out;
}

/// The definition, literally.
std::vector<std::int32_t> merge_by_definition(vocabulary const& v, std::string_view piece) {
  std::vector<std::int32_t> ids;
  for (char const byte : piece) { ids.push_back(static_cast<unsigned char>(byte)); }
  for (;;) {
    auto best = v.merges.size();
    std::size_t at = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      for (std::size_t rank = 0; rank < best; ++rank) {
        if (v.merges[rank].left == ids[i] && v.merges[rank].right == ids[i + 1]) {
          best = rank;
          at = i;
        }
      }
    }
    if (best == v.merges.size()) {
      return ids;
    }
    ids[at] = v.merges[best].result;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

std::vector<std::int32_t> encode(byte_pair_encoder const& encoder, std::string_view piece) {
  std::vector<std::int32_t> ids;
  encoder.encode(piece, ids);
  return ids;
}

}  // namespace

TEST_CASE("short and long pieces merge as defined") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto const v = random_vocabulary(seed, 40);
    byte_pair_encoder const encoder{v.tokens, v.merges, {}};
    std::mt19937 random{seed};
    for (std::size_t const length : {1, 2, 3, 5, 8, 13, 30, 47, 48, 49, 50, 100, 200}) {
      std::string piece;
      for (std::size_t i = 0; i < length; ++i) { piece += static_cast<char>('a' + random() % 3); }
      CHECK(encode(encoder, piece) == merge_by_definition(v, piece));
    }
    for (auto const& token : v.tokens) { CHECK(encode(encoder, token) == merge_by_definition(v, token)); }
  }
}

TEST_CASE("a token that no merges lead to is used only where merges are ignored") {
  auto v = random_vocabulary(1, 0);
  v.tokens.push_back("xyz");
  CHECK(encode(byte_pair_encoder{v.tokens, v.merges, {}}, "xyz") ==
        std::vector<std::int32_t>{'x', 'y', 'z'});
  CHECK(encode(byte_pair_encoder{v.tokens, v.merges, {.ignore_merges = true}}, "xyz") == std::vector<std::int32_t>{256});
}

TEST_CASE("a piece of a million bytes") {
  vocabulary v = random_vocabulary(1, 0);
  v.tokens.insert(v.tokens.end(), {"aa", "aaaa"});
  v.merges = {{'a', 'a', 256}, {256, 256, 257}};
  auto const ids = encode(byte_pair_encoder{v.tokens, v.merges, {}}, std::string(1'000'003, 'a'));
  CHECK(ids.size() == 250'002);
  CHECK(std::ranges::count(ids, 257) == 250'000);
  CHECK(ids[ids.size() - 2] == 256);
  CHECK(ids.back() == 'a');
}
