// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/model_directory.hpp>
#include <superoffload/text/token_range.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::text {

/// Where an assistant's turn lies in the text: what the model writes, from behind the generation prompt to
/// the end of the end-of-turn token.
struct assistant_turn {
  std::int32_t message = 0;  ///< its index in the row's messages
  std::size_t begin = 0;     ///< bytes
  std::size_t end = 0;       ///< bytes: behind the last one
  bool left_out = false;     ///< the row gives the message the weight 0
};

/// What the data call the fields of a row.
struct chat_fields {
  std::string messages = "messages";  ///< the list of messages
  std::string tools = "tools";        ///< the list of tools, which a row may lack
};

/// A row of messages as one text.
struct conversation {
  std::string text;                   ///< as the model sees it, UTF-8
  std::vector<assistant_turn> turns;  ///< in the order of the text
};

/// Which turns of the assistant are learnt: all, that of its last message, or those without the weight 0.
enum class learnt_turns { all, last, weighted };

/// "all", "last" or "weighted".
std::string_view name_of(learnt_turns learnt) noexcept;
/// \throws error(bad_input) unless `name` is one of these.
learnt_turns parse_learnt_turns(std::string_view name);

/// The ids of a conversation, and which of them are learnt.
struct encoded_conversation {
  std::vector<std::int32_t> ids;    ///< of the whole text
  std::vector<token_range> learnt;  ///< ascending, none empty
  std::int64_t learnt_at_zero = 0;  ///< turns that are learnt although their row gives them the weight 0
};

/// How a family of models writes a conversation. These are native renderers of published chat templates: no
/// template is ever run. Immutable and small; any number of threads may use one.
class chat_template {
public:
  /// \throws error(bad_input) listing the names, unless `name` is one of them.
  [[nodiscard]] static chat_template named(std::string_view name);

  /// The renderer of the published template `text`. Only a text that differs from the published one in
  /// comments and line ends is recognised, because any other edit may change what it writes. `origin` names
  /// the template's file. \throws error(bad_input) naming it, and the names to choose from.
  [[nodiscard]] static chat_template recognise(std::string_view text, std::string const& origin);

  /// The template of a model directory: chat_template.jinja, else chat_template of tokenizer_config.json, a
  /// text or a list of named ones of which `default` counts. With `name`, that one, whatever the directory
  /// has. Its beginning of text is the tokenizer's. \throws error(bad_input)
  [[nodiscard]] static chat_template of_model(io::model_directory const& directory,
                                              tokenizer const& tokenizer, std::string_view name = {});

  /// As named() takes it, such as "llama3".
  [[nodiscard]] std::string_view name() const noexcept;
  /// All names that named() takes, sorted.
  [[nodiscard]] static std::vector<std::string_view> names();

  /// The tokens which the template marks roles and ends of turns with, and which `tokenizer` lacks. They
  /// become several tokens of text, so that it is hardly the template of the tokenizer's model.
  [[nodiscard]] std::vector<std::string_view> marks_missing_in(tokenizer const& tokenizer) const;

  /// `row`: a JSON object with `messages`, and maybe `tools` and `chat_template_kwargs`; other fields are
  /// ignored. `where` is what errors begin with. At most 16 MiB, 32 levels and a million values.
  /// \throws error(bad_input) naming the field; also for what the template itself refuses or would lose.
  [[nodiscard]] conversation render(std::string_view row, std::string const& where,
                                    chat_fields const& fields = {}) const;

  /// The text that the template puts at the beginning of a conversation, if it asks for one.
  void set_beginning_of_text(std::string text) { beginning_of_text_ = std::move(text); }

private:
  explicit chat_template(std::size_t index) : index_{index} {}

  std::size_t index_;  // in the list of renderers
  std::string beginning_of_text_;
};

/// The ids of the whole text, to which nothing is added. A token belongs to the turn in which its first byte
/// lies. `last` is the turn of the last message of the assistant.
encoded_conversation encode(conversation const& talk, tokenizer const& tokenizer, learnt_turns learnt);

namespace detail {
/// A template without what no rendering depends on: the words of comments (their marks for white space
/// stay), the form of line ends, and the last line end.
std::string plain_template(std::string_view text);
}  // namespace detail

}  // namespace superoffload::text

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/text/impl/chat_template_inl.hpp>
#endif
