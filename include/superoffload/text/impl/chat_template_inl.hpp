// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/checksum.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/chat_template.hpp>
#include <superoffload/text/impl/chat_gpt_oss_inl.hpp>
#include <superoffload/text/impl/chat_llama3_inl.hpp>
#include <superoffload/text/impl/chat_qwen_inl.hpp>
#include <superoffload/text/impl/chat_roles_inl.hpp>
#include <superoffload/text/impl/chat_row_inl.hpp>
#include <superoffload/text/impl/chat_seed_oss_inl.hpp>

#include <algorithm>
#include <array>
#include <span>

namespace superoffload::text {
namespace detail {

struct chat_renderer {
  std::string_view name;
  void (*render)(chat_row const&, transcript&);
  bool parses_arguments;                    ///< arguments given as text are no text to the template
  std::string_view digest;                  ///< SHA-256 of the published template's plain form
  std::span<std::string_view const> marks;  ///< tokens of roles and ends of turns
  std::span<chat_option const> options;
};

inline constexpr std::array<std::string_view, 2> im_marks{"<|im_start|>", "<|im_end|>"};
inline constexpr std::array<std::string_view, 3> phi4_marks{"<|im_start|>", "<|im_sep|>", "<|im_end|>"};
inline constexpr std::array<std::string_view, 3> llama3_marks{"<|start_header_id|>", "<|end_header_id|>",
                                                              "<|eot_id|>"};
inline constexpr std::array<std::string_view, 2> seed_oss_marks{"<seed:bos>", "<seed:eos>"};
inline constexpr std::array<std::string_view, 6> gpt_oss_marks{"<|start|>", "<|message|>", "<|channel|>",
                                                               "<|end|>",   "<|return|>",  "<|call|>"};

inline constexpr std::array<chat_option, 1> qwen3_options{{{"enable_thinking", chat_option::type::truth}}};
inline constexpr std::array<chat_option, 4> llama3_options{
    {{"date_string", chat_option::type::text},
     {"tools_in_user_message", chat_option::type::truth},
     {"custom_tools", chat_option::type::list},
     {"builtin_tools", chat_option::type::list}}};
inline constexpr std::array<chat_option, 2> seed_oss_options{
    {{"thinking_budget", chat_option::type::number}, {"use_json_tooldef", chat_option::type::truth}}};
inline constexpr std::array<chat_option, 4> gpt_oss_options{{{"reasoning_effort", chat_option::type::text},
                                                             {"model_identity", chat_option::type::text},
                                                             {"builtin_tools", chat_option::type::list},
                                                             {"date_string", chat_option::type::text}}};

inline constexpr std::array<chat_renderer, 8> chat_renderers{{
    {"chatml",
     render_chatml,
     true,
     "55b2f4a26ac9ee719330a61a0c39d9e538b0e9322212f048326318cff4f8674a",
     im_marks,
     {}},
    {"gpt_oss", render_gpt_oss, true, "5870c0835b5f5e1fc209fd1fe236c0ea7c284a204c6e902289d61c2847bbdb2d",
     gpt_oss_marks, gpt_oss_options},
    {"llama3", render_llama3, true, "d003b5b6287781f283bd07f2bea29d6fecfda60f2db85e9cc0e2a89f2202f1d0",
     llama3_marks, llama3_options},
    {"phi4",
     render_phi4,
     true,
     "fe4120415a3858b873955c92ce3a103a95bc97c2cb00b72e62659aaf0f891ee5",
     phi4_marks,
     {}},
    {"qwen3", render_qwen3, false, "a55ee1b1660128b7098723e0abcd92caa0788061051c62d51cbe87d9cf1974d8",
     im_marks, qwen3_options},
    {"qwen3_2507",
     render_qwen3_2507,
     false,
     "64f85b198065d0fba2a81f37e10ed68161ce2c19a754c7100e67e0ca2ee9c326",
     im_marks,
     {}},
    {"seed_oss", render_seed_oss, true, "a91d59166696aa9f34969888149cded73a0dde9c6510298f51e9344cdf934586",
     seed_oss_marks, seed_oss_options},
    {"smollm2",
     render_smollm2,
     true,
     "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788",
     im_marks,
     {}},
}};

SUPEROFFLOAD_INLINE std::string plain_template(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      plain += '\n';
      i += i + 1 < text.size() && text[i + 1] == '\n' ? 1 : 0;
    } else if (auto const end = text.substr(i, 2) == "{#" ? text.find("#}", i + 2) : text.npos;
               end != text.npos) {
      auto const words = text.substr(i + 2, end - i - 2);
      auto const is_mark = [](char c) { return c == '-' || c == '+'; };
      plain += "{#";
      plain += !words.empty() && is_mark(words.front()) ? words.substr(0, 1) : "";
      plain += words.size() > 1 && is_mark(words.back()) ? words.substr(words.size() - 1) : "";
      plain += "#}";
      i = end + 1;
    } else {
      plain += text[i];
    }
  }
  if (plain.ends_with('\n')) {
    plain.pop_back();
  }
  return plain;
}

SUPEROFFLOAD_INLINE std::string listed_templates() {
  std::string list;
  for (auto const& renderer : chat_renderers) { list += concat(list.empty() ? "" : ", ", renderer.name); }
  return list;
}

inline constexpr io::json_limits template_file_limits{.bytes = std::size_t{16} << 20};

struct published_template {
  std::string text;
  std::string origin;
};

/// The template of tokenizer_config.json: a text, or a list of named ones.
SUPEROFFLOAD_INLINE published_template template_in(io::json_field const& field) {
  if (!field.raw().is_array()) {
    return {field.text(), field.where()};
  }
  for (std::size_t i = 0; i < field.raw().size(); ++i) {
    if (field[i]["name"].text() == "default") {
      return {field[i]["template"].text(), field[i].where()};
    }
  }
  fail(exit_code::bad_input, field.where(), ": none of the ", field.raw().size(),
       " templates is named default; choose one with --chat_template: ", listed_templates());
}

