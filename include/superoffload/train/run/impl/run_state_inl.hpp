// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/train/run/run_state.hpp>

#include <algorithm>

namespace superoffload::train {

namespace detail {

SUPEROFFLOAD_INLINE io::json object_of(named_values const& values) {
  io::json object = io::json::object();
  for (auto const& [name, value] : values) { object[name] = value; }
  return object;
}

SUPEROFFLOAD_INLINE named_values values_of(io::json_field const& field) {
  field.require_object();
  named_values values;
  for (auto const& entry : field.raw().items()) {
    values.emplace_back(entry.key(), field[entry.key()].text());
  }
  return values;
}

SUPEROFFLOAD_INLINE std::string const* find(named_values const& values, std::string const& name) {
  auto const found =
      std::find_if(values.begin(), values.end(), [&](auto const& entry) { return entry.first == name; });
  return found == values.end() ? nullptr : &found->second;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string to_json(run_state const& state) {
  return io::json{{"step", state.step},
                  {"accepted_steps", state.accepted_steps},
                  {"skips_in_a_row", state.skips_in_a_row},
                  {"data_position", {{"epoch", state.where.epoch}, {"sequence", state.where.sequence}}},
                  {"best_eval_loss", state.best_eval_loss},
                  {"first_eval_loss", state.first_eval_loss},
                  {"hit_rate", state.hit_rate},
                  {"identity", detail::object_of(state.identity)},
                  {"settings", detail::object_of(state.settings)}}
      .dump();
}

SUPEROFFLOAD_INLINE run_state parse_run_state(std::string const& text, std::string const& origin) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  auto const document = io::parse_json(text, origin);
  io::json_field const root{document, origin};
  run_state state;
  state.step = root["step"].integer(0, most);
  state.accepted_steps = root["accepted_steps"].integer(0, state.step);
  state.skips_in_a_row = root["skips_in_a_row"].integer(0, state.step);
  state.where.epoch = root["data_position"]["epoch"].integer(0, most);
  state.where.sequence = root["data_position"]["sequence"].integer(0, most);
  state.best_eval_loss = root["best_eval_loss"].number(-1.0, 1e300);
  if (root.has("first_eval_loss")) {
    state.first_eval_loss = root["first_eval_loss"].number(-1.0, 1e300);
  }
  for (auto const* const name : {"acceptance", "hit_rate"}) {  // older checkpoints have the former, or none
    if (root.has(name)) {
      state.hit_rate = root[name].number(0.0, 1.0);
    }
  }
  state.identity = detail::values_of(root["identity"]);
  if (root.has("settings")) {
    state.settings = detail::values_of(root["settings"]);
  }
  return state;
}

SUPEROFFLOAD_INLINE std::string differences(named_values const& saved, named_values const& now) {
  std::string text;
  auto const add = [&](std::string const& name, std::string const* is, std::string const* was) {
    auto const shown = [](std::string const* value) {
      return value == nullptr ? std::string{"missing"} : concat("'", printable(*value, 80), "'");
    };
    bool const may_be_flag = name == "config.json's rope_scaling" ||
                             name == "config.json's rope_parameters" ||
                             name == "config.json's max_position_embeddings";
    text += concat(text.empty() ? "" : ", ", printable(name), may_be_flag ? " (--rope_scaling)" : "", " is ",
                   shown(is), " and was ", shown(was));
  };
  for (auto const& entry : now) {
    auto const* const was = detail::find(saved, entry.first);
    if (was == nullptr || *was != entry.second) {
      add(entry.first, &entry.second, was);
    }
  }
  for (auto const& entry : saved) {
    if (detail::find(now, entry.first) == nullptr) {
      add(entry.first, nullptr, &entry.second);
    }
  }
  return text;
}

SUPEROFFLOAD_INLINE bool have_same(named_values const& a, named_values const& b, std::string const& name) {
  auto const* const of_a = detail::find(a, name);
  auto const* const of_b = detail::find(b, name);
  return of_a != nullptr && of_b != nullptr && *of_a == *of_b;
}

SUPEROFFLOAD_INLINE void expect_same_identity(run_state const& saved, run_state const& now,
                                              std::string const& origin) {
  for (auto const& [name, value] : now.identity) {
    auto const* const was = detail::find(saved.identity, name);
    expect(was != nullptr, exit_code::bad_input, origin, ": does not say its '", name, "'");
    expect(*was == value, exit_code::bad_input, origin, ": was saved with ", name, " '", printable(*was),
           "', but this run has '", printable(value), "'; use the same, or start without --resume");
  }
}

}  // namespace superoffload::train
