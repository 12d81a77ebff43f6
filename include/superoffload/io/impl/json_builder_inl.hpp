// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace superoffload::io {
namespace detail {

/// Builds the document and enforces what nlohmann's own builder does not: depth and unique keys.
class strict_builder : public nlohmann::detail::json_sax_dom_parser<json> {
  using base = nlohmann::detail::json_sax_dom_parser<json>;

public:
  strict_builder(json& document, std::string const& origin, int depth)
      : base{document, false}, origin_{origin}, depth_{depth} {}

  bool start_object(std::size_t elements) {
    enter();
    keys_.emplace_back();
    return base::start_object(elements);
  }
  bool end_object() {
    keys_.pop_back();
    --level_;
    return base::end_object();
  }
  bool start_array(std::size_t elements) {
    enter();
    return base::start_array(elements);
  }
  bool end_array() {
    --level_;
    return base::end_array();
  }
  bool key(json::string_t& name) {
    expect(keys_.back().insert(name).second, exit_code::bad_input, origin_, ": field '", printable(name),
           "' appears twice in one object; expected each name once");
    return base::key(name);
  }
  bool parse_error(std::size_t position, std::string const& token, json::exception const& why) {
    fail(exit_code::bad_input, origin_, ": byte ", position, ": expected valid JSON in UTF-8, found ",
         found_instead(token, why));
  }

private:
  void enter() {
    expect(++level_ <= depth_, exit_code::bad_input, origin_, ": nested deeper than ", depth_,
           " levels; expected a flatter document");
  }

  std::string const& origin_;
  int depth_;
  int level_ = 0;
  std::vector<std::unordered_set<std::string>> keys_;
};

/// Gives the values of a text to a strict_builder, or to a class that derives from it.
template <class Builder>
void parse_into(Builder& builder, std::string_view text, std::string const& origin, json_limits limits) {
  expect(text.size() <= limits.bytes, exit_code::bad_input, origin, ": ", text.size(),
         " bytes of JSON, expected at most ", limits.bytes);
  auto const commas = static_cast<std::size_t>(std::ranges::count(text, ','));
  expect(commas <= limits.commas, exit_code::bad_input, origin, ": ", commas, " commas, expected at most ",
         limits.commas);
  // nlohmann takes a zero byte for the end and would ignore the rest.
  auto const zero = text.find('\0');
  expect(zero == text.npos, exit_code::bad_input, origin, ": byte ", zero + 1,
         ": expected valid JSON in UTF-8, found a zero byte");
  json::sax_parse(text.begin(), text.end(), &builder);
}

}  // namespace detail

}  // namespace superoffload::io
