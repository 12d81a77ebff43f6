// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/json.hpp>
#include <superoffload/train/run_state.hpp>

#include <algorithm>

namespace superoffload::train {

std::string to_json(run_state const& state) {
  io::json identity = io::json::object();
  for (auto const& [name, value] : state.identity) { identity[name] = value; }
  return io::json{{"step", state.step},
                  {"accepted_steps", state.accepted_steps},
                  {"skips_in_a_row", state.skips_in_a_row},
                  {"data_position", {{"epoch", state.where.epoch}, {"sequence", state.where.sequence}}},
                  {"best_eval_loss", state.best_eval_loss},
                  {"acceptance", state.acceptance},
                  {"identity", identity}}
      .dump();
}

run_state parse_run_state(std::string const& text, std::string const& origin) {
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
  if (root.has("acceptance")) {  // older ones have none
    state.acceptance = root["acceptance"].number(0.0, 1.0);
  }
  auto const identity = root["identity"];
  identity.require_object();
  for (auto const& [name, value] : identity.raw().items()) {
    state.identity.emplace_back(name, identity[name].text());
  }
  return state;
}

void expect_same_identity(run_state const& saved, run_state const& now, std::string const& origin) {
  for (auto const& own : now.identity) {
    auto const& [name, value] = own;
    auto const found = std::find_if(saved.identity.begin(), saved.identity.end(),
                                    [&](auto const& entry) { return entry.first == own.first; });
    expect(found != saved.identity.end(), exit_code::bad_input, origin, ": does not say its '", name, "'");
    expect(found->second == value, exit_code::bad_input, origin, ": was saved with ", name, " '",
           printable(found->second), "', but this run has '", printable(value),
           "'; use the same, or start without --resume");
  }
}

}  // namespace superoffload::train