SUPEROFFLOAD_INLINE published_template template_of(io::model_directory const& directory) {
  if (directory.has("chat_template.jinja")) {
    auto const file = directory.file("chat_template.jinja");
    return {io::read_file(file, template_file_limits.bytes), file.string()};
  }
  if (directory.has("tokenizer_config.json")) {
    auto const config_file = directory.file("tokenizer_config.json");
    auto const json = io::read_json(config_file, template_file_limits);
    io::json_field const config{json, config_file.string()};
    if (config.has("chat_template")) {
      return template_in(config["chat_template"]);
    }
  }
  fail(exit_code::bad_input, directory.path().string(),
       ": no chat template, neither chat_template.jinja nor chat_template in tokenizer_config.json; choose "
       "one "
       "with --chat_template: ",
       listed_templates());
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string_view name_of(learnt_turns learnt) noexcept {
  return learnt == learnt_turns::all ? "all" : learnt == learnt_turns::last ? "last" : "weighted";
}

SUPEROFFLOAD_INLINE learnt_turns parse_learnt_turns(std::string_view name) {
  for (auto const learnt : {learnt_turns::all, learnt_turns::last, learnt_turns::weighted}) {
    if (name == name_of(learnt)) {
      return learnt;
    }
  }
  fail(exit_code::bad_input, "learn '", printable(name, 40), "': expected all, last or weighted");
}

SUPEROFFLOAD_INLINE chat_template chat_template::named(std::string_view name) {
  auto const found = std::ranges::find(detail::chat_renderers, name, &detail::chat_renderer::name);
  expect(found != detail::chat_renderers.end(), exit_code::bad_input, "chat template '", printable(name, 40),
         "': expected one of ", detail::listed_templates());
  return chat_template{static_cast<std::size_t>(found - detail::chat_renderers.begin())};
}

SUPEROFFLOAD_INLINE chat_template chat_template::recognise(std::string_view text, std::string const& origin) {
  auto const plain = detail::plain_template(text);
  auto const digest = io::sha256_hex(std::as_bytes(std::span{plain}));
  auto const found = std::ranges::find(detail::chat_renderers, digest, &detail::chat_renderer::digest);
  expect(found != detail::chat_renderers.end(), exit_code::bad_input, origin,
         ": this chat template is not known; if it writes what one of these writes, choose that with "
         "--chat_template: ",
         detail::listed_templates());
  return chat_template{static_cast<std::size_t>(found - detail::chat_renderers.begin())};
}

SUPEROFFLOAD_INLINE chat_template chat_template::of_model(io::model_directory const& directory,
                                                          tokenizer const& tokenizer, std::string_view name) {
  auto found = [&] {
    if (!name.empty()) {
      return named(name);
    }
    auto const published = detail::template_of(directory);
    return recognise(published.text, published.origin);
  }();
  if (auto const id = tokenizer.bos_id()) {
    found.set_beginning_of_text(tokenizer.decode(std::array{*id}));
  }
  return found;
}

SUPEROFFLOAD_INLINE std::string_view chat_template::name() const noexcept {
  return detail::chat_renderers[index_].name;
}

SUPEROFFLOAD_INLINE std::vector<std::string_view> chat_template::names() {
  std::vector<std::string_view> list;
  for (auto const& renderer : detail::chat_renderers) { list.push_back(renderer.name); }
  return list;
}

SUPEROFFLOAD_INLINE std::vector<std::string_view> chat_template::marks_missing_in(
    tokenizer const& tokenizer) const {
  std::vector<std::string_view> missing;
  for (auto const mark : detail::chat_renderers[index_].marks) {
    if (tokenizer.encode(mark, false).size() != 1) {
      missing.push_back(mark);
    }
  }
  return missing;
}

SUPEROFFLOAD_INLINE conversation chat_template::render(std::string_view row, std::string const& where,
                                                       chat_fields const& fields) const {
  auto const& renderer = detail::chat_renderers[index_];
  detail::chat_row const checked{
      row, where, fields, beginning_of_text_, renderer.parses_arguments, renderer.options};
  detail::transcript out;
  renderer.render(checked, out);
  auto talk = out.take();
  for (auto& turn : talk.turns) {
    turn.left_out = detail::chat_row::is_left_out(checked.messages()[static_cast<std::size_t>(turn.message)]);
  }
  return talk;
}

SUPEROFFLOAD_INLINE encoded_conversation encode(conversation const& talk, tokenizer const& tokenizer,
                                                learnt_turns learnt) {
  std::vector<std::size_t> borders;
  borders.reserve(2 * talk.turns.size());
  for (auto const& turn : talk.turns) {
    borders.push_back(turn.begin);
    borders.push_back(turn.end);
  }
  encoded_conversation encoded;
  auto const tokens = tokenizer.encode_and_locate(talk.text, borders, encoded.ids);
  for (std::size_t i = 0; i < talk.turns.size(); ++i) {
    bool const left_out = talk.turns[i].left_out;
    bool const wanted = learnt == learnt_turns::all    ? true
                        : learnt == learnt_turns::last ? i + 1 == talk.turns.size()
                                                       : !left_out;
    token_range const turn{tokens[2 * i], tokens[2 * i + 1]};
    if (wanted && turn.begin < turn.end) {
      encoded.learnt.push_back(turn);
      encoded.learnt_at_zero += left_out ? 1 : 0;
    }
  }
  return encoded;
}

}  // namespace superoffload::text
