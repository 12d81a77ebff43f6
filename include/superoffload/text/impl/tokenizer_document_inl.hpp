// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/impl/json_builder_inl.hpp>
#include <superoffload/io/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace superoffload::text::detail {

inline constexpr std::int32_t most_tokens = 2'000'000;
inline constexpr std::size_t most_merges = 2'000'000;

struct string_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

using id_map = std::unordered_map<std::string, std::int32_t, string_hash, std::equal_to<>>;

/// Builds the document of a tokenizer.json without the members of model.vocab and model.merges, which are
/// nearly all of it: these go where they are needed, as values of a document would take most of the time.
class tokenizer_builder : public io::detail::strict_builder {
  using base = io::detail::strict_builder;

public:
  tokenizer_builder(io::json& document, std::string const& origin, int depth)
      : base{document, origin, depth}, origin_{origin} {}

  id_map ids;                                               ///< of model.vocab
  std::vector<std::pair<std::string, std::string>> merges;  ///< model.merges

  bool start_object(std::size_t elements) {
    if (inside_ != part::other) {
      refuse("object");
    }
    base::start_object(elements);
    ++level_;
    inside_ = at("vocab") ? part::vocabulary : part::other;
    return true;
  }
  bool end_object() {
    inside_ = part::other;
    --level_;
    return base::end_object();
  }
  bool start_array(std::size_t elements) {
    if (inside_ == part::merges && !in_merge_) {
      in_merge_ = true;
      merge_.clear();
      return true;
    }
    if (inside_ != part::other) {
      refuse("array");
    }
    base::start_array(elements);
    ++level_;
    inside_ = at("merges") ? part::merges : part::other;
    return true;
  }
  bool end_array() {
    if (in_merge_) {
      if (merge_.size() != 2) {
        refuse("array");
      }
      add_merge(std::move(merge_[0]), std::move(merge_[1]));
      in_merge_ = false;
      return true;
    }
    inside_ = part::other;
    --level_;
    return base::end_array();
  }
  bool key(io::json::string_t& name) {
    if (inside_ == part::vocabulary) {
      token_ = name;
      return true;
    }
    if (level_ >= 1 && level_ <= names_.size()) {
      names_[level_ - 1] = name;
    }
    return base::key(name);
  }
  bool string(io::json::string_t& text) {
    if (inside_ == part::merges) {
      add_merge_text(text);
      return true;
    }
    return inside_ == part::other ? base::string(text) : refuse(io::json(text).dump());
  }
  bool number_unsigned(io::json::number_unsigned_t number) {
    if (inside_ == part::vocabulary && number < static_cast<std::uint64_t>(most_tokens)) {
      expect_room(ids.size(), static_cast<std::size_t>(most_tokens), "vocab");
      if (!ids.emplace(token_, static_cast<std::int32_t>(number)).second) {
        fail(exit_code::bad_input, origin_, ": model.vocab: field '", printable(token_),
             "' appears twice in one object; expected each name once");
      }
      return true;
    }
    return inside_ == part::other ? base::number_unsigned(number) : refuse(std::to_string(number));
  }
  bool number_integer(io::json::number_integer_t number) {
    return inside_ == part::other ? base::number_integer(number) : refuse(std::to_string(number));
  }
  bool number_float(io::json::number_float_t number, std::string const& text) {
    return inside_ == part::other ? base::number_float(number, text) : refuse(text);
  }
  bool boolean(bool value) {
    return inside_ == part::other ? base::boolean(value) : refuse(value ? "true" : "false");
  }
  bool null() { return inside_ == part::other ? base::null() : refuse("null"); }

private:
  enum class part { other, vocabulary, merges };

  [[nodiscard]] bool at(std::string_view name) const {
    return level_ == 3 && names_[0] == "model" && names_[1] == name;
  }

  [[noreturn]] bool refuse(std::string_view found) const {
    if (inside_ == part::vocabulary) {
      fail(exit_code::bad_input, origin_, ": model.vocab.", printable(token_, 60),
           ": expected an integer from 0 to ", most_tokens - 1, ", found ", printable(found, 60));
    }
    fail(exit_code::bad_input, origin_, ": model.merges[", merges.size(),
         "]: expected two tokens as \"a b\" or [\"a\", \"b\"], found ",
         printable(in_merge_ ? "array" : found, 60));
  }

  void expect_room(std::size_t size, std::size_t most, std::string_view name) const {
    expect(size < most, exit_code::bad_input, origin_, ": model.", name, ": expected at most ", most,
           " entries");
  }

  void add_merge(std::string left, std::string right) {
    expect_room(merges.size(), most_merges, "merges");
    merges.emplace_back(std::move(left), std::move(right));
  }

  void add_merge_text(std::string const& text) {
    if (in_merge_) {
      if (merge_.size() == 2) {
        refuse("array");
      }
      merge_.push_back(text);
      return;
    }
    if (text.starts_with("#version")) {  // the first line of a merges.txt
      return;
    }
    auto const space = text.find(' ');
    if (space == text.npos || text.find(' ', space + 1) != text.npos) {
      refuse(io::json(text).dump());
    }
    add_merge(text.substr(0, space), text.substr(space + 1));
  }

  std::string const& origin_;
  std::size_t level_ = 0;
  std::array<std::string, 2> names_;  // of the members that are open on the first two levels
  part inside_ = part::other;
  bool in_merge_ = false;
  std::vector<std::string> merge_;
  std::string token_;
};

}  // namespace superoffload::text::detail
