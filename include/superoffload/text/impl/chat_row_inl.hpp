// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/text/chat_template.hpp>
#include <superoffload/text/impl/json_value_inl.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::text::detail {

/// A value of a row with its path, so that every error names the row and the field. Refers to the row.
class chat_field {
public:
  chat_field(json_value const& value, std::string path) : value_{&value}, path_{std::move(path)} {}

  [[nodiscard]] json_value const& raw() const noexcept { return *value_; }
  [[nodiscard]] bool truthy() const noexcept { return value_->truthy(); }
  [[nodiscard]] bool defined() const noexcept { return value_->defined(); }
  [[nodiscard]] std::size_t size() const noexcept { return value_->values.size(); }
  [[nodiscard]] std::string const& where() const noexcept { return path_; }

  /// The member `name`, which may be undefined.
  [[nodiscard]] chat_field operator[](std::string_view name) const {
    return {raw()[name], concat(path_, path_.ends_with(' ') ? "" : ".", printable(name, 60))};
  }
  /// The value `index` of an array or an object.
  [[nodiscard]] chat_field operator[](std::size_t index) const {
    auto const at =
        raw().is_object() ? concat(".", printable(raw().names[index], 60)) : concat("[", index, "]");
    return {raw().values[index], path_ + at};
  }

  [[nodiscard]] std::string const& text() const {
    if (!raw().is_text()) {
      refuse("expected a text, found ", raw().type_name());
    }
    return raw().text;
  }
  [[nodiscard]] std::string_view text_or(std::string_view other) const {
    return defined() ? std::string_view{text()} : other;
  }
  [[nodiscard]] chat_field const& array() const {
    if (!raw().is_array()) {
      refuse("expected a list, found ", raw().type_name());
    }
    return *this;
  }
  [[nodiscard]] chat_field const& object() const {
    if (!raw().is_object()) {
      refuse("expected an object, found ", raw().type_name());
    }
    return *this;
  }

  template <class... Parts>
  [[noreturn]] void refuse(Parts const&... parts) const {
    fail(exit_code::bad_input, path_, ": ", parts...);
  }

private:
  json_value const* value_;
  std::string path_;
};

/// The names under which a thought is found, first come first served.
inline constexpr std::array<std::string_view, 3> thought_names{"reasoning_content", "thinking", "reasoning"};

/// Roles of messages, and what other formats call them: a template that takes any role would write the name
/// as it is, and an answer of `gpt` or `Assistant` would not be learnt.
inline constexpr std::array<std::string_view, 6> message_roles{"system", "user",      "assistant",
                                                               "tool",   "developer", "ipython"};
inline constexpr std::array<std::pair<std::string_view, std::string_view>, 4> foreign_roles{
    {{"human", "user"}, {"gpt", "assistant"}, {"model", "assistant"}, {"function", "tool"}}};

/// The role that `role` misspells by case, blanks or another format's name; empty if it does not.
SUPEROFFLOAD_INLINE std::string_view meant_role(std::string_view role) {
  std::string plain{stripped(role)};
  std::ranges::transform(plain, plain.begin(),
                         [](char c) { return 'A' <= c && c <= 'Z' ? c + ('a' - 'A') : c; });
  for (auto const& [name, meant] : foreign_roles) {
    if (plain == name) {
      return meant;
    }
  }
  auto const found = std::ranges::find(message_roles, plain);
  return found == message_roles.end() || *found == role ? std::string_view{} : *found;
}

/// An option that `chat_template_kwargs` may have, and what it must be.
struct chat_option {
  enum class type : std::uint8_t { truth, text, number, list };
  std::string_view name;
  type is;
};

/// A row, checked and made uniform: members of a message and options that are null are dropped, a thought has
/// the names `reasoning_content` and `thinking`, a content of one text part is that text, and an empty list
/// of tools or calls is absent. A message without content has calls.
class chat_row {
public:
  /// With `parse_arguments`, arguments of calls that are the text of a JSON object become that object.
  /// `options` are those that the template has.
  chat_row(std::string_view json, std::string const& where, chat_fields const& fields,
           std::string_view beginning_of_text, bool parse_arguments, std::span<chat_option const> options)
      : document_{parse_json_value(json, where)},
        where_{where},
        fields_{fields},
        beginning_of_text_{beginning_of_text} {
    expect(document_.is_object(), exit_code::bad_input, where, ": expected an object with '", fields.messages,
           "', found ", document_.type_name());
    if (auto* const messages = document_.find(fields.messages); messages != nullptr && messages->is_array()) {
      for (std::size_t i = 0; i < messages->values.size(); ++i) {
        unify(messages->values[i], concat(where, ": ", fields.messages, "[", i, "]"), parse_arguments);
      }
    }
    auto const messages = field(fields.messages);
    expect(messages.array().size() > 0, exit_code::bad_input, messages.where(),
           ": the list is empty; expected at least one message");
    for (std::size_t i = 0; i < messages.size(); ++i) {
      messages_.push_back(messages[i].object());
      check(messages_.back());
    }
    read_tools();
    read_options(options);
  }
  chat_row(chat_row const&) = delete;
  chat_row& operator=(chat_row const&) = delete;
  ~chat_row() = default;

