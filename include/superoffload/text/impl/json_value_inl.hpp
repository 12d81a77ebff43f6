// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/impl/python_text_inl.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace superoffload::text::detail {

/// A JSON value as Python's json module reads it: members in the order given, integers of any length.
/// `undefined` is what is not there.
struct json_value {
  enum class type : std::uint8_t { undefined, null, boolean, integer, real, text, array, object };

  type is = type::undefined;
  bool truth = false;
  std::string text = {};                ///< a text's content; a number as Python writes it
  std::vector<std::string> names = {};  ///< of an object's members
  std::vector<json_value> values = {};  ///< the elements of an array, or an object's members

  [[nodiscard]] bool defined() const noexcept { return is != type::undefined; }
  [[nodiscard]] bool is_text() const noexcept { return is == type::text; }
  [[nodiscard]] bool is_array() const noexcept { return is == type::array; }
  [[nodiscard]] bool is_object() const noexcept { return is == type::object; }
  [[nodiscard]] bool is_text(std::string_view content) const noexcept {
    return is == type::text && text == content;
  }
  [[nodiscard]] bool is_number() const noexcept { return is == type::integer || is == type::real; }

  /// Python's bool().
  [[nodiscard]] bool truthy() const noexcept {
    switch (is) {
      case type::undefined:
      case type::null:
        return false;
      case type::boolean:
        return truth;
      case type::integer:
        return text != "0";
      case type::real:
        return text != "0.0" && text != "-0.0";
      case type::text:
        return !text.empty();
      case type::array:
      case type::object:
        break;
    }
    return !values.empty();
  }

  /// The member `name`, undefined if there is none or this is no object.
  [[nodiscard]] json_value const& operator[](std::string_view name) const noexcept {
    static json_value const nothing;
    auto const found = std::ranges::find(names, name);
    return found == names.end() ? nothing : values[static_cast<std::size_t>(found - names.begin())];
  }
  [[nodiscard]] json_value* find(std::string_view name) noexcept {
    auto const found = std::ranges::find(names, name);
    return found == names.end() ? nullptr : &values[static_cast<std::size_t>(found - names.begin())];
  }
  void erase(std::string_view name) {
    auto const found = std::ranges::find(names, name);
    if (found != names.end()) {
      values.erase(values.begin() + (found - names.begin()));
      names.erase(found);
    }
  }
  void set(std::string_view name, json_value value) {
    if (auto* const there = find(name)) {
      *there = std::move(value);
    } else {
      names.emplace_back(name);
      values.push_back(std::move(value));
    }
  }

  [[nodiscard]] std::string_view type_name() const noexcept {
    switch (is) {
      case type::undefined:
        return "nothing";
      case type::null:
        return "null";
      case type::boolean:
        return truth ? "true" : "false";
      case type::integer:
      case type::real:
        return "a number";
      case type::text:
        return "a text";
      case type::array:
        return "a list";
      case type::object:
        break;
    }
    return "an object";
  }
};

/// Limits of a row, checked while it is read.
inline constexpr std::size_t row_bytes = std::size_t{16} << 20;
inline constexpr std::size_t row_values = 1'000'000;
inline constexpr std::size_t row_depth = 32;

/// Receives the parser's events.
class json_value_builder {
public:
  json_value_builder(json_value& document, std::string const& where) : document_{document}, where_{where} {}

  bool null() { return add(json_value::type::null), true; }
  bool boolean(bool truth) { return add(json_value::type::boolean).truth = truth, true; }
  bool number_integer(std::int64_t number) {
    return add(json_value::type::integer).text = concat(number), true;
  }
  bool number_unsigned(std::uint64_t number) {
    return add(json_value::type::integer).text = concat(number), true;
  }
  bool number_float(double number, std::string const& written) {
    // The parser takes an integer of more than 64 bits for a float.
    bool const integer = written.find_first_not_of("-0123456789") == written.npos;
    auto& value = add(integer ? json_value::type::integer : json_value::type::real);
    return value.text = integer ? written : python_float(number), true;
  }
  bool string(std::string& content) { return add(json_value::type::text).text = std::move(content), true; }
  bool binary(std::vector<std::uint8_t>&) { return false; }
  bool start_object(std::size_t) {
    open(json_value::type::object);
    names_.emplace_back();
    return true;
  }
  bool key(std::string& name) {
    expect(names_.back().insert(name).second, exit_code::bad_input, where_, ": field '", printable(name, 60),
           "' appears twice in one object; expected each name once");
    open_.back()->names.push_back(std::move(name));
    return true;
  }
  bool end_object() {
    names_.pop_back();
    return end_array();
  }
  bool start_array(std::size_t) {
    open(json_value::type::array);
    return true;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, std::string const& token, io::json::exception const& why) {
    fail(exit_code::bad_input, where_, ": byte ", position, ": expected valid JSON in UTF-8, found ",
         io::found_instead(token, why));
  }

private:
  json_value& add(json_value::type type) {
    expect(++count_ <= row_values, exit_code::bad_input, where_, ": expected at most ", row_values,
           " JSON values");
    auto& value = open_.empty() ? document_ : open_.back()->values.emplace_back();
    value.is = type;
    return value;
  }
  void open(json_value::type type) {
    expect(open_.size() < row_depth, exit_code::bad_input, where_, ": nested deeper than ", row_depth,
           " levels; expected a flatter row");
    open_.push_back(&add(type));
  }

