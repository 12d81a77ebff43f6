// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/offload/placement.hpp>
#include <superoffload/train/offloading.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace superoffload::train {

offload::arrangement arrange(offload::settings const& settings, double ratio,
                             std::vector<autograd::unit_layout> const& units, std::size_t element_bytes,
                             bool immediate) {
  bool const speculates = settings.how != offload::mode::zero;
  offload::arrangement a;
  a.buckets = offload::buckets_of(units, settings.bucket_bytes / static_cast<std::int64_t>(element_bytes));
  offload::place_by_share(a.buckets, ratio, settings.streamed_share.value_or(0.0));
  auto const on_host = std::count_if(a.buckets.begin(), a.buckets.end(),
                                     [](auto const& b) { return b.where == offload::place::host; });
  // A kept gradient holds a slot until its step is committed; a third of the buckets are kept where CPU Adam
  // is the bottleneck, and what finds no slot is updated after the verdict.
  a.slots = 4 + (speculates && !immediate ? static_cast<int>(on_host / 3) : 0);
  a.stagings = 4;
  a.workers = cpu::optimizer_threads(settings.cpuadam_cores_perc, cpu::usable_cores());
  a.resource_group = settings.resource_group;
  a.speculates = speculates;
  a.immediate = speculates && immediate && on_host > 0;
  a.waits_for_all = settings.how == offload::mode::zero;
  return a;
}

std::string describe(offload::arrangement const& a) {
  double on_host = 0.0, streamed = 0.0, all = 0.0;
  for (auto const& b : a.buckets) {
    auto const count = static_cast<double>(b.count);
    all += count;
    on_host += b.where == offload::place::host ? count : 0.0;
    streamed += b.where == offload::place::streamed ? count : 0.0;
  }
  if (on_host + streamed == 0.0) {
    return {};
  }
  auto const percent = [all](double part) { return concat(std::lround(100.0 * part / all), " %"); };
  return concat(percent(on_host), " on the host, ", percent(streamed), " streamed, ",
                percent(all - on_host - streamed), " on the device; ", a.buckets.size(), " buckets, ",
                a.workers, a.workers == 1 ? " thread, " : " threads, ",
                a.waits_for_all ? "after the backward"
                : a.immediate   ? "as gradients come"
                                : "with speculation");
}

}  // namespace superoffload::train