  [[nodiscard]] std::vector<chat_field> const& messages() const noexcept { return messages_; }
  [[nodiscard]] bool begins_with(std::string_view role) const { return role_of(messages_.front()) == role; }
  /// A list that is not empty, or undefined.
  [[nodiscard]] chat_field tools() const { return field(fields_.tools); }
  [[nodiscard]] chat_field option(std::string_view name) const { return field("chat_template_kwargs")[name]; }
  [[nodiscard]] std::string_view beginning_of_text() const noexcept { return beginning_of_text_; }

  [[nodiscard]] static std::string const& role_of(chat_field const& message) {
    return message.raw()["role"].text;
  }
  [[nodiscard]] static bool has_calls(chat_field const& message) {
    return message.raw()["tool_calls"].defined();
  }
  /// A text, empty where a message has calls alone.
  [[nodiscard]] static std::string_view content_of(chat_field const& message) {
    return message["content"].text_or("");
  }

  /// Does the row give this message the weight 0?
  [[nodiscard]] static bool is_left_out(chat_field const& message) {
    auto const weight = message["weight"];
    auto const& value = weight.raw();
    if (!value.defined()) {
      return false;
    }
    bool const zero = value.is_number() && !value.truthy();
    if (!zero && !(value.is_number() && (value.text == "1" || value.text == "1.0"))) {
      weight.refuse("expected 0 or 1, found ", value.is_number() ? value.text : value.type_name());
    }
    return zero;
  }

  [[noreturn]] void refuse_role(chat_field const& message, std::string_view expected) const {
    message["role"].refuse("the template has no role '", printable(role_of(message), 40), "' here; expected ",
                           expected);
  }
  /// For templates that would lose a thought without a word.
  void expect_no_thoughts() const {
    for (auto const& message : messages_) {
      if (auto const thought = message["reasoning_content"]; thought.truthy()) {
        thought.refuse("the template writes no thoughts; expected none");
      }
    }
  }

private:
  [[nodiscard]] chat_field field(std::string_view name) const {
    return {document_[name], concat(where_, ": ", printable(name, 60))};
  }

  static void unify(json_value& message, std::string const& where, bool parse_arguments) {
    if (!message.is_object()) {
      return;
    }
    drop_nulls(message);
    unify_thoughts(message, where);
    if (auto* const content = message.find("content");
        content != nullptr && content->is_array() && content->values.size() == 1 &&
        content->values[0]["type"].is_text("text") && content->values[0]["text"].is_text()) {
      auto text = std::move(*content->values[0].find("text"));
      *content = std::move(text);
    }
    if (auto* const calls = message.find("tool_calls"); calls != nullptr && calls->is_array()) {
      if (calls->values.empty()) {
        message.erase("tool_calls");
      } else if (parse_arguments) {
        for (std::size_t i = 0; i < calls->values.size(); ++i) {
          parse_arguments_of(calls->values[i], concat(where, ".tool_calls[", i, "]"));
        }
      }
    }
  }

  static void drop_nulls(json_value& object) {
    for (std::size_t i = object.values.size(); i-- > 0;) {
      if (object.values[i].is == json_value::type::null) {
        object.erase(std::string{object.names[i]});
      }
    }
  }

  static void unify_thoughts(json_value& message, std::string const& where) {
    json_value thought;
    for (auto const name : thought_names) {
      auto const& another = message[name];
      if (!thought.defined()) {
        thought = another;
      } else if (another.defined()) {
        expect(another.is == thought.is && another.text == thought.text, exit_code::bad_input, where, '.',
               name, ": another thought than under its other names; expected one thought a message");
      }
    }
    if (thought.defined()) {
      message.set("reasoning_content", thought);
      message.set("thinking", thought);
    }
  }

  static void parse_arguments_of(json_value& call, std::string where) {
    auto* const function = call.find("function");
    auto* const arguments = (function != nullptr ? *function : call).find("arguments");
    if (arguments != nullptr && arguments->is_text()) {
      where += function != nullptr ? ".function.arguments" : ".arguments";
      auto parsed = parse_json_value(arguments->text, where);
      expect(parsed.is_object(), exit_code::bad_input, where,
             ": expected an object, or a JSON object as text, found ", parsed.type_name());
      *arguments = std::move(parsed);
    }
  }

