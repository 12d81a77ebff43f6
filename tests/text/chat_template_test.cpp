// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/chat_template.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

using namespace superoffload;
using namespace superoffload::text;

namespace {

using io::json;

constexpr std::array families{"chatml", "gpt_oss",    "llama3",   "phi4",
                              "qwen3",  "qwen3_2507", "seed_oss", "smollm2"};

std::string const listed = "chatml, gpt_oss, llama3, phi4, qwen3, qwen3_2507, seed_oss, smollm2";

/// What became of a row: a rendering, or the message of its refusal.
struct outcome {
  std::optional<conversation> talk;
  std::string message;
};

outcome rendered(chat_template const& form, std::string const& row) {
  try {
    return {form.render(row, "rows.jsonl:7"), {}};
  } catch (error const& e) {
    CHECK(e.code() == exit_code::bad_input);
    return {std::nullopt, e.what()};
  }
}

std::string refusal(std::string_view form, std::string const& row) {
  auto const result = rendered(chat_template::named(form), row);
  CHECK_FALSE(result.talk.has_value());
  return result.message;
}

std::vector<token_range> ranges(json const& list, std::size_t at) {
  std::vector<token_range> found;
  for (auto const& range : list) {
    auto const numbers = range.get<std::vector<std::int32_t>>();
    if (numbers[at] < numbers[at + 1]) {
      found.push_back({numbers[at], numbers[at + 1]});
    }
  }
  return found;
}

void check_encoding(conversation const& talk, tokenizer const& tokenizer, json const& expected) {
  CHECK(talk.text == expected.at("text").get<std::string>());
  auto const all = encode(talk, tokenizer, learnt_turns::all);
  CHECK(all.ids == expected.at("ids").get<std::vector<std::int32_t>>());
  CHECK(all.learnt == ranges(expected.at("turns"), 1));
  CHECK(all.learnt == ranges(expected.at("mask_all"), 0));
  auto const last = encode(talk, tokenizer, learnt_turns::last);
  CHECK(last.ids == all.ids);
  CHECK(last.learnt == ranges(expected.at("mask_last"), 0));
  std::size_t turn = 0;
  for (auto const& of_file : expected.at("turns")) {
    REQUIRE(turn < talk.turns.size());
    CHECK(talk.turns[turn++].message == of_file.at(0).get<std::int32_t>());
  }
}

TEST_CASE("every row is rendered, encoded and refused as transformers does") {
  for (auto const* const family : families) {
    auto const directory = std::filesystem::path{SUPEROFFLOAD_TEST_DATA};
    auto const file =
        io::read_json(directory / "chat" / (std::string{family} + ".json"), {std::size_t{1} << 20, 32});
    auto const model = directory / "tokenizers" / file.at("tokenizer").get<std::string>();
    auto const tokenizer = tokenizer::load(model);
    auto const form = chat_template::of_model(model, tokenizer, family);
    CHECK(file.at("cases").size() >= 40);
    for (auto const& expected : file.at("cases")) {
      CAPTURE(std::string{family});
      CAPTURE(expected.at("name").get<std::string>());
      auto const result = rendered(form, expected.at("row").get<std::string>());
      CAPTURE(result.message);
      if (!result.talk) {
        CHECK(result.message.starts_with("rows.jsonl:7: "));
        CHECK((expected.contains("error") || expected.contains("may_refuse")));
        if (expected.contains("error")) {
          auto const said = expected.at("error").value("template", std::string{});
          CHECK(result.message.find(said) != std::string::npos);
        }
        continue;
      }
      auto const& other = expected.value("alternative", json::object());
      bool const alternative = other.value("text", std::string{}) == result.talk->text;
      CHECK((alternative || !expected.contains("error")));
      check_encoding(*result.talk, tokenizer, alternative ? other : expected);
    }
  }
}

std::string with_messages(std::string const& messages) { return R"({"messages": )" + messages + "}"; }

TEST_CASE("names") {
  CHECK(chat_template::names() == std::vector<std::string_view>(families.begin(), families.end()));
  for (auto const* const family : families) { CHECK(chat_template::named(family).name() == family); }
  CHECK_THROWS_WITH(static_cast<void>(chat_template::named("llama4")),
                    ("chat template 'llama4': expected one of " + listed).c_str());
  CHECK(parse_learnt_turns("all") == learnt_turns::all);
  CHECK(parse_learnt_turns("last") == learnt_turns::last);
  CHECK(parse_learnt_turns("weighted") == learnt_turns::weighted);
  CHECK_THROWS_WITH(parse_learnt_turns("first"), "learn 'first': expected all, last or weighted");
}

TEST_CASE("an unknown template is refused by its file, with the names to choose from") {
  for (auto const* const text : {"", "{{ messages }}", "{% for message in messages %}"}) {
    CHECK_THROWS_WITH(
        static_cast<void>(chat_template::recognise(text, "m/chat_template.jinja")),
        ("m/chat_template.jinja: this chat template is not known; if it writes what one of these "
         "writes, choose that with --chat_template: " +
         listed)
            .c_str());
  }
}

/// The published templates belong to others and are not here. With SUPEROFFLOAD_CHAT_TEMPLATES, a directory
/// of <name>/template.jinja, each must be recognised, and none with a change of a single character.
TEST_CASE("the published templates are recognised") {
  auto const* const directory = std::getenv("SUPEROFFLOAD_CHAT_TEMPLATES");
  if (directory == nullptr) {
    MESSAGE("SUPEROFFLOAD_CHAT_TEMPLATES is not set: nothing is tested");
    return;
  }
  for (auto const* const family : families) {
    CAPTURE(std::string{family});
    auto const text = io::read_file(std::filesystem::path{directory} / family / "template.jinja", 1 << 20);
    CHECK(chat_template::recognise(text, "x").name() == family);
    CHECK(chat_template::recognise(text + (text.ends_with('\n') ? "" : "\n"), "x").name() == family);
    CHECK_THROWS_AS(static_cast<void>(chat_template::recognise(text + "x", "x")), error);
    CHECK_THROWS_AS(static_cast<void>(chat_template::recognise(std::string_view{text}.substr(1), "x")),
                    error);
    auto edited = text;
    edited[edited.find("role")] = 'R';
    CHECK_THROWS_AS(static_cast<void>(chat_template::recognise(edited, "x")), error);
  }
}

TEST_CASE("where a directory has its template") {
  auto const directory = std::filesystem::temp_directory_path() / "superoffload_chat_template_test";
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  auto const tokenizer = tokenizer::load(SUPEROFFLOAD_TEST_DATA "/tokenizers/llama3");
  auto const refused = [&](std::string_view name = {}) -> std::string {
    try {
      return std::string{chat_template::of_model(directory, tokenizer, name).name()};
    } catch (error const& e) { return std::string{e.what()}.substr(directory.string().size()); }
  };
  auto const write = [&](char const* name, std::string const& text) {
    std::ofstream{directory / name, std::ios::binary} << text;
  };
  CHECK(refused().starts_with(": no chat template, neither chat_template.jinja nor chat_template in "));
  write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "x"}]})");
  CHECK(refused().starts_with(
      "/tokenizer_config.json: chat_template: none of the 1 templates is named default"));
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "x"}, {"name": "default", "template": "y"}]})");
  CHECK(refused().starts_with("/tokenizer_config.json: chat_template[1]: this chat template is not known"));
  write("tokenizer_config.json", R"({"chat_template": "x"})");
  CHECK(refused().starts_with("/tokenizer_config.json: chat_template: this chat template is not known"));
  write("tokenizer_config.json", R"({"chat_template": 1})");
  CHECK(refused() == "/tokenizer_config.json: chat_template: expected a string, found 1");
  write("chat_template.jinja", "x");
  CHECK(refused().starts_with("/chat_template.jinja: this chat template is not known"));
  CHECK(refused("phi4") == "phi4");
  for (char const* const name : {"chat_template.jinja", "tokenizer_config.json"}) {
    CAPTURE(name);
    std::filesystem::remove(directory / name);
    std::filesystem::create_symlink(SUPEROFFLOAD_TEST_DATA "/README.md", directory / name);
    CHECK(refused().starts_with(concat('/', name, ": is a symbolic link to ")));
    std::filesystem::remove(directory / name);
  }
  std::filesystem::remove_all(directory);
}

