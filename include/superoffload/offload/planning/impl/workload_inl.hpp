// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/offload/planning/workload.hpp>

namespace superoffload::offload {

namespace detail {
SUPEROFFLOAD_INLINE double gemm_time(machine::device_part const& d, device_work const& f) {
  double const grouped = f.grouped > 0.0 ? f.grouped / d.grouped_gemms : 0.0;
  double const float8 = f.float8 > 0.0 ? f.float8 / d.float8_gemms : 0.0;
  return f.gemms / d.gemms + grouped + float8;
}
}  // namespace detail

SUPEROFFLOAD_INLINE double gemm_time(machine const& m, workload const& w, checkpointing_level const& level) {
  double seconds = 0.0;
  for (auto const& unit : w.units) {
    seconds += detail::gemm_time(m.device, unit.forward) + detail::gemm_time(m.device, unit.backward);
  }
  for (auto const& again : level.recompute) { seconds += detail::gemm_time(m.device, again); }
  return seconds;
}

SUPEROFFLOAD_INLINE std::vector<unit_time> unit_times(machine const& m, workload const& w,
                                                      checkpointing_level const& level) {
  auto const& d = m.device;
  auto const others = [&](device_work const& f) {
    double const exchanged = f.exchanged > 0.0 ? f.exchanged / m.peers.all_gather : 0.0;
    return detail::gemm_time(d, f) + f.bytes / d.bandwidth + exchanged;
  };
  auto const forward = [&](device_work const& f) { return others(f) + f.attention / d.attention_forward; };
  auto const backward = [&](device_work const& b) { return others(b) + b.attention / d.attention_backward; };
  std::vector<unit_time> times;
  for (std::size_t u = 0; u < w.units.size(); ++u) {
    auto const recompute = u < level.recompute.size() ? level.recompute[u] : device_work{};
    times.push_back({forward(w.units[u].forward), backward(w.units[u].backward) + forward(recompute)});
  }
  return times;
}

}  // namespace superoffload::offload
