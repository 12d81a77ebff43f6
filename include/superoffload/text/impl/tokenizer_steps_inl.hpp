// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/text/impl/charsmap_inl.hpp>
#include <superoffload/text/normalizer.hpp>
#include <superoffload/text/pre_tokenizer.hpp>
#include <superoffload/text/token_decoder.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::text::detail {

using io::json_field;

inline constexpr std::size_t most_steps = 100;
inline constexpr std::size_t longest_step_text = 1024;

SUPEROFFLOAD_INLINE bool flag(json_field const& object, std::string const& key, bool otherwise = false) {
  return object.has(key) ? object[key].boolean() : otherwise;
}

[[noreturn]] SUPEROFFLOAD_INLINE void refuse(json_field const& field, std::string_view expectation) {
  fail(exit_code::bad_input, field.where(), ": expected ", expectation, ", found ", field.shown());
}

[[noreturn]] SUPEROFFLOAD_INLINE void refuse_type(json_field const& component, std::string_view supported) {
  fail(exit_code::bad_input, component.where(), ".type: '", printable(component["type"].text()),
       "' is not supported; expected ", supported);
}

/// Calls `visit(component, type)` for `field`, or, if it is a sequence, for its components.
template <class Visit>
void for_each_component(json_field const& field, std::string const& list, Visit visit) {
  auto const type = field["type"].text();
  if (type != "Sequence") {
    visit(field, type);
    return;
  }
  auto const components = field[list];
  components.require_array();
  for (std::size_t i = 0; i < components.raw().size(); ++i) {
    for_each_component(components[i], list, visit);
  }
}

/// A text of a step: content, replacement and so on.
SUPEROFFLOAD_INLINE std::string step_text(json_field const& field) {
  auto const& text = field.text();
  expect(text.size() <= longest_step_text, exit_code::bad_input, field.where(), ": ", text.size(),
         " bytes, expected at most ", longest_step_text);
  return text;
}

SUPEROFFLOAD_INLINE std::string one_character(json_field const& field) {
  auto const& text = field.text();
  if (text.empty() || first_step(text).length != text.size()) {
    refuse(field, "one character");
  }
  return text;
}

template <class Steps>
void expect_few(Steps const& steps, json_field const& owner) {
  expect(steps.size() <= most_steps, exit_code::bad_input, owner.where(), ": expected at most ", most_steps,
         " steps");
}

/// {"String": ...} or {"Regex": ...}
SUPEROFFLOAD_INLINE regular_expression read_pattern(json_field const& field) {
  if (field.has("String")) {
    auto const text = field["String"];
    return literal_expression(step_text(text), text.where());
  }
  auto const regex = field["Regex"];
  return {regex.text(), regex.where()};
}

// --- normalizer
// --------------------------------------------------------------------------------------------------

SUPEROFFLOAD_INLINE charsmap read_charsmap(json_field const& field) {
  auto const& text = field.text();
  auto const blob = text.size() <= longest_charsmap / 3 * 4 + 4 ? from_base64(text) : std::nullopt;
  expect(blob.has_value(), exit_code::bad_input, field.where(), ": a text of ", text.size(),
         " bytes; expected Base64 of at most ", longest_charsmap, " bytes");
  return charsmap{*blob, field.where()};
}

SUPEROFFLOAD_INLINE normalizer_step read_normalizer_step(json_field const& component,
                                                         std::string const& type) {
  constexpr std::array<std::pair<std::string_view, normalization_form>, 4> forms{
      {{"NFC", normalization_form::nfc},
       {"NFD", normalization_form::nfd},
       {"NFKC", normalization_form::nfkc},
       {"NFKD", normalization_form::nfkd}}};
  for (auto const& [name, form] : forms) {
    if (type == name) {
      return form;
    }
  }
  if (type == "Lowercase") {
    return lowercase_step{};
  }
  if (type == "Strip") {
    return strip_step{component["strip_left"].boolean(), component["strip_right"].boolean()};
  }
  if (type == "Prepend") {
    return prepend_step{step_text(component["prepend"])};
  }
  if (type == "Replace") {
    auto pattern = read_pattern(component["pattern"]);
    if (pattern.may_be_empty()) {  // Hugging Face tokenizers fails on such texts, or makes nonsense of them
      refuse(component["pattern"]["Regex"], "a pattern that matches at least one character");
    }
    return replace_step{std::move(pattern), step_text(component["content"])};
  }
  if (type == "StripAccents") {
    return strip_accents_step{};
  }
  if (type == "Nmt") {
    return nmt_step{};
  }
  if (type == "ByteLevel") {
    return letters_step{};
  }
  if (type == "Precompiled") {
    return precompiled_step{read_charsmap(component["precompiled_charsmap"])};
  }
  refuse_type(
      component,
      "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, ByteLevel, Precompiled, Prepend, Replace, "
      "or a Sequence of them");
}