TEST_CASE("comments and line ends do not make another template, anything else does") {
  using text::detail::plain_template;
  CHECK(plain_template("{# a #}b\r\nc\rd\n") == "{##}b\nc\nd");
  CHECK(plain_template("{#- a -#}{#-#}{#+ b #}{# c +#}") == "{#--#}{#-#}{#+#}{#+#}");
  CHECK(plain_template("a\n\n") == "a\n");
  CHECK(plain_template("{# no end") == "{# no end");
  CHECK(plain_template("{# a #} #}") == "{##} #}");
}

TEST_CASE("malformed rows are refused with row and field") {
  auto const user = [](std::string const& more) {
    return with_messages(R"([{"role": "user", "content": "x"}, )" + more + "]");
  };
  auto const options = [](std::string const& kwargs) {
    return R"({"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": )" + kwargs + "}";
  };
  struct bad_row {
    char const* form;
    std::string row;
    std::string message;
  };
  std::vector<bad_row> const rows{
      {"llama3", "", "byte 1: expected valid JSON in UTF-8, found the end of the text"},
      {"llama3", "[]", "expected an object with 'messages', found a list"},
      {"llama3", "{}", "messages: expected a list, found nothing"},
      {"llama3", with_messages("null"), "messages: expected a list, found null"},
      {"llama3", with_messages("{}"), "messages: expected a list, found an object"},
      {"llama3", with_messages("[]"), "messages: the list is empty; expected at least one message"},
      {"llama3", with_messages("[1]"), "messages[0]: expected an object, found a number"},
      {"llama3", with_messages("[{}]"), "messages[0].role: expected a text, found nothing"},
      {"llama3", with_messages(R"([{"role": 7}])"), "messages[0].role: expected a text, found a number"},
      {"chatml", with_messages(R"([{"role": "user"}])"),
       "messages[0].content: expected a text, found nothing"},
      {"chatml", with_messages(R"([{"role": "user", "content": {}}])"),
       "messages[0].content: expected a text, found an object"},
      {"qwen3", with_messages(R"([{"role": "user", "content": [{"type": "image"}]}])"),
       "messages[0].content: expected a text, found a list that is not one part of type 'text'"},
      {"qwen3", with_messages(R"([{"role": "critic", "content": "x"}])"),
       "messages[0].role: the template has no role 'critic' here; expected system, user, assistant or tool"},
      {"qwen3", with_messages(R"([{"role": "user", "content": "x", "tool_calls": [{}]}])"),
       "messages[0].tool_calls: expected in a message of the assistant only"},
      {"qwen3", user(R"({"role": "assistant", "tool_calls": {}})"),
       "messages[1].tool_calls: expected a list, found an object"},
      {"qwen3", user(R"({"role": "assistant", "tool_calls": [1]})"),
       "messages[1].tool_calls[0]: expected an object, found a number"},
      {"qwen3", user(R"({"role": "assistant", "tool_calls": [{"function": {"arguments": {}}}]})"),
       "messages[1].tool_calls[0].function.name: expected a text, found nothing"},
      {"qwen3", user(R"({"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]})"),
       "messages[1].tool_calls[0].function.arguments: expected the call's arguments, found nothing"},
      {"qwen3", user(R"({"role": "assistant", "content": "x", "reasoning": 1})"),
       "messages[1].reasoning_content: expected a text, found a number"},
      {"chatml",
       user(R"({"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "[1]"}}]})"),
       "messages[1].tool_calls[0].function.arguments: expected an object, or a JSON object as text, found a "
       "list"},
      {"chatml", user(R"({"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{"}]})"),
       "messages[1].tool_calls[0].arguments: byte 2: expected valid JSON in UTF-8, found the end of the text"},
      {"chatml", user(R"({"role": "assistant", "content": "x", "thinking": "t"})"),
       "messages[1].reasoning_content: the template writes no thoughts; expected none"},
      {"phi4", R"({"messages": [{"role": "user", "content": "x"}], "tools": [{}]})",
       "tools: the template shows no tools; expected none"},
      {"llama3", R"({"messages": [{"role": "user", "content": "x"}], "tools": {}})",
       "tools: expected a list, found an object"},
      {"llama3", R"({"messages": [{"role": "user", "content": "x"}], "tools": ["f"]})",
       "tools[0]: expected an object, found a text"},
      {"llama3",
       user(
           R"({"role": "assistant", "content": "x", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]})"),
       "messages[1].content: the template writes no content beside a call; expected none"},
      {"llama3", options("[]"), "chat_template_kwargs: expected an object, found a list"},
      {"llama3", options(R"({"date_string": 1})"),
       "chat_template_kwargs.date_string: expected a text, found a number"},
      {"llama3", options(R"({"tools": []})"),
       "chat_template_kwargs.tools: no option of this template; expected date_string, tools_in_user_message, "
       "custom_tools, builtin_tools"},
      {"phi4", options(R"({"date_string": "x"})"),
       "chat_template_kwargs.date_string: no option of this template; expected none"},
      {"qwen3", options(R"({"enable_thinkng": false})"),
       "chat_template_kwargs.enable_thinkng: no option of this template; expected enable_thinking"},
      {"qwen3", options(R"({"enable_thinking": "false"})"),
       "chat_template_kwargs.enable_thinking: expected true or false, found a text"},
      {"llama3", options(R"({"builtin_tools": {}})"),
       "chat_template_kwargs.builtin_tools: expected a list, found an object"},
      {"gpt_oss", options(R"({"builtin_tools": ["pyton"]})"),
       "chat_template_kwargs.builtin_tools[0]: expected browser or python, found 'pyton'"},
      {"llama3", user(R"({"role": "assistant"})"), "messages[1].content: expected a text, found nothing"},
      {"qwen3", user(R"({"role": "assistant", "content": null})"),
       "messages[1].content: expected a text, found nothing"},
      {"qwen3_2507", user(R"({"role": "assistant", "content": null, "tool_calls": []})"),
       "messages[1].content: expected a text, found nothing"},
      {"qwen3", user(R"({"role": "tool"})"),
       "messages[1].content: expected the tool's result, found nothing"},
      {"llama3", user(R"({"role": "Assistant", "content": "x"})"),
       "messages[1].role: found 'Assistant', expected 'assistant'"},
      {"seed_oss", user(R"({"role": "assistant ", "content": "x"})"),
       "messages[1].role: found 'assistant ', expected 'assistant'"},
      {"seed_oss", user(R"({"role": "gpt", "content": "x"})"),
       "messages[1].role: found 'gpt', expected 'assistant'"},
      {"llama3", user(R"({"role": "function", "name": "f", "content": "x"})"),
       "messages[1].role: found 'function', expected 'tool'"},
      {"llama3",
       user(R"({"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}})"),
       "messages[1].function_call: no template writes it; expected the call in tool_calls: "
       R"([{"type": "function", "function": {"name": ..., "arguments": ...}}])"},
      {"qwen3", user(R"({"role": "assistant", "content": "x", "reasoning": "a", "thinking": "b"})"),
       "messages[1].reasoning: another thought than under its other names; expected one thought a message"},
      {"llama3", user(R"({"role": "assistant", "content": "x", "weight": 0.5})"),
       "messages[1].weight: expected 0 or 1, found 0.5"},
      {"llama3", user(R"({"role": "assistant", "content": "x", "weight": "0"})"),
       "messages[1].weight: expected 0 or 1, found a text"},
      {"seed_oss", options(R"({"thinking_budget": "9"})"),
       "chat_template_kwargs.thinking_budget: expected a number, found a text"},
      {"seed_oss", user(R"({"role": "assistant", "content": " "})"),
       "messages[1].content: the template writes no end of turn after an empty answer; expected a text that "
       "is not "
       "blank"},
      {"seed_oss",
       R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"type": "function", "function": {}}]})",
       "tools[0].function.parameters: expected an object, found nothing"},
      {"gpt_oss", user(R"({"role": "assistant", "tool_calls": [{}, {}]})"),
       "messages[1].tool_calls: the template writes the first call of a message only; expected one call a "
       "message"},
      {"gpt_oss",
       R"({"messages": [{"role": "user", "content": "x"}], "tools": [{"function": {"name": "f"}}]})",
       "tools[0].function.description: expected a text, found nothing"},
      {"gpt_oss", with_messages("[{\"role\": \"user\", \"content\": \"\xff\"}]"),
       "byte 44: expected valid JSON in UTF-8, found '\"\\xff'"},
      {"gpt_oss", with_messages(R"([{"role": "user", "content": "\ud800"}])"),
       R"(byte 50: expected valid JSON in UTF-8, found '"\ud800"')"},
      {"gpt_oss", std::string("{\"messages\":\0[]}", 16),
       "byte 13: expected valid JSON in UTF-8, found a zero byte"},
      {"gpt_oss", with_messages(R"([{"role": "user", "role": "user"}])"),
       "field 'role' appears twice in one object; expected each name once"},
      {"gpt_oss", with_messages(std::string(64, '[') + std::string(64, ']')),
       "nested deeper than 32 levels; expected a flatter row"},
      {"gpt_oss",
       with_messages("[" +
                     [] {
                       std::string many;
                       for (int i = 0; i < 1'000'000; ++i) { many += "1,"; }
                       return many;
                     }() +
                     "1]"),
       "expected at most 1000000 JSON values"},
      {"gpt_oss", with_messages("[\"" + std::string(std::size_t{16} << 20, 'x') + "\"]"),
       "16777234 bytes of JSON, expected at most 16777216"},
  };
  for (auto const& bad : rows) { CHECK(refusal(bad.form, bad.row) == "rows.jsonl:7: " + bad.message); }
}

