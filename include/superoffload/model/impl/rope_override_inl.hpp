// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/impl/config_inl.hpp>
#include <superoffload/model/rope_override.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>
#include <utility>

namespace superoffload::model {
namespace detail {

inline constexpr char const* rope_flag = "--rope_scaling";
inline constexpr char const* original_key = "original_max_position_embeddings";
inline constexpr double largest_factor = 1e6;

SUPEROFFLOAD_INLINE std::string type_of(std::optional<json_field> const& rope) {
  return rope ? rope_type_in(*rope) : "default";
}

/// TYPE:FACTOR.
SUPEROFFLOAD_INLINE io::json short_scaling(std::string_view scaling, std::optional<json_field> const& now) {
  auto const colon = std::min(scaling.find(':'), scaling.size());
  std::string const type{scaling.substr(0, colon)};
  auto const number = scaling.substr(std::min(colon + 1, scaling.size()));
  double factor = 0.0;
  auto const read = std::from_chars(number.data(), number.data() + number.size(), factor);
  bool const is_known = type == "yarn" || type == "linear" || type == "llama3";
  expect(is_known && read.ec == std::errc{} && read.ptr == number.data() + number.size() && factor >= 1.0 &&
             factor <= largest_factor,
         exit_code::bad_input, rope_flag, " is '", printable(scaling, 80),
         "', expected yarn:FACTOR, linear:FACTOR or llama3:FACTOR with a factor from 1 to ", largest_factor,
         ", or a JSON object as config.json's rope_scaling");
  auto const existing = type_of(now);
  if (type == existing) {
    auto object = now->raw();
    object["factor"] = factor;
    object.erase("attention_factor");  // of the other factor
    return object;
  }
  bool const may_change = existing == "yarn" || existing == "linear" || existing == "llama3";
  expect(existing == "default" && type != "llama3", exit_code::bad_input, rope_flag, " is ",
         printable(scaling, 80), ", but the model's rope scaling is '", printable(existing, 40),
         "'; expected ",
         existing == "default" ? "yarn:FACTOR, linear:FACTOR or "
         : may_change          ? concat(existing, ":FACTOR or ")
                               : "",
         "a JSON object, which replaces it");
  return {{"rope_type", type}, {"factor", factor}};
}

/// The object of rope_scaling that `scaling` stands for.
SUPEROFFLOAD_INLINE io::json scaling_object(std::string_view scaling, std::optional<json_field> const& now) {
  auto const first = std::min(scaling.find_first_not_of(" \t\r\n"), scaling.size());
  bool const is_object = scaling.substr(first).starts_with('{');
  auto object = is_object ? io::parse_json(scaling, rope_flag) : short_scaling(scaling, now);
  json_field const given{object, rope_flag};
  expect(given.has("rope_type") || given.has("type"), exit_code::bad_input, rope_flag,
         ": field 'rope_type' is missing");
  for (auto const* const key : {"rope_theta", "partial_rotary_factor"}) {  // of the model, not of the scaling
    if (now && now->has(key) && !given.has(key)) {
      object[key] = (*now)[key].raw();
    }
  }
  return object;
}

/// What a scaling cannot be combined with.
SUPEROFFLOAD_INLINE void check_override(json_field const& rope, json_field const& document,
                                        std::optional<json_field> const& now) {
  auto const type = rope_type_in(rope);
  expect(type == "longrope" || type == "default" || document["model_type"].raw() != "phi3",
         exit_code::bad_input, rope_flag, ": rope scaling '", printable(type, 40),
         "' is not supported for model_type 'phi3', expected 'longrope' with short_factor and long_factor");
  if (now) {
    refuse_layer_types(*now);
  }
  if (rope.has(original_key) && document.has(original_key)) {
    auto const& original = rope[original_key].raw();
    bool const is_models = now && now->has(original_key) && original == (*now)[original_key].raw();
    expect(is_models || original == document[original_key].raw(), exit_code::bad_input, rope_flag,
           ": field '", original_key, "' is ", rope[original_key].shown(), ", but config.json has ",
           document[original_key].shown(), " beside its rope scaling, which wins; expected the same");
  }
  expect(type != "llama3" || rope.has(original_key) || document.has(original_key), exit_code::bad_input,
         rope_flag, ": field '", original_key, "' is missing, which llama3 needs");
}

/// The positions that a scaling allows, of a model that has `positions`.
SUPEROFFLOAD_INLINE std::int64_t positions_with(json_field const& rope, json_field const& document,
                                                std::optional<json_field> const& now, std::int64_t positions,
                                                std::int64_t wanted) {
  auto const type = rope_type_in(rope);
  bool const is_same = type == type_of(now);
  auto const reach = [&](json_field const& of) {
    double const factor = of["factor"].number(1.0, largest_factor);
    return type == "linear" ? factor
                            : factor * static_cast<double>(original_positions(document, of, positions));
  };
  auto allowed = static_cast<double>(positions);
  if (type == "yarn" && rope.has("factor")) {
    allowed = reach(rope);
  } else if (type == "linear" || (type == "llama3" && is_same)) {
    allowed *= reach(rope) / (is_same ? reach(*now) : 1.0);
  } else if (type == "longrope" || type == "llama3") {
    allowed = std::max(allowed, static_cast<double>(wanted));
  }
  return static_cast<std::int64_t>(std::min(allowed, static_cast<double>(most_positions)));
}

}  // namespace detail

SUPEROFFLOAD_INLINE io::config_fields rope_fields(io::model_directory const& directory,
                                                  std::string_view scaling, std::int64_t wanted) {
  auto const text = detail::config_document(directory);
  detail::json_field const document{text, directory.config_name()};
  auto const now = detail::rope_settings(document);
  auto object = detail::scaling_object(scaling, now);
  detail::json_field const rope{object, detail::rope_flag};
  detail::check_override(rope, document, now);
  auto const positions = document["max_position_embeddings"].integer(1, detail::most_positions);
  auto const allowed = detail::positions_with(rope, document, now, positions, wanted);
  if (detail::rope_type_in(rope) == "yarn") {  // else, it would be the new max_position_embeddings
    object[detail::original_key] = detail::original_positions(document, rope, positions);
  }
  // The name that wins in the file. Only transformers 5 knows rope_parameters.
  bool const is_new =
      now && document.has("rope_parameters") && &now->raw() == &document["rope_parameters"].raw();
  io::json fields;
  fields[is_new ? "rope_parameters" : "rope_scaling"] = std::move(object);
  if (allowed != positions) {
    fields["max_position_embeddings"] = allowed;
  }
  return {fields.dump(), detail::rope_flag};
}

}  // namespace superoffload::model
