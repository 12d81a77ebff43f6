// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// Includes nlohmann/json, which is slow to compile. For implementations (impl/) and programs, never for a
// public header.
#include <superoffload/core/error.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>

namespace superoffload::io {

using json = nlohmann::json;

/// What nlohmann's parser found where a text stops being JSON, for messages.
inline std::string found_instead(std::string const& token, json::exception const& why) {
  return std::string_view{why.what()}.find("unexpected end of input") != std::string_view::npos
             ? "the end of the text"
             : concat("'", printable(token, 40), "'");
}

/// Limits that are checked before or while parsing, never after.
struct json_limits {
  std::size_t bytes = std::size_t{1} << 20;  ///< of the text
  int depth = 32;                            ///< levels of nested objects and arrays
  /// Limits the number of values, and so the document's memory, before it is built. Commas inside strings
  /// count, too.
  std::size_t commas = std::numeric_limits<std::size_t>::max();
};

/// Parses untrusted text: strict JSON and UTF-8, no duplicate keys at any level, within `limits`.
/// \throws error(bad_input) naming `origin`, the byte and what is wrong there.
json parse_json(std::string_view text, std::string const& origin, json_limits limits = {});

/// parse_json of a regular file. \throws error(bad_input) also when there is no such file or it is larger
/// than allowed.
json read_json(std::filesystem::path const& file, json_limits limits = {});

/// A value of a document together with its path, so that every error names file and field. It holds
/// references and must not outlive the document.
class json_field {
public:
  /// The whole document. `origin` is its name in messages, such as the path of a file.
  json_field(json const& document, std::string origin) : value_{&document}, origin_{std::move(origin)} {}

  [[nodiscard]] json const& raw() const noexcept { return *value_; }  ///< of any type, not checked
  /// The document's name in messages.
  [[nodiscard]] std::string const& origin() const noexcept { return origin_; }
  /// Document and field, as every message begins.
  [[nodiscard]] std::string where() const { return path_.empty() ? origin_ : concat(origin_, ": ", path_); }

  /// Whether the member `key` exists and is not null.
  [[nodiscard]] bool has(std::string const& key) const {
    require_object();
    auto const found = value_->find(key);
    return found != value_->end() && !found->is_null();
  }

  /// The member `key`. \throws error(bad_input) when this is not an object or has no such member.
  [[nodiscard]] json_field operator[](std::string const& key) const {
    require_object();
    auto const found = value_->find(key);
    expect(found != value_->end(), exit_code::bad_input, where(), ": field '", printable(key),
           "' is missing");
    return {*found, origin_, path_.empty() ? printable(key) : concat(path_, ".", printable(key))};
  }

  /// The element `index` of an array.
  [[nodiscard]] json_field operator[](std::size_t index) const {
    expect(value_->is_array() && index < value_->size(), exit_code::bad_input, where(),
           ": expected an array with more than ", index, " elements");
    return {(*value_)[index], origin_, concat(path_, "[", index, "]")};
  }

  /// The value, from `least` to `most`, both included. \throws error(bad_input) for any other
  [[nodiscard]] std::int64_t integer(std::int64_t least, std::int64_t most) const {
    bool const in_range = value_->is_number_unsigned()
                              ? value_->get<std::uint64_t>() <=
                                    static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                              : value_->is_number_integer();
    expect(in_range, exit_code::bad_input, where(), ": expected an integer, found ", shown());
    auto const number = value_->get<std::int64_t>();
    expect(least <= number && number <= most, exit_code::bad_input, where(), ": expected an integer from ",
           least, " to ", most, ", found ", number);
    return number;
  }

  /// An integer counts as a number; NaN and infinity do not. \throws error(bad_input) unless it is from
  /// `least` to `most`
  [[nodiscard]] double number(double least, double most) const {
    expect(value_->is_number(), exit_code::bad_input, where(), ": expected a number, found ", shown());
    auto const number = value_->get<double>();
    expect(std::isfinite(number) && least <= number && number <= most, exit_code::bad_input, where(),
           ": expected a number from ", least, " to ", most, ", found ", shown());
    return number;
  }

  /// \throws error(bad_input) for any other type; 0, 1 and null are not converted
  [[nodiscard]] bool boolean() const {
    expect(value_->is_boolean(), exit_code::bad_input, where(), ": expected true or false, found ", shown());
    return value_->get<bool>();
  }

  /// UTF-8, valid as long as the document. \throws error(bad_input) for any other type
  [[nodiscard]] std::string const& text() const {
    expect(value_->is_string(), exit_code::bad_input, where(), ": expected a string, found ", shown());
    return value_->get_ref<std::string const&>();
  }

  /// The value as quoted in messages.
  [[nodiscard]] std::string shown() const {
    return printable(value_->is_structured() ? std::string{value_->type_name()} : value_->dump(), 60);
  }

  /// @{
  /// \throws error(bad_input) for any other type
  void require_object() const {
    expect(value_->is_object(), exit_code::bad_input, where(), ": expected an object, found ", shown());
  }
  void require_array() const {
    expect(value_->is_array(), exit_code::bad_input, where(), ": expected an array, found ", shown());
  }
  /// @}

private:
  json_field(json const& value, std::string origin, std::string path)
      : value_{&value}, origin_{std::move(origin)}, path_{std::move(path)} {}

  json const* value_;
  std::string origin_;
  std::string path_;
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/json_inl.hpp>
#endif