  static void check(chat_field const& message) {
    auto const named = message["role"];
    auto const& role = named.text();
    if (auto const meant = meant_role(role); !meant.empty()) {
      named.refuse("found '", printable(role, 40), "', expected '", meant, "'");
    }
    if (auto const calls = message["tool_calls"]; calls.defined()) {
      if (role != "assistant") {
        calls.refuse("expected in a message of the assistant only");
      }
      for (std::size_t i = 0; i < calls.array().size(); ++i) { static_cast<void>(calls[i].object()); }
    }
    if (auto const call = message["function_call"]; call.defined()) {
      call.refuse(
          "no template writes it; expected the call in tool_calls: [{\"type\": \"function\", "
          "\"function\": {\"name\": ..., \"arguments\": ...}}]");
    }
    if (auto const thought = message["reasoning_content"]; thought.defined()) {
      static_cast<void>(thought.text());
    }
    if (role == "assistant") {
      static_cast<void>(is_left_out(message));
    }
    check_content(message, role == "tool" || role == "ipython");
  }

  static void check_content(chat_field const& message, bool of_tool) {
    auto const content = message["content"];
    if (!content.defined() && !has_calls(message)) {
      content.refuse("expected ", of_tool ? "the tool's result" : "a text", ", found nothing");
    }
    if (content.raw().is_array() && !of_tool) {
      content.refuse("expected a text, found a list that is not one part of type 'text'");
    }
  }

  void read_tools() {
    auto const* const tools = document_.find(fields_.tools);
    if (tools == nullptr || tools->is == json_value::type::null ||
        (tools->is_array() && tools->values.empty())) {
      document_.erase(fields_.tools);
      return;
    }
    auto const list = field(fields_.tools);
    for (std::size_t i = 0; i < list.array().size(); ++i) { static_cast<void>(list[i].object()); }
  }

  void read_options(std::span<chat_option const> known) {
    auto* const options = document_.find("chat_template_kwargs");
    if (options == nullptr || options->is == json_value::type::null) {
      document_.erase("chat_template_kwargs");
      return;
    }
    drop_nulls(*options);
    auto const given = field("chat_template_kwargs");
    for (std::size_t i = 0; i < given.object().size(); ++i) {
      auto const found = std::ranges::find(known, given.raw().names[i], &chat_option::name);
      if (found == known.end()) {
        std::string list;
        for (auto const& option : known) { list += concat(list.empty() ? "" : ", ", option.name); }
        given[i].refuse("no option of this template; expected ", list.empty() ? "none" : list);
      }
      expect_type(given[i], found->is);
    }
  }

  static void expect_type(chat_field const& option, chat_option::type type) {
    switch (type) {
      case chat_option::type::truth:
        if (option.raw().is != json_value::type::boolean) {
          option.refuse("expected true or false, found ", option.raw().type_name());
        }
        break;
      case chat_option::type::text:
        static_cast<void>(option.text());
        break;
      case chat_option::type::number:
        if (!option.raw().is_number()) {
          option.refuse("expected a number, found ", option.raw().type_name());
        }
        break;
      case chat_option::type::list:
        static_cast<void>(option.array());
        break;
    }
  }

  json_value document_;
  std::string const& where_;
  chat_fields const& fields_;
  std::string_view beginning_of_text_;
  std::vector<chat_field> messages_;
};

/// The function that a call or a tool names: its member `function`, or itself.
SUPEROFFLOAD_INLINE chat_field function_of(chat_field const& call) {
  auto function = call["function"];
  return function.defined() ? function.object() : call;
}

/// A conversation while it is written.
class transcript {
public:
  template <class... Parts>
  void write(Parts const&... parts) {
    ((talk_.text += parts), ...);
  }
  void write_json(json_value const& value, std::size_t indent = 0) { append_json(talk_.text, value, indent); }

  /// The model writes what follows. An empty turn counts, too.
  void begin_turn(std::size_t message) {
    talk_.turns.push_back({static_cast<std::int32_t>(message), talk_.text.size(), 0});
  }
  void end_turn() { talk_.turns.back().end = talk_.text.size(); }
  /// A prefill that the generation prompt ends with is not written by the model.
  void end_turn(std::string_view prefill) {
    end_turn();
    auto& turn = talk_.turns.back();
    if (std::string_view{talk_.text}.substr(turn.begin, turn.end - turn.begin).starts_with(prefill)) {
      turn.begin += prefill.size();
    }
  }

  [[nodiscard]] conversation take() { return std::move(talk_); }

private:
  conversation talk_;
};

}  // namespace superoffload::text::detail