  json_value& document_;
  std::string const& where_;
  std::vector<json_value*> open_;  // each inside the last value of the one before: none moves while open
  std::vector<std::unordered_set<std::string>> names_;
  std::size_t count_ = 0;
};

/// Parses untrusted text: strict JSON and UTF-8, no name twice, within the limits of a row.
SUPEROFFLOAD_INLINE json_value parse_json_value(std::string_view text, std::string const& where) {
  expect(text.size() <= row_bytes, exit_code::bad_input, where, ": ", text.size(),
         " bytes of JSON, expected at most ", row_bytes);
  // The parser takes a zero byte for the end and would ignore the rest.
  auto const zero = text.find('\0');
  expect(zero == text.npos, exit_code::bad_input, where, ": byte ", zero + 1,
         ": expected valid JSON in UTF-8, found a zero byte");
  json_value document;
  json_value_builder builder{document, where};
  io::json::sax_parse(text.begin(), text.end(), &builder);
  return document;
}

/// The texts of a list, to look up: a hostile row may have many.
SUPEROFFLOAD_INLINE std::unordered_set<std::string_view> texts_of(json_value const& list) {
  std::unordered_set<std::string_view> texts;
  for (auto const& value : list.values) {
    if (value.is_text()) {
      texts.insert(value.text);
    }
  }
  return texts;
}

/// What Python's json.dumps(value, ensure_ascii=False, indent=indent) returns; no indent: in one line.
SUPEROFFLOAD_INLINE void append_json(std::string& out, json_value const& value, std::size_t indent = 0,
                                     std::size_t level = 0) {
  using type = json_value::type;
  if (value.is == type::text) {
    append_json_text(out, value.text);
  } else if (value.is == type::array || value.is == type::object) {
    bool const object = value.is == type::object;
    auto const new_line = [&](std::size_t depth) {
      if (indent > 0) {
        out += '\n';
        out.append(indent * depth, ' ');
      }
    };
    out += object ? '{' : '[';
    for (std::size_t i = 0; i < value.values.size(); ++i) {
      out += i == 0 ? "" : indent > 0 ? "," : ", ";
      new_line(level + 1);
      if (object) {
        append_json_text(out, value.names[i]);
        out += ": ";
      }
      append_json(out, value.values[i], indent, level + 1);
    }
    if (!value.values.empty()) {
      new_line(level);
    }
    out += object ? '}' : ']';
  } else {
    out += value.is == type::boolean ? (value.truth ? "true" : "false")
           : value.is_number()       ? std::string_view{value.text}
                                     : "null";
  }
}

SUPEROFFLOAD_INLINE std::string to_json(json_value const& value, std::size_t indent = 0) {
  std::string out;
  append_json(out, value, indent);
  return out;
}

/// What Python's repr() returns of the value.
SUPEROFFLOAD_INLINE void append_repr(std::string& out, json_value const& value) {
  using type = json_value::type;
  if (value.is == type::text) {
    append_python_repr(out, value.text);
  } else if (value.is == type::array || value.is == type::object) {
    bool const object = value.is == type::object;
    out += object ? '{' : '[';
    for (std::size_t i = 0; i < value.values.size(); ++i) {
      out += i == 0 ? "" : ", ";
      if (object) {
        append_python_repr(out, value.names[i]);
        out += ": ";
      }
      append_repr(out, value.values[i]);
    }
    out += object ? '}' : ']';
  } else {
    out += value.is == type::boolean ? (value.truth ? "True" : "False")
           : value.is_number()       ? std::string_view{value.text}
           : value.is == type::null  ? "None"
                                     : "";
  }
}

/// What Python's str() returns of the value, which is also what a template prints.
SUPEROFFLOAD_INLINE std::string to_python_text(json_value const& value) {
  if (value.is_text()) {
    return value.text;
  }
  std::string out;
  append_repr(out, value);
  return out;
}

}  // namespace superoffload::text::detail