SUPEROFFLOAD_INLINE normalizer read_normalizer(json_field const& document) {
  std::vector<normalizer_step> steps;
  if (document.has("normalizer")) {
    for_each_component(document["normalizer"], "normalizers",
                       [&](json_field const& component, std::string const& type) {
                         steps.push_back(read_normalizer_step(component, type));
                         expect_few(steps, document["normalizer"]);
                       });
  }
  return normalizer{std::move(steps)};
}

// --- pre-tokenizer
// -----------------------------------------------------------------------------------------------

SUPEROFFLOAD_INLINE split_behavior read_behavior(json_field const& field) {
  constexpr std::array<std::pair<std::string_view, split_behavior>, 5> known{
      {{"Isolated", split_behavior::isolated},
       {"Removed", split_behavior::removed},
       {"MergedWithPrevious", split_behavior::merged_with_previous},
       {"MergedWithNext", split_behavior::merged_with_next},
       {"Contiguous", split_behavior::contiguous}}};
  auto const found = std::ranges::find(known, std::string_view{field.text()},
                                       &std::pair<std::string_view, split_behavior>::first);
  if (found == known.end()) {
    refuse(field, "Isolated, Removed, MergedWithPrevious, MergedWithNext or Contiguous");
  }
  return found->second;
}

SUPEROFFLOAD_INLINE split_step read_split(json_field const& component) {
  auto const pattern = component["pattern"];
  auto const behavior = read_behavior(component["behavior"]);
  bool const invert = component["invert"].boolean();
  if (pattern.has("Regex")) {
    // Known patterns have a scanner of their own. They match everything, so nothing lies between matches.
    auto const regex = pattern["Regex"];
    if (split_pattern::knows(regex.text())) {
      return {split_pattern{regex.text(), regex.where()}, behavior, invert};
    }
  }
  return {read_pattern(pattern), behavior, invert};
}

SUPEROFFLOAD_INLINE metaspace_step read_metaspace(json_field const& component) {
  metaspace_step step{.replacement = one_character(component["replacement"])};
  if (component.has("prepend_scheme")) {
    auto const scheme = component["prepend_scheme"];
    if (scheme.text() == "never") {
      step.scheme = metaspace_step::prepend::never;
    } else if (scheme.text() == "first") {
      step.scheme = metaspace_step::prepend::first;
    } else if (scheme.text() != "always") {
      refuse(scheme, "always, first or never");
    }
  }
  if (component.has("add_prefix_space") && !component["add_prefix_space"].boolean() &&
      step.scheme != metaspace_step::prepend::never) {
    refuse(component["add_prefix_space"], "true, or \"prepend_scheme\": \"never\"");
  }
  step.split = flag(component, "split", true);
  return step;
}

