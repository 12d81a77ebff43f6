// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/text/utf8.hpp>

#include <doctest/doctest.h>

#include "support/sanitizer.hpp"

#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

using namespace superoffload;
using namespace superoffload::text;
using id_list = std::vector<std::int32_t>;

namespace {

constexpr char const* families[] = {"llama3", "phi4", "qwen3", "seed_oss", "gpt_oss"};

std::filesystem::path directory_of(std::string const& family) {
  return std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "tokenizers" / family;
}

std::optional<std::int32_t> optional_id(io::json const& value) {
  return value.is_null() ? std::nullopt : std::optional{value.get<std::int32_t>()};
}

}  // namespace

TEST_CASE("every reference case has equal ids") {
  for (std::string const family : families) {
    CAPTURE(family);
    auto const tokenizer = text::tokenizer::load(directory_of(family));
    auto const expected = io::read_json(directory_of(family) / "tokenizer_cases.json");
    CHECK(tokenizer.size() == expected["tokenizer_size"].get<std::int64_t>());
    CHECK(tokenizer.bos_id() == optional_id(expected["bos_id"]));
    CHECK(tokenizer.eos_id() == optional_id(expected["eos_id"]));
    CHECK(tokenizer.pad_id() == optional_id(expected["pad_id"]));
    REQUIRE(expected["cases"].size() >= 219);
    for (auto const& one : expected["cases"]) {
      auto const& text = one["text"].get_ref<std::string const&>();
      CAPTURE(text);
      auto const with_special = one["ids"].get<id_list>();
      auto const plain =
          one["ids_no_special"].is_null() ? with_special : one["ids_no_special"].get<id_list>();
      CHECK(tokenizer.encode(text) == with_special);
      CHECK(tokenizer.encode(text, false) == plain);
      CHECK(tokenizer.decode(plain) == one["decoded"].get_ref<std::string const&>());
    }
    REQUIRE(expected["decode_cases"].size() >= 24);
    for (auto const& one : expected["decode_cases"]) {
      auto const ids = one["ids"].get<id_list>();
      CAPTURE(ids.size());
      CHECK(tokenizer.decode(ids) == one["decoded"].get_ref<std::string const&>());
      CHECK(tokenizer.decode(ids, true) == one["decoded_skip_special"].get_ref<std::string const&>());
    }
  }
}

TEST_CASE("random text is decoded to itself") {
  std::mt19937 random{7};
  for (std::string const family : families) {
    if (family == "phi4" || family == "qwen3") {
      continue;
    }  // those strip white space and normalise
    auto const tokenizer = text::tokenizer::load(directory_of(family));
    for (int round = 0; round < 300; ++round) {
      std::string text;
      for (auto i = random() % 60; i > 0; --i) {
        constexpr char32_t limits[] = {0x80, 0x300, 0x3000, 0xd800, 0x110000};
        auto const c = static_cast<char32_t>(random()) % limits[random() % 5];
        append_utf8(text, c >= 0xd800 && c < 0xe000 ? U' ' : c);
        if (random() % 8 == 0) {
          text += family == "seed_oss" ? "<seed:eos>" : "<|end";
        }
      }
      CAPTURE(text);
      CHECK(tokenizer.decode(tokenizer.encode(text, false)) == text);
      CHECK(tokenizer.decode(tokenizer.encode(text), true).size() <= text.size());
    }
  }
}

TEST_CASE("ids are appended, and none when the text is refused") {
  auto const tokenizer = text::tokenizer::load(directory_of("llama3"));
  id_list ids{1, 2};
  tokenizer.encode("Hello", ids);
  CHECK(ids[1] == 2);
  CHECK(ids[2] == tokenizer.bos_id());
  auto const before = ids;
  CHECK_THROWS_WITH_AS(tokenizer.encode("ab\xff", ids), "text: byte 2: expected valid UTF-8", error);
  CHECK(ids == before);
}

TEST_CASE("text cut inside a character is refused") {
  auto const tokenizer = text::tokenizer::load(directory_of("gpt_oss"));
  std::string const rocket = "a\xf0\x9f\x9a\x80";
  for (std::size_t length = 2; length < rocket.size(); ++length) {
    try {
      static_cast<void>(tokenizer.encode(rocket.substr(0, length)));
      FAIL("accepted ", length, " bytes");
    } catch (error const& e) {
      CHECK(e.code() == exit_code::bad_input);
      CHECK(std::string{e.what()} == "text: byte 1: expected valid UTF-8");
    }
  }
}

TEST_CASE("ids without a token decode to nothing") {
  auto const tokenizer = text::tokenizer::load(directory_of("qwen3"));
  CHECK(tokenizer.decode(id_list{-1, 1'000'000, static_cast<std::int32_t>(tokenizer.size())}) == "");
}

TEST_CASE("a megabyte of one character is encoded in time") {
  constexpr std::size_t bytes = std::size_t{1} << (test::slowed ? 16 : 20);
  for (std::string const family : {"llama3", "qwen3", "gpt_oss"}) {
    auto const tokenizer = text::tokenizer::load(directory_of(family));
    for (std::string const unit : {"a", " ", "\n", "!", "1", "\u4F60", "<", "e\u0301"}) {
      std::string text;
      while (text.size() < bytes) { text += unit; }
      auto const decoded = tokenizer.decode(tokenizer.encode(text, false));
      bool const composed = family == "qwen3" && unit == "e\u0301";
      CHECK(decoded.size() == (composed ? text.size() / 3 * 2 : text.size()));
    }
  }
}

TEST_CASE("threads can share one tokenizer") {
  auto const tokenizer = text::tokenizer::load(directory_of("llama3"));
  std::string const text =
      "### Instruction:\nIdentify the odd one out.\n\n### Input:\nTwitter, Instagram, Telegram";
  auto const expected = tokenizer.encode(text);
  std::vector<id_list> found(4);
  {
    std::vector<std::jthread> threads;
    for (auto& ids : found) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) { ids = tokenizer.encode(text); }
      });
    }
  }
  for (auto const& ids : found) { CHECK(ids == expected); }
}
