// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <doctest/doctest.h>

#include "random_texts.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>
#include <vector>

using namespace superoffload;
using namespace superoffload::text;
using id_list = std::vector<std::int32_t>;

namespace {

std::filesystem::path const root = std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "tokenizers";

io::json read(std::filesystem::path const& file) {
  return io::read_json(file, {.bytes = std::size_t{1} << 24});
}

std::optional<std::int32_t> optional_id(io::json const& value) {
  return value.is_null() ? std::nullopt : std::optional{value.get<std::int32_t>()};
}

/// A directory with one file, for as long as it lives.
class one_file {
public:
  explicit one_file(std::string const& text)
      : path_{std::filesystem::temp_directory_path() / concat("superoffload_variant_", ::getpid())} {
    std::filesystem::create_directories(path_);
    std::ofstream{path_ / "tokenizer.json", std::ios::binary} << text;
  }
  ~one_file() { std::filesystem::remove_all(path_); }
  one_file(one_file const&) = delete;
  one_file& operator=(one_file const&) = delete;

  [[nodiscard]] std::filesystem::path const& path() const { return path_; }

private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("families trained here have the ids and texts of Hugging Face tokenizers") {
  random_texts const random;
  auto const texts = read(root / "llama3" / "tokenizer_cases.json")["cases"];
  for (std::string const family : {"llama2", "mistral", "smollm2", "deepseek_llm", "unigram"}) {
    CAPTURE(family);
    auto const tokenizer = text::tokenizer::load(root / family);
    auto const expected = read(root / family / "expected.json");
    CHECK(tokenizer.size() == expected["tokenizer_size"].get<std::int64_t>());
    CHECK(tokenizer.bos_id() == optional_id(expected["bos_id"]));
    CHECK(tokenizer.eos_id() == optional_id(expected["eos_id"]));
    CHECK(tokenizer.pad_id() == optional_id(expected["pad_id"]));
    REQUIRE(expected["cases"].size() >= 40);
    for (auto const& one : expected["cases"]) {
      auto const& text = one["text"].get_ref<std::string const&>();
      CAPTURE(text);
      CHECK(tokenizer.encode(text) == one["ids"].get<id_list>());
      CHECK(tokenizer.encode(text, false) == one["ids_no_special"].get<id_list>());
      CHECK(tokenizer.decode(one["ids_no_special"].get<id_list>()) ==
            one["decoded"].get_ref<std::string const&>());
    }
    REQUIRE(expected["texts"].size() == texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      auto const& text = texts[i]["text"].get_ref<std::string const&>();
      CAPTURE(text);
      CHECK(digest(tokenizer.encode(text, false)) == expected["texts"][i].get<std::uint32_t>());
    }
    REQUIRE(expected["random"].size() == 2000);
    for (std::size_t i = 0; i < expected["random"].size(); ++i) {
      auto const text = random(i);
      CAPTURE(text);
      auto const ids = tokenizer.encode(text, false);
      CHECK(digest(ids) == expected["random"][i].get<std::uint32_t>());
      if (i < expected["decoded"].size()) {
        CHECK(digest(tokenizer.decode(ids)) == expected["decoded"][i].get<std::uint32_t>());
      }
    }
  }
}

TEST_CASE("every component has the ids of Hugging Face tokenizers") {
  random_texts const random;
  auto const variants = read(root / "variants.json");
  REQUIRE(variants.size() > 100);
  for (auto const& one : variants) {
    auto document = read(root / one["family"].get<std::string>() / "tokenizer.json");
    document.merge_patch(one["patch"]);
    one_file const directory{document.dump()};
    std::string const name = one["name"];
    CAPTURE(name);
    auto const tokenizer = text::tokenizer::load(directory.path());
    REQUIRE(one["random"].size() == 300);
    for (std::size_t i = 0; i < 300; ++i) {
      auto const text = random(i);
      CAPTURE(text);
      if (!one["random"][i].is_null()) {
        CHECK(digest(tokenizer.encode(text, false)) == one["random"][i].get<std::uint32_t>());
      }
    }
  }
}

TEST_CASE("tokens are located in a text that a normalizer and a pre-tokenizer change") {
  for (std::string const family : {"llama2", "mistral", "smollm2", "deepseek_llm", "unigram", "qwen3"}) {
    CAPTURE(family);
    auto const tokenizer = text::tokenizer::load(root / family);
    std::string const text =
        "The e\u0301t\u00e9 \u4f60\u597d 42  sun.\n\nSay A\u030a\u212b now</s> \U0001f600 end";
    std::vector<std::size_t> offsets;
    for (std::size_t at = 0; at <= text.size();
         at += at < text.size() ? first_step(text.substr(at)).length : 1) {
      offsets.push_back(at);
    }
    id_list ids;
    auto const located = tokenizer.encode_and_locate(text, offsets, ids);
    CHECK(ids == tokenizer.encode(text, false));
    REQUIRE(located.size() == offsets.size());
    CHECK(located.front() == 0);
    CHECK(located.back() == static_cast<std::int32_t>(ids.size()));
    for (std::size_t i = 1; i < located.size(); ++i) { CHECK(located[i - 1] <= located[i]); }
    // What lies before a word's offset is what its tokens before spell.
    auto const at = text.find(" now");
    auto const token = static_cast<std::size_t>(
        located[static_cast<std::size_t>(std::ranges::find(offsets, at) - offsets.begin())]);
    auto const behind = tokenizer.decode(std::span{ids}.subspan(token));
    CAPTURE(behind);
    CHECK(behind.substr(behind.starts_with(' ') ? 1 : 0).starts_with("now"));
  }
}
