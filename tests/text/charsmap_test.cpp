// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/charsmap.hpp>
#include <superoffload/text/normalizer.hpp>

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace superoffload;
using namespace superoffload::text;

namespace {

/// Rules of tests/data/tokenizers/make.py.
std::string rules(std::string_view name = "Precompiled") {
  auto const variants =
      io::read_json(std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "tokenizers" / "variants.json",
                    {.bytes = std::size_t{1} << 24});
  for (auto const& one : variants) {
    if (one["name"] == name) {
      return from_base64(
                 one["patch"]["normalizer"]["normalizers"][0]["precompiled_charsmap"].get<std::string>())
          .value();
    }
  }
  return {};
}

std::string number(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) { bytes += static_cast<char>(value >> shift & 0xff); }
  return bytes;
}

/// A map of 512 units, all 0 but for those that `edit` changes.
std::string small_map(std::function<void(std::vector<std::uint32_t>&)> const& edit,
                      std::string_view replacements) {
  std::vector<std::uint32_t> units(512);
  edit(units);
  auto blob = number(static_cast<std::uint32_t>(4 * units.size()));
  for (auto const unit : units) { blob += number(unit); }
  return blob.append(replacements);
}

std::string complaint(std::string_view blob) {
  try {
    static_cast<void>(charsmap{blob, "file: field"});
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    return e.what();
  }
  return "no complaint";
}

}  // namespace

TEST_CASE("a charsmap has the replacement of the shortest key") {
  charsmap const map{rules(), "test"};
  CHECK(map("\ufb01") == "fi");
  CHECK(map("\ufb01x") == "fi");
  CHECK(map("\u200b") == "");
  CHECK(map("A\u030a") == "a");
  CHECK(map("e\u0301") == "\u00e9");
  CHECK(map("\u4f60\u597d") == "hello");
  CHECK_FALSE(map("\u4f60"));
  CHECK_FALSE(map("e"));
  CHECK_FALSE(map(""));
  CHECK_FALSE(map(std::string_view{"\0A", 2}));
}

// As of Hugging Face tokenizers 0.23.3.
TEST_CASE("clusters of less than six bytes are replaced as one, and others by character") {
  normalizer const precompiled{{precompiled_step{charsmap{rules(), "test"}}}};
  CHECK(precompiled("A\u030aB") == "aB");                              // the rest of the cluster is lost
  CHECK(precompiled("A\u030a\u030a\u030a") == "a\u030a\u030a\u030a");  // seven bytes
  CHECK(precompiled("\r\n\r") == "");
  CHECK(precompiled("\u4f60\u597d") == "\u4f60\u597d");  // two clusters
  CHECK(precompiled("x\u0301") == "x'");
  CHECK(precompiled("\U0001f468\u200d\U0001f469") == "\u4eba \U0001f469");
  auto const traced = precompiled("a\ufb01\u00bdS", true);
  CHECK(traced.text() == "afi 1/2s");
  CHECK(traced.origin(1) == 1);
  CHECK(traced.origin(2) == 1);
  CHECK(traced.origin(6) == 4);
  CHECK(traced.origin(7) == 6);
}

// As of Hugging Face tokenizers 0.23.3. Each character becomes "!", and so does each cluster of less than six
// bytes. In most of the texts the last mark joins a short cluster or a long one.
TEST_CASE("clusters end where the rules of Unicode end them") {
  normalizer const counting{{precompiled_step{charsmap{rules("clusters"), "test"}}}};
  struct counted {
    std::string_view text;
    std::size_t count;
  };
  for (auto const& one : std::vector<counted>{{"a", 1},
                                              {"a\u0301", 1},
                                              {"a\u0301\u0301", 1},
                                              {"a\u0301\u0301\u0301", 4},
                                              {"\u0301\u0301", 1},
                                              {"\a\u0301", 2},
                                              {"\r\n", 1},
                                              {"\n\r", 2},
                                              {"\r\u0301", 2},
                                              {"a\u0903", 1},
                                              {"a\u200d", 1},
                                              {"\u0600a", 1},
                                              {"\u0600\u0301", 1},
                                              {"\u0600\n", 2},
                                              {"\u1100\u1161\u0301", 3},
                                              {"\u1161\u1161\u0301", 3},
                                              {"\u1161\u11a8\u0301", 3},
                                              {"\u11a8\u11a8\u0301", 3},
                                              {"\uac00\u1161\u0301", 3},
                                              {"\uac00\u11a8\u0301", 3},
                                              {"\uac01\u11a8\u0301", 3},
                                              {"\uac01\u1161\u0301", 2},
                                              {"\u1161\u1100\u0301", 2},
                                              {"\u1100\uac00\u0301", 3},
                                              {"\u1100\uac01\u0301", 3},
                                              {"\u11a8\uac00\u0301", 2},
                                              {"\uac00\uac00\u0301", 2},
                                              {"\u0600\uac00\u0301", 3},
                                              {"\u00a9\u200d\u2600\u0301", 4},
                                              {"\u00a9\u0301\u200d\u2600\u0301", 5},
                                              {"\u00a9\u200d\u0301\u2600\u0301", 4},
                                              {"\u00a9\u200d\u200d\u2600\u0301", 4},
                                              {"\u00a9\u0903\u200d\u2600\u0301", 4},
                                              {"a\u200d\u2600\u0301", 2},
                                              {"\u0915\u094d\u0915\u0301", 4},
                                              {"\u0915\u0301\u094d\u0915\u0301", 5},
                                              {"\u0915\u094d\u200d\u0915\u0301", 5},
                                              {"\u0915\u200c\u094d\u0915\u0301", 4},
                                              {"\u0915\u0903\u094d\u0915\u0301", 4},
                                              {"\u0915\u200d\u0915\u0301", 3},
                                              {"a\u094d\u0915\u0301", 2},
                                              {"\u0915\u094da\u0301", 3},
                                              {"\u0915\u094d\u094d\u0915\u0301", 5},
                                              {"\u0600\u0915\u0301", 3},
                                              {"\u0600\u00a9\u0301", 3}}) {
    CAPTURE(one.text);
    CHECK(counting(one.text) == std::string(one.count, '!'));
  }
}

