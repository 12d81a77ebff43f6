// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/text/tokenizer_files.hpp>

#include <doctest/doctest.h>

#include "support/fault_case.hpp"

#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

using namespace superoffload;
using io::json;

namespace {

/// A copy of a reference tokenizer that a test may damage.
class model_directory {
public:
  explicit model_directory(std::string const& family = "llama3") {
    static int made = 0;
    path_ =
        std::filesystem::temp_directory_path() / concat("superoffload_tokenizer_", ::getpid(), "_", made++);
    std::filesystem::create_directories(path_);
    auto const source = std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "tokenizers" / family;
    for (auto const* const name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
      std::filesystem::copy_file(source / name, path_ / name);
    }
  }
  ~model_directory() { std::filesystem::remove_all(path_); }
  model_directory(model_directory const&) = delete;
  model_directory& operator=(model_directory const&) = delete;

  [[nodiscard]] std::filesystem::path const& path() const { return path_; }
  [[nodiscard]] json read(std::string const& name) const {
    return io::read_json(path_ / name, {.bytes = std::size_t{1} << 24});
  }
  void write(std::string const& name, std::string_view text) const {
    std::ofstream{path_ / name, std::ios::binary} << text;
  }
  void change(std::string const& name, std::function<void(json&)> const& edit) const {
    auto document = read(name);
    edit(document);
    write(name, document.dump());
  }

private:
  std::filesystem::path path_;
};

/// The message of the error on loading; it must be one line, bad input, and name the file and the
/// expectation.
std::string complaint(std::filesystem::path const& directory, std::string const& file) {
  try {
    static_cast<void>(text::tokenizer::load(directory));
  } catch (error const& e) {
    std::string const message = e.what();
    CHECK(e.code() == exit_code::bad_input);
    CHECK(message.find((directory / file).string()) == 0);
    CHECK((message.find("expected") != message.npos || message.find("is missing") != message.npos));
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "no complaint";
}

struct malformed {
  char const* says;  // part of the message, with the field
  std::function<void(json&)> edit;
};

/// Each change of tokenizer.json is refused with its message.
void check_refused(std::vector<malformed> const& cases) {
  for (auto const& one : cases) {
    test::fault_case const refused{"F22"};
    model_directory const directory;
    directory.change("tokenizer.json", one.edit);
    auto const message = complaint(directory.path(), "tokenizer.json");
    CAPTURE(message);
    CHECK_MESSAGE(message.find(one.says) != std::string::npos, one.says);
  }
}

json& split_of(json& j) { return j["pre_tokenizer"]["pretokenizers"][0]; }
json& template_of(json& j) { return j["post_processor"]["processors"][1]; }

}  // namespace

TEST_CASE("malformed tokenizer.json") {
  std::vector<malformed> const cases{
      {": expected an object", [](json& j) { j = json::array(); }},
      {": version: expected \"1.0\"", [](json& j) { j["version"] = "2.0"; }},
      {": field 'model' is missing", [](json& j) { j.erase("model"); }},
      {": model: expected an object", [](json& j) { j["model"] = 3; }},
      {": model.type: 'WordPiece' is not supported", [](json& j) { j["model"]["type"] = "WordPiece"; }},
      {": model.type: expected a string", [](json& j) { j["model"]["type"] = nullptr; }},
      {": model: field 'vocab' is missing", [](json& j) { j["model"].erase("vocab"); }},
      {": model.vocab: expected an object", [](json& j) { j["model"]["vocab"] = json::array(); }},
      {": model.vocab.zzz: expected an integer", [](json& j) { j["model"]["vocab"]["zzz"] = -1; }},
      {": model.vocab.zzz: expected an integer", [](json& j) { j["model"]["vocab"]["zzz"] = 2'000'000; }},
      {": model.vocab.zzz: expected an integer", [](json& j) { j["model"]["vocab"]["zzz"] = 1.5; }},
      {": model.vocab.zzz: expected an integer", [](json& j) { j["model"]["vocab"]["zzz"] = "7"; }},
      {"both have id 5; expected distinct ids", [](json& j) { j["model"]["vocab"]["zzz"] = 5; }},
      {": model.vocab: token '' of 0 bytes", [](json& j) { j["model"]["vocab"][""] = 900; }},
      {" of 70000 bytes, expected 1 to 65536",
       [](json& j) { j["model"]["vocab"][std::string(70'000, 'x')] = 900; }},
      {": model: field 'merges' is missing", [](json& j) { j["model"].erase("merges"); }},
      {": model.merges: expected an array", [](json& j) { j["model"]["merges"] = "a b"; }},
      {": model.merges[1]: expected two tokens", [](json& j) { j["model"]["merges"][1] = "ab"; }},
      {": model.merges[1]: expected two tokens", [](json& j) { j["model"]["merges"][1] = "a b c"; }},
      {": model.merges[1]: expected two tokens", [](json& j) { j["model"]["merges"][1] = {"a", "b", "c"}; }},
      {": model.merges[1]: expected two tokens", [](json& j) { j["model"]["merges"][1] = {"a", 1}; }},
      {": model.merges[1]: expected two tokens", [](json& j) { j["model"]["merges"][1] = 12; }},
      {": model.merges[1]: token '\u4F60' is not in model.vocab",
       [](json& j) { j["model"]["merges"][1] = "a \u4F60"; }},
      {": model.merges[1]: token '~~' is not in model.vocab",
       [](json& j) { j["model"]["merges"][1] = {"~", "~"}; }},
      {": model.merges[1]: token 'b'; expected one with model.continuing_subword_prefix",
       [](json& j) {
         j["model"]["continuing_subword_prefix"] = "##";
         j["model"]["merges"] = {"a ##a", "a b"};
         j["model"]["vocab"]["##a"] = 900;
         j["model"]["vocab"]["aa"] = 901;
       }},
      {": model.dropout: expected null", [](json& j) { j["model"]["dropout"] = 0.1; }},
      {": model.end_of_word_suffix: expected a string",
       [](json& j) { j["model"]["end_of_word_suffix"] = 5; }},
      {": model.continuing_subword_prefix: 2000 bytes, expected at most 1024",
       [](json& j) { j["model"]["continuing_subword_prefix"] = std::string(2000, '#'); }},
      {": model.byte_fallback: expected true or false", [](json& j) { j["model"]["byte_fallback"] = "yes"; }},
      {": model.fuse_unk: expected true or false", [](json& j) { j["model"]["fuse_unk"] = 1; }},
      {": model.unk_token: no token '<unk>'", [](json& j) { j["model"]["unk_token"] = "<unk>"; }},
      {": model.ignore_merges: expected true or false", [](json& j) { j["model"]["ignore_merges"] = 1; }},
      {": normalizer.type: 'BertNormalizer' is not supported",
       [](json& j) { j["normalizer"] = {{"type", "BertNormalizer"}}; }},
      {": normalizer.normalizers[1].type: 'NFX' is not supported",
       [](json& j) {
         j["normalizer"] = {{"type", "Sequence"},
                            {"normalizers", json::array({{{"type", "NFC"}}, {{"type", "NFX"}}})}};
       }},
      {": normalizer: field 'precompiled_charsmap' is missing",
       [](json& j) { j["normalizer"] = {{"type", "Precompiled"}}; }},
      {": normalizer.precompiled_charsmap: a text of 3 bytes; expected Base64 of at most",
       [](json& j) { j["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "a-b"}}; }},
      {": normalizer.precompiled_charsmap: a text of 6000000 bytes; expected Base64 of at most",
       [](json& j) {
         j["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", std::string(6'000'000, 'A')}};
       }},
      {": normalizer.precompiled_charsmap: a trie of 0 bytes, expected 4 to 0",
       [](json& j) { j["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAAAA=="}}; }},
      {": normalizer: field 'prepend' is missing", [](json& j) { j["normalizer"] = {{"type", "Prepend"}}; }},
      {": normalizer.prepend: 2000 bytes, expected at most 1024",
       [](json& j) { j["normalizer"] = {{"type", "Prepend"}, {"prepend", std::string(2000, 'x')}}; }},
      {": normalizer: field 'strip_left' is missing", [](json& j) { j["normalizer"] = {{"type", "Strip"}}; }},
      {": normalizer.pattern.String: found \"\", expected a text that is not empty",
       [](json& j) {
         j["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", "x"}};
       }},
      {": normalizer.pattern.Regex: expected a pattern that matches at least one character",
       [](json& j) {
         j["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "a*"}}}, {"content", "x"}};
       }},
      {": normalizer: expected at most 100 steps",
       [](json& j) {
         j["normalizer"] = {{"type", "Sequence"},
                            {"normalizers", json(std::vector<json>(101, {{"type", "NFC"}}))}};
       }},
      {": pre_tokenizer.type: 'UnicodeScripts' is not supported",
       [](json& j) { j["pre_tokenizer"] = {{"type", "UnicodeScripts"}}; }},
      {": pre_tokenizer.replacement: expected one character",
       [](json& j) { j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "ab"}}; }},
      {": pre_tokenizer.prepend_scheme: expected always, first or never",
       [](json& j) {
         j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}};
       }},
      {": pre_tokenizer.add_prefix_space: expected true, or",
       [](json& j) {
         j["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}};
       }},
      {": pre_tokenizer: field 'individual_digits' is missing",
       [](json& j) { j["pre_tokenizer"] = {{"type", "Digits"}}; }},
      {": pre_tokenizer.delimiter: expected one character",
       [](json& j) { j["pre_tokenizer"] = {{"type", "CharDelimiterSplit"}, {"delimiter", ""}}; }},
      {": pre_tokenizer.pretokenizers[0].pattern: field 'Regex' is missing",
       [](json& j) { split_of(j)["pattern"] = {{"Strings", " "}}; }},
      {": pre_tokenizer.pretokenizers[0].pattern.Regex: property 'IsHan' at byte",
       [](json& j) { split_of(j)["pattern"]["Regex"] = "\\p{IsHan}+"; }},
      {".behavior: expected Isolated, Removed", [](json& j) { split_of(j)["behavior"] = "isolated"; }},
      {": field 'invert' is missing", [](json& j) { split_of(j).erase("invert"); }},
      {": decoder.type: 'CTC' is not supported", [](json& j) { j["decoder"] = {{"type", "CTC"}}; }},
      {": decoder.pattern: field 'String' is missing",
       [](json& j) {
         j["decoder"] = {{"type", "Replace"}, {"pattern", {{"Regex", "a"}}}, {"content", "x"}};
       }},
      {": decoder.start: expected an integer",
       [](json& j) { j["decoder"] = {{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}}; }},
      {": decoder.type: 'WordPiece' is not supported",
       [](json& j) { j["decoder"] = {{"type", "WordPiece"}}; }},
      {": post_processor: field 'cls' is missing",
       [](json& j) { j["post_processor"] = {{"type", "RobertaProcessing"}}; }},
      {": post_processor.cls: expected a token and its id",
       [](json& j) {
         j["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"a"}}, {"sep", {"a", 1}}};
       }},
      {": post_processor.sep[1]: no token has id 99999",
       [](json& j) {
         j["post_processor"] = {{"type", "BertProcessing"}, {"cls", {"a", 1}}, {"sep", {"a", 99'999}}};
       }},
      {": post_processor.processors[2].type: 'BertProcessing' is not supported; expected ByteLevel, at most "
       "one",
       [](json& j) {
         j["post_processor"]["processors"].push_back(
             {{"type", "BertProcessing"}, {"cls", {"a", 1}}, {"sep", {"a", 1}}});
       }},
      {": post_processor.processors[1].special_tokens: field '<nope>' is missing",
       [](json& j) { template_of(j)["single"][0]["SpecialToken"]["id"] = "<nope>"; }},
      {".ids[0]: no token has id 99999",
       [](json& j) { template_of(j)["special_tokens"]["<|begin_of_text|>"]["ids"] = {99'999}; }},
      {".single: expected sequence \"A\" exactly once", [](json& j) { template_of(j)["single"].erase(1); }},
      {".single[1].Sequence.id: expected sequence \"A\"",
       [](json& j) { template_of(j)["single"][1]["Sequence"]["id"] = "B"; }},
      {": added_tokens: expected an array", [](json& j) { j["added_tokens"] = json::object(); }},
      {": added_tokens[0]: field 'id' is missing", [](json& j) { j["added_tokens"][0].erase("id"); }},
      {": added_tokens[0].id: expected an integer", [](json& j) { j["added_tokens"][0]["id"] = -5; }},
      {": added_tokens[0].content: 0 bytes", [](json& j) { j["added_tokens"][0]["content"] = ""; }},
      {": added_tokens[0].content: 300 bytes",
       [](json& j) { j["added_tokens"][0]["content"] = std::string(300, 'x'); }},
      {": added_tokens[0].lstrip: expected true or false",
       [](json& j) { j["added_tokens"][0]["lstrip"] = "no"; }},
      {": added_tokens[1].id: 548 is listed before",
       [](json& j) { j["added_tokens"][1]["id"] = j["added_tokens"][0]["id"]; }},
      {": added_tokens[0]: id 3 of '<|begin_of_text|>' belongs to another token",
       [](json& j) { j["added_tokens"][0]["id"] = 3; }},
      {": added_tokens[0]: token '!' has id 548 here and 0 elsewhere",
       [](json& j) { j["added_tokens"][0]["content"] = "!"; }},
  };
  check_refused(cases);
}

TEST_CASE("malformed model of type Unigram") {
  auto const with = [](json vocabulary) {
    return
        [vocabulary](json& j) { j["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", vocabulary}}; };
  };
  std::vector<malformed> const cases{
      {": model: field 'vocab' is missing", [](json& j) { j["model"] = {{"type", "Unigram"}}; }},
      {": model.vocab: expected an array", with(5)},
      {": model.vocab: 0 tokens, expected 1 to 2000000", with(json::array())},
      {": model.vocab[1]: expected an array", with({{"a", -1}, "b"})},
      {": model.vocab[0]: expected a token and its score", with(json::array({json::array({"a", -1, 2})}))},
      {": model.vocab[0][0]: expected a string", with(json::array({json::array({1, -1})}))},
      {": model.vocab[0][1]: expected a number", with(json::array({json::array({"a", "-1"})}))},
      {": model.vocab[0]: token of 300 bytes, expected at most 256",
       with(json::array({json::array({std::string(300, 'x'), -1})}))},
      {": model.unk_id: expected an integer from 0 to 0",
       [](json& j) {
         j["model"] = {{"type", "Unigram"}, {"unk_id", 1}, {"vocab", json::array({json::array({"a", -1})})}};
       }},
  };
  check_refused(cases);
}

TEST_CASE("a tokenizer.json that is not a JSON document") {
  model_directory const directory;
  auto const whole = directory.read("tokenizer.json").dump();
  for (auto const& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", ": byte "},
           {whole.substr(0, whole.size() / 2), ": byte "},
           {whole + "}", ": byte "},
           {"{\"model\": {\"vocab\": {\"\xff\": 1}}}", ": byte "},
           {R"({"model": {"vocab": {"a": 1, "a": 2}}})", ": field 'a' appears twice"},
           {std::string(100, '[') + std::string(100, ']'), ": nested deeper than 64 levels"},
           {std::string("{\"model\": \0}", 12), ": byte "}}) {
    directory.write("tokenizer.json", text);
    auto const message = complaint(directory.path(), "tokenizer.json");
    CAPTURE(message);
    CHECK(message.find(says) != std::string::npos);
  }
}

TEST_CASE("random damage gives an error or a tokenizer, and nothing else") {
  model_directory const directory{"qwen3"};
  auto const whole = directory.read("tokenizer.json").dump();
  std::mt19937 random{3};
  int refused = 0;
  for (int round = 0; round < 200; ++round) {
    auto damaged = whole;
    for (auto i = 1 + random() % 3; i > 0; --i) {
      damaged[random() % damaged.size()] = "\"{}[],:0a -\xc3"[random() % 13];
    }
    directory.write("tokenizer.json", damaged);
    try {
      static_cast<void>(text::tokenizer::load(directory.path()).encode("Hello, world <|im_end|> 123"));
    } catch (error const& e) {
      CHECK(e.code() == exit_code::bad_input);
      ++refused;
    }
  }
  CHECK(refused > 50);
}

TEST_CASE("a directory without tokenizer.json") {
  model_directory const directory;
  std::filesystem::remove(directory.path() / "tokenizer.json");
  CHECK_THROWS_AS(static_cast<void>(text::tokenizer::load(directory.path())), error);
}

TEST_CASE("a tokenizer's files are not links out of the model's directory") {
  for (char const* const name : {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}) {
    CAPTURE(name);
    model_directory const directory, elsewhere;
    std::filesystem::remove(directory.path() / name);
    std::filesystem::create_symlink(elsewhere.path() / name, directory.path() / name);
    CHECK(complaint(directory.path(), name).find("is a symbolic link to") != std::string::npos);
    CHECK_NOTHROW(static_cast<void>(text::tokenizer::load({directory.path(), true})));
  }
}

TEST_CASE("malformed tokenizer_config.json") {
  std::vector<malformed> const cases{
      {": eos_token: no token '<nope>'", [](json& j) { j["eos_token"] = "<nope>"; }},
      {": eos_token: expected a string", [](json& j) { j["eos_token"] = 5; }},
      {": bos_token: field 'content' is missing", [](json& j) { j["bos_token"] = json::object(); }},
      {": add_prefix_space: expected false", [](json& j) { j["add_prefix_space"] = true; }},
      {": added_tokens_decoder: expected an object",
       [](json& j) { j["added_tokens_decoder"] = json::array(); }},
      {": added_tokens_decoder: field 'x': expected an id",
       [](json& j) { j["added_tokens_decoder"]["x"] = j["added_tokens_decoder"]["548"]; }},
      {": added_tokens_decoder.549: token '<|begin_of_text|>' has id 549 here and 548 elsewhere",
       [](json& j) { j["added_tokens_decoder"]["549"]["content"] = "<|begin_of_text|>"; }},
      {": added_tokens_decoder.549: id 549 of '<new>' belongs to another token",
       [](json& j) { j["added_tokens_decoder"]["549"]["content"] = "<new>"; }},
  };
  for (auto const& one : cases) {
    model_directory const directory;
    directory.change("tokenizer_config.json", one.edit);
    auto const message = complaint(directory.path(), "tokenizer_config.json");
    CAPTURE(message);
    CHECK_MESSAGE(message.find(one.says) != std::string::npos, one.says);
  }
  model_directory const directory;
  directory.write("special_tokens_map.json", "[]");
  CHECK(complaint(directory.path(), "special_tokens_map.json").find(": expected an object") !=
        std::string::npos);
}

TEST_CASE(
    "special tokens come from the configuration, from the map where that lists no added tokens, or from "
    "nowhere") {
  model_directory const directory;
  directory.change("special_tokens_map.json", [](json& j) { j["eos_token"] = "<|eot_id|>"; });
  CHECK(text::read_tokenizer_files(directory.path()).eos_id == 549);
  directory.change("tokenizer_config.json", [](json& j) { j.erase("added_tokens_decoder"); });
  CHECK(text::read_tokenizer_files(directory.path()).eos_id == 557);
  std::filesystem::remove(directory.path() / "special_tokens_map.json");
  CHECK(text::read_tokenizer_files(directory.path()).eos_id == 549);
  std::filesystem::remove(directory.path() / "tokenizer_config.json");
  CHECK_FALSE(text::read_tokenizer_files(directory.path()).eos_id);
}

TEST_CASE("the configuration adds tokens and overrides their flags") {
  model_directory const directory;
  directory.change("tokenizer_config.json", [](json& j) {
    j["added_tokens_decoder"]["560"] = {{"content", "<new>"}, {"special", false}, {"normalized", false}};
    j["added_tokens_decoder"]["549"]["rstrip"] = true;
  });
  auto const tokenizer = text::tokenizer::load(directory.path());
  CHECK(tokenizer.size() == 561);
  CHECK(tokenizer.encode("<new><|end_of_text|>  <new>", false) == std::vector<std::int32_t>{560, 549, 560});
}

TEST_CASE("merges may begin with the version of their file") {
  model_directory const directory;
  auto const merges = text::read_tokenizer_files(directory.path()).merges.size();
  directory.change("tokenizer.json", [](json& j) {
    json list = json::array({"#version: 0.2"});
    for (auto const& one : j["model"]["merges"]) {
      list.push_back(one.is_string() ? one
                                     : json(one[0].get<std::string>() + ' ' + one[1].get<std::string>()));
    }
    j["model"]["merges"] = list;
  });
  CHECK(text::read_tokenizer_files(directory.path()).merges.size() == merges);
}

TEST_CASE("a pair that is listed again has its last rank") {
  model_directory const directory;
  auto const before = text::read_tokenizer_files(directory.path()).merges;
  directory.change("tokenizer.json",
                   [](json& j) { j["model"]["merges"].push_back(j["model"]["merges"][0]); });
  auto const after = text::read_tokenizer_files(directory.path()).merges;
  REQUIRE(after.size() == before.size());
  CHECK(after.front().result == before[1].result);
  CHECK(after.back().result == before[0].result);
}

TEST_CASE("RobertaProcessing and BertProcessing put a token before a text and one behind it") {
  for (char const* const type : {"RobertaProcessing", "BertProcessing"}) {
    model_directory const directory;
    directory.change("tokenizer.json", [&](json& j) {
      j["post_processor"] = {
          {"type", type}, {"sep", {"<|end_of_text|>", 549}}, {"cls", {"<|begin_of_text|>", 548}}};
    });
    auto const tokenizer = text::tokenizer::load(directory.path());
    CHECK(tokenizer.encode("!") == std::vector<std::int32_t>{548, 0, 549});
    CHECK(tokenizer.encode("!", false) == std::vector<std::int32_t>{0});
  }
}

// As of Hugging Face tokenizers 0.23.3.
TEST_CASE("words with a suffix, and their decoder") {
  model_directory const directory;
  directory.write("tokenizer_config.json", "{}");
  std::filesystem::remove(directory.path() / "special_tokens_map.json");
  directory.write("tokenizer.json", R"({"model": {"type": "BPE", "end_of_word_suffix": "</w>",
    "vocab": {"a": 0, "b": 1, "a</w>": 2, "b</w>": 3, "ab</w>": 4, "ab": 5}, "merges": ["a b</w>", "a b"]},
    "pre_tokenizer": {"type": "WhitespaceSplit"}, "decoder": {"type": "BPEDecoder", "suffix": "</w>"}})");
  auto const tokenizer = text::tokenizer::load(directory.path());
  CHECK(tokenizer.encode("a ab aab aba b") == std::vector<std::int32_t>{2, 4, 0, 4, 5, 2, 3});
  CHECK(tokenizer.decode(tokenizer.encode("a ab b")) == "a ab b");
  std::vector<std::int32_t> ids;
  CHECK(tokenizer.encode_and_locate("a aab", std::vector<std::size_t>{2, 3}, ids) ==
        std::vector<std::int32_t>{1, 2});
}

TEST_CASE("a template may add a suffix, and a normalised token is found in its normalised form") {
  model_directory const directory;
  directory.change("tokenizer.json", [](json& j) {
    j["normalizer"] = {{"type", "Sequence"}, {"normalizers", json::array({{{"type", "NFC"}}})}};
    template_of(j)["single"].push_back({{"SpecialToken", {{"id", "<|begin_of_text|>"}, {"type_id", 0}}}});
    j["added_tokens"].push_back(
        {{"content", "caf\u00E9"}, {"id", 560}, {"special", false}, {"normalized", true}});
  });
  CHECK(text::tokenizer::load(directory.path()).encode("cafe\u0301") ==
        std::vector<std::int32_t>{548, 560, 548});
}
