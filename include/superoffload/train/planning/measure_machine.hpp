// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/comm/single.hpp>
#include <superoffload/core/range.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/view.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/measure.hpp>
#include <superoffload/offload/settings.hpp>
#include <superoffload/train/planning/host_share.hpp>
#include <superoffload/train/planning/machine_file.hpp>
#include <superoffload/train/planning/measure_peers.hpp>
#include <superoffload/train/planning/step_plan.hpp>

#include <concepts>
#include <cstddef>
#include <vector>

namespace superoffload::train {

/// The sizes at which a machine is measured for such steps. `units`: of the optimizer state; `element_bytes`:
/// of a working weight.
offload::probe probe_of(model::config const& c, std::vector<autograd::unit_layout> const& units,
                        std::size_t element_bytes, step_shape const& shape, offload::settings const& s);

/// The machine that a run on `device` is planned for: this machine's memory and cores, with rates that are
/// measured at the sizes of the run, or those of the machine that `s.hardware` describes. All ranks of
/// `group` (null for a single rank) measure at the same time and get one answer: a rank's share of its host,
/// and the slowest rates.
template <element T, device_policy D, comm::communicator<D> Group>
offload::machine machine_for(D& device, model::as_view<D, T> const& model, step_shape const& shape,
                             offload::settings const& s, Group* group) {
  enter_range("measuring the machine");
  auto const ranks = comm::host_group_of(group);
  auto m = within_budget(share_of_host(ranks, offload::this_machine(device)), s);
  if (!s.hardware.empty()) {
    auto described = read_machine(s.hardware, ranks.ranks());
    described.device.memory = m.device.memory;
    described.device.reserve = m.device.reserve;
    described.device.is_the_host = m.device.is_the_host;
    described.host = m.host;
    return slowest_of(ranks, described);
  }
  auto const units = units_of_state(model.units(), shape);
  auto const p = probe_of(model.settings(), units, sizeof(T), shape, s);
  offload::measure_device<T>(device, p, m);
  if constexpr (!std::same_as<Group, comm::single_communicator<D>>) {
    if (ranks.ranks() > 1) {
      m.peers = measure_peers<T>(device, *group,
                                 {.shard = units[units.size() / 2].elements(),
                                  .rows = p.rows,
                                  .inner = p.inner,
                                  .columns = p.columns,
                                  .ranks_of_host = ranks_of_host(ranks)});
    }
  }
  // If device and host share one memory, nothing is offloaded unless the settings ask for it.
  bool const told = s.ratio.value_or(0.0) > 0.0 || s.offload_weights == offload::choice::on;
  if (shape.recompute == recompute::choice::offload ||
      (s.how != offload::mode::none && (told || !m.device.is_the_host))) {
    offload::measure_offloading<T>(device, p, m);
  }
  device.forget_peaks();
  return slowest_of(ranks, m);
}

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/planning/impl/measure_machine_inl.hpp>
#endif