TEST_CASE("a malformed charsmap is refused") {
  auto const nothing = [](std::vector<std::uint32_t>&) {};
  auto const good = small_map(nothing, std::string_view{"a\0", 2});
  CHECK(complaint(good) == "no complaint");
  CHECK(complaint("") == "file: field: 0 bytes, expected 4 to 4194304");
  CHECK(complaint(std::string(5u << 20, 'x')).find("expected 4 to 4194304") != std::string::npos);
  CHECK(complaint(number(0)) == "file: field: a trie of 0 bytes, expected 4 to 0");
  CHECK(complaint(number(0xffffffff) + number(0)) ==
        "file: field: a trie of 4294967295 bytes, expected 4 to 4");
  CHECK(complaint(good.substr(0, 2000)).find("a trie of 2048 bytes, expected 4 to 1996") !=
        std::string::npos);
  CHECK(complaint(number(4) + number(0)) ==
        "file: field: unit 0 of the trie leads to unit 255, expected less than 1");
  CHECK(complaint(small_map(nothing, "\xff")) == "file: field: expected replacements in UTF-8");
  auto const far = small_map([](auto& units) { units[3] = 'a' | 600u << 10; }, "");
  CHECK(complaint(far) == "file: field: unit 3 of the trie leads to unit 767, expected less than 512");
  auto const farther = small_map([](auto& units) { units[0] = 0x80000000u | 0x7ffffe00u; }, "");
  CHECK(complaint(farther).find("unit 0 of the trie leads to unit ") != std::string::npos);
  auto const behind = [](std::uint32_t begin) {
    return [begin](std::vector<std::uint32_t>& units) {
      units['a'] = 'a' | 1u << 8 | 256u << 10;
      units[256 | 'a'] = 0x80000000u | begin;
    };
  };
  CHECK(complaint(small_map(behind(3), "\u00e9")) ==
        "file: field: unit 97 of the trie has the replacement at byte 3, expected the begin of a character "
        "in 2 bytes");
  CHECK(complaint(small_map(behind(1), "\u00e9")).find("at byte 1, expected") != std::string::npos);
  CHECK(complaint(small_map(behind(0x7fffffff), "\u00e9")).find("at byte 2147483647") != std::string::npos);
  CHECK(charsmap{small_map(behind(0), "\u00e9"), "test"}("ab") == "\u00e9");  // no zero byte at the end
  CHECK(charsmap{small_map(behind(2), "\u00e9"), "test"}("ab") == "");
  // A trie whose units lead to each other without end is followed as far as the text goes.
  auto const circle = small_map([](auto& units) { units['a'] = 'a' | std::uint32_t{'a'} << 10; }, "");
  CHECK_FALSE(charsmap{circle, "test"}("aaaaa"));
}

TEST_CASE("a damaged charsmap is refused or maps to UTF-8") {
  auto const whole = rules();
  std::mt19937 random{5};
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    auto damaged = whole;
    for (auto i = 1 + random() % 3; i > 0; --i) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    try {
      normalizer const precompiled{{precompiled_step{charsmap{damaged, "test"}}}};
      auto const text = precompiled("The \ufb01 A\u030a \u4f60\u597d \ud55c\u00bd e\u0301 \U0001d400 \r\n");
      CHECK(find_invalid_utf8(text) == std::string::npos);
    } catch (error const& e) {
      CHECK(e.code() == exit_code::bad_input);
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("Base64, with and without its padding") {
  CHECK(from_base64("") == "");
  CHECK(from_base64("TWFu") == "Man");
  CHECK(from_base64("TWE=") == "Ma");
  CHECK(from_base64("TQ==") == "M");
  CHECK(from_base64("TQ") == "M");
  CHECK(from_base64("+/+/") == "\xfb\xff\xbf");
  for (auto const* const bad :
       {"T", "T===", "TQ=", "TWE==", "TWFu=", "TR==", "TWF=", "TW\nFu", "TW-u", "=", "T=Q="}) {
    CAPTURE(bad);
    CHECK_FALSE(from_base64(bad));
  }
}
