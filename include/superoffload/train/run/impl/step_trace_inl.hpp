// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/train/run/step_trace.hpp>

namespace superoffload::train {
namespace detail {

using ordered = nlohmann::ordered_json;

SUPEROFFLOAD_INLINE ordered name_of_row(int row, std::string const& name) {
  return {{"ph", "M"}, {"name", "thread_name"}, {"pid", 1}, {"tid", row}, {"args", {{"name", name}}}};
}
SUPEROFFLOAD_INLINE ordered position_of_row(int row) {
  return {
      {"ph", "M"}, {"name", "thread_sort_index"}, {"pid", 1}, {"tid", row}, {"args", {{"sort_index", row}}}};
}
SUPEROFFLOAD_INLINE ordered slice(int row, std::string const& name, double begin, double end) {
  return {{"ph", "X"},  {"name", name},      {"pid", 1},
          {"tid", row}, {"ts", 1e6 * begin}, {"dur", 1e6 * (end - begin)}};
}

}  // namespace detail

SUPEROFFLOAD_INLINE void step_trace::add(std::int64_t step, recording seen) {
  steps_.push_back({step, std::move(seen)});
}

SUPEROFFLOAD_INLINE std::string step_trace::json(std::vector<track> const& tracks) const {
  auto events = detail::ordered::array();
  events.push_back(detail::name_of_row(0, "steps"));
  events.push_back(detail::position_of_row(0));
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    auto const row = static_cast<int>(i) + 1;
    events.push_back(detail::name_of_row(row, tracks[i].name));
    events.push_back(detail::position_of_row(row));
  }
  auto const add = [&](span const& s) {
    events.push_back(
        detail::slice(s.track + 1, concat(s.what, units_[static_cast<std::size_t>(s.unit)]), s.begin, s.end));
  };
  for (auto const& step : steps_) {
    events.push_back(detail::slice(0, concat("step ", step.number), step.seen.begin, step.seen.end));
    for (auto const& s : step.seen.spans) { add(s); }
  }
  if (!steps_.empty()) {
    for (auto const& s : steps_.back().seen.going_on) { add(s); }
  }
  return detail::ordered{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events)}}.dump() + "\n";
}

}  // namespace superoffload::train
