// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/offload/planning/drawing.hpp>
#include <superoffload/train/planning/plan_file.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace superoffload::train {
namespace detail {

using ordered = nlohmann::ordered_json;

SUPEROFFLOAD_INLINE ordered bytes_of(offload::tier_bytes const& t, std::size_t available) {
  return {{"weights", t.weights},
          {"gradients", t.gradients},
          {"state", t.state},
          {"pinned_buffers", t.pinned_buffers},
          {"staging_buffers", t.staging_buffers},
          {"activations", t.activations},
          {"workspaces", t.workspaces},
          {"total", t.total()},
          {"available", available}};
}

/// Of the step that is shown: count and total time of each activity.
SUPEROFFLOAD_INLINE ordered activities_of(offload::timeline const& t) {
  std::array<std::pair<int, double>, offload::activities> sums{};
  for (auto const& i : t.intervals) {
    auto& [count, seconds] = sums[static_cast<std::size_t>(i.what)];
    ++count;
    seconds += i.end - i.begin;
  }
  auto all = ordered::object();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].first > 0) {
      all[offload::activity_names[i]] = {{"count", sums[i].first}, {"ms", 1e3 * sums[i].second}};
    }
  }
  return all;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string to_json(offload::plan const& p, std::string const& machine) {
  using offload::lane;
  auto const known = [&](double value) { return p.fits ? detail::ordered(value) : detail::ordered(nullptr); };
  auto const busy = [&](lane l) { return known(p.step.busy[static_cast<std::size_t>(l)]); };
  auto waits = detail::ordered::array();
  for (auto const seconds : p.step.waits) { waits.push_back(1e3 * seconds); }
  detail::ordered const json{
      {"fits", p.fits},
      {"refusal", p.fits ? detail::ordered(nullptr) : detail::ordered(p.refusal)},
      {"machine", machine},
      {"step_time_ms", known(1e3 * p.step_time)},
      {"bound_ms", known(1e3 * p.bound)},
      {"tokens_per_second", known(p.tokens_per_second)},
      {"model_tflops", known(1e-12 * p.model_flops_per_second)},
      {"recompute", p.recompute},
      {"tiers", {{"resident", p.resident}, {"host", p.host}, {"device_updated", p.device_updated}}},
      {"state", std::string{name_of(p.state.format)}},
      {"buckets", p.state.buckets.size()},
      {"pinned_buffers", p.state.pinned_buffers},
      {"staging_buffers", p.state.staging_buffers},
      {"cpu_adam_threads", p.state.workers},
      {"speculates", p.state.speculates},
      {"double_buffered", p.state.double_buffered},
      {"immediate", p.state.immediate},
      {"units_with_offloaded_weights", std::count_if(p.offloaded_weights.begin(), p.offloaded_weights.end(),
                                                     [](std::int64_t elements) { return elements > 0; })},
      {"units_with_sums_on_host", p.sums_on_host()},
      {"activation_buffers", p.state.activations.buffers},
      {"device_bytes", detail::bytes_of(p.on_device, p.device_available)},
      {"host_bytes", detail::bytes_of(p.on_host, p.host_available)},
      {"pinned_host_bytes", p.pinned},
      {"busy",
       {{"device", busy(lane::compute)},
        {"device_adam", busy(lane::device_adam)},
        {"link_down", busy(lane::down)},
        {"link_up", busy(lane::up)},
        {"cpu_adam", busy(lane::cpu)},
        {"collectives", busy(lane::collective)}}},
      {"collectives",
       {{"gather_buffers", p.whole_at_once()},
        {"weight_ranks", p.state.weight_ranks},
        {"sums_in_copies", p.state.sums_in_copies},
        {"bytes", known(p.exchanged)},
        {"ms", known(1e3 * p.collective_time)},
        {"waited_ms", known(1e3 * p.step.waited_for_ranks)}}},
      {"shared_micro_batches", {{"bytes", known(p.rows_exchanged)}, {"ms", known(1e3 * p.rows_time)}}},
      {"buckets_per_step",
       {{"speculated", known(p.step.speculated)},
        {"committed", known(p.step.committed)},
        {"updated", known(p.step.updated)},
        {"resent", known(p.step.resent)}}},
      {"waits_ms", std::move(waits)},
      {"activities", detail::activities_of(p.step)},
  };
  return json.dump(2) + "\n";
}

SUPEROFFLOAD_INLINE void write_plan(offload::plan const& p, std::string const& machine,
                                    offload::settings const& s) {
  if (!s.plan.empty()) {
    io::replace_file(s.plan, to_json(p, machine));
  }
  if (!s.timeline.empty() && p.fits) {
    io::replace_file(s.timeline, offload::draw(p.step, "a step on " + machine));
  }
}

}  // namespace superoffload::train