TEST_CASE("options that are null are no options") {
  auto const form = chat_template::named("qwen3");
  std::string const messages = R"([{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}])";
  auto const text_with = [&](std::string const& options) {
    return form.render(R"({"messages": )" + messages + R"(, "chat_template_kwargs": )" + options + "}", "row")
        .text;
  };
  CHECK(text_with(R"({"enable_thinking": null, "other": null})") == text_with("{}"));
}

TEST_CASE("turns of weight 0 are left out if asked for, and counted if not") {
  auto const tokenizer = tokenizer::load(SUPEROFFLOAD_TEST_DATA "/tokenizers/qwen3");
  auto const talk =
      chat_template::named("chatml").render(with_messages(R"([{"role": "user", "content": "a", "weight": 0},
                        {"role": "assistant", "content": "b", "weight": 0},
                        {"role": "assistant", "content": "c", "weight": 1},
                        {"role": "assistant", "content": "d", "weight": null},
                        {"role": "assistant", "content": "e", "weight": 0.0}])"),
                                            "row");
  auto const all = encode(talk, tokenizer, learnt_turns::all);
  CHECK(all.learnt.size() == 4);
  CHECK(all.learnt_at_zero == 2);
  auto const last = encode(talk, tokenizer, learnt_turns::last);
  CHECK(last.learnt_at_zero == 1);
  auto const weighted = encode(talk, tokenizer, learnt_turns::weighted);
  CHECK(weighted.ids == all.ids);
  CHECK(weighted.learnt == std::vector{all.learnt[1], all.learnt[2]});
  CHECK(weighted.learnt_at_zero == 0);
}