SUPEROFFLOAD_INLINE void read_byte_level(json_field const& component,
                                         std::vector<pre_tokenizer_step>& steps) {
  if (flag(component, "add_prefix_space", true)) {
    steps.emplace_back(prefix_space_step{});
  }
  if (flag(component, "use_regex", true)) {
    static regular_expression const gpt2{
        R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", "ByteLevel"};
    steps.emplace_back(split_step{gpt2});
  }
}

/// The steps of a component; \return whether it is ByteLevel
SUPEROFFLOAD_INLINE bool read_pre_tokenizer_step(json_field const& component, std::string const& type,
                                                 std::vector<pre_tokenizer_step>& steps) {
  auto const behavior = [&] {
    return component.has("behavior") ? read_behavior(component["behavior"]) : split_behavior::isolated;
  };
  if (type == "ByteLevel") {
    read_byte_level(component, steps);
    return true;
  }
  if (type == "Split") {
    steps.emplace_back(read_split(component));
  } else if (type == "Metaspace") {
    steps.emplace_back(read_metaspace(component));
  } else if (type == "Digits") {
    steps.emplace_back(split_step{split_class::digit, component["individual_digits"].boolean()
                                                          ? split_behavior::isolated
                                                          : split_behavior::contiguous});
  } else if (type == "Punctuation") {
    steps.emplace_back(split_step{split_class::punctuation, behavior()});
  } else if (type == "Whitespace") {
    steps.emplace_back(split_step{split_class::word_run, split_behavior::removed, true});
  } else if (type == "WhitespaceSplit" || type == "BertPreTokenizer") {
    steps.emplace_back(split_step{split_class::white_space, split_behavior::removed});
    if (type == "BertPreTokenizer") {
      steps.emplace_back(split_step{split_class::punctuation, split_behavior::isolated});
    }
  } else if (type == "CharDelimiterSplit") {
    auto const delimiter = component["delimiter"];
    steps.emplace_back(
        split_step{literal_expression(one_character(delimiter), delimiter.where()), split_behavior::removed});
  } else {
    refuse_type(
        component,
        "ByteLevel, Metaspace, Split, Digits, Punctuation, Whitespace, WhitespaceSplit, BertPreTokenizer, "
        "CharDelimiterSplit, or a Sequence of them");
  }
  return false;
}

/// \param letters whether the model needs text, so that bytes become letters of the byte alphabet
SUPEROFFLOAD_INLINE pre_tokenizer read_pre_tokenizer(json_field const& document, bool letters) {
  std::vector<pre_tokenizer_step> steps;
  bool byte_level = false;
  if (document.has("pre_tokenizer")) {
    for_each_component(document["pre_tokenizer"], "pretokenizers",
                       [&](json_field const& component, std::string const& type) {
                         if (byte_level) {
                           steps.emplace_back(byte_alphabet_step{});
                         }
                         byte_level = read_pre_tokenizer_step(component, type, steps);
                         expect_few(steps, document["pre_tokenizer"]);
                       });
  }
  if (byte_level && letters) {
    steps.emplace_back(byte_alphabet_step{});
  }
  return {std::move(steps), byte_level && !letters};
}

// --- decoder
// -----------------------------------------------------------------------------------------------------

SUPEROFFLOAD_INLINE decoding_step read_decoding_step(json_field const& component, std::string const& type) {
  if (type == "ByteLevel") {
    return byte_level_decoding{};
  }
  if (type == "ByteFallback") {
    return byte_fallback_decoding{};
  }
  if (type == "Fuse") {
    return fuse_decoding{};
  }
  if (type == "Replace") {
    auto const pattern = component["pattern"]["String"];
    if (pattern.text().empty()) {
      refuse(pattern, "a text that is not empty");
    }
    return replace_decoding{step_text(pattern), step_text(component["content"])};
  }
  if (type == "Strip") {
    return strip_decoding{one_character(component["content"]),
                          static_cast<std::size_t>(component["start"].integer(0, 1'000'000)),
                          static_cast<std::size_t>(component["stop"].integer(0, 1'000'000))};
  }
  if (type == "BPEDecoder") {
    return suffix_decoding{step_text(component["suffix"])};
  }
  if (type == "Metaspace") {
    auto const step = read_metaspace(component);
    return metaspace_decoding{step.replacement, step.scheme != metaspace_step::prepend::never};
  }
  refuse_type(component,
              "ByteLevel, ByteFallback, Fuse, Metaspace, Replace, Strip, BPEDecoder, or a Sequence of them");
}

SUPEROFFLOAD_INLINE token_decoder read_decoder(json_field const& document) {
  if (!document.has("decoder")) {
    return {};
  }
  std::vector<decoding_step> steps;
  for_each_component(document["decoder"], "decoders",
                     [&](json_field const& component, std::string const& type) {
                       steps.push_back(read_decoding_step(component, type));
                       expect_few(steps, document["decoder"]);
                     });
  return token_decoder{std::move(steps)};
}

}  // namespace superoffload::text::detail