TEST_CASE("marks that a tokenizer lacks") {
  auto const tokenizer = tokenizer::load(SUPEROFFLOAD_TEST_DATA "/tokenizers/llama3");
  CHECK(chat_template::named("llama3").marks_missing_in(tokenizer).empty());
  CHECK(chat_template::named("phi4").marks_missing_in(tokenizer) ==
        std::vector<std::string_view>{"<|im_start|>", "<|im_sep|>", "<|im_end|>"});
}

TEST_CASE("a border within a stretch, where normalisation changes lengths before it") {
  auto const tokenizer = tokenizer::load(SUPEROFFLOAD_TEST_DATA "/tokenizers/qwen3");
  std::string const before = "cafe\u0301 A\u030a\n";
  std::string const text = "<|im_start|>" + before + "re\u0301sume\u0301<|im_end|>\n";
  std::array<std::size_t, 6> const offsets{
      0, 12, 12 + before.size(), text.size() - 11, text.size() - 1, text.size()};
  std::vector<std::int32_t> ids;
  auto const located = tokenizer.encode_and_locate(text, offsets, ids);
  CHECK(ids == tokenizer.encode(text, false));
  auto const size = [&](std::string const& part) {
    return static_cast<std::int32_t>(tokenizer.encode(part, false).size());
  };
  auto const line = size(before);
  auto const all = static_cast<std::int32_t>(ids.size());
  CHECK(located == std::vector<std::int32_t>{0, 1, 1 + line, all - 2, all - 1, all});
}

}  // namespace
