// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/cpu/pinned_threads.hpp>
#include <superoffload/cpu/resource_group.hpp>
#include <superoffload/cpu/topology.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// The threads of CPU Adam, each on a processor of its own near a device, and the memory node beside them.
class adam_workers {
public:
  /// `threads` of them, or as many as there are processors. `pci_address` of the device, empty where it has
  /// none. `resource_group` as for cpu::join_resource_group; empty: none.
  adam_workers(std::string const& pci_address, int threads, std::string const& resource_group)
      : adam_workers{cpu::read_topology(cpu::allowed_processors()), cpu::node_of_pci(pci_address), threads,
                     resource_group} {}
  adam_workers(cpu::topology const& host, int node_of_device, int threads, std::string const& resource_group)
      : seat_{cpu::seat_near(host, node_of_device, threads)}, threads_{seat_.processors} {
    if (threads_.size() < threads) {
      note(concat("CPU Adam has ", threads_.size(), " threads instead of ", threads,
                  ": there are no more processors"));
    }
    if (host.nodes.size() < 2) {
      seat_.node.reset();  // nothing to choose
    }
    for (auto const& line : threads_.notes()) { note(line); }
    if (!resource_group.empty()) {
      if (auto line = cpu::join_resource_group(resource_group, threads_.thread_ids()); !line.empty()) {
        note(std::move(line));
      }
    }
  }

  [[nodiscard]] cpu::pinned_threads& threads() noexcept { return threads_; }
  /// Where memory that they work on belongs; none where the host has one node only, or none is known.
  [[nodiscard]] std::optional<int> node() const noexcept { return seat_.node; }

  /// What is not as it was asked for, one line each. It changes speed, not results.
  [[nodiscard]] std::vector<std::string> const& notes() const noexcept { return notes_; }
  void note(std::string line) { notes_.push_back(std::move(line)); }

private:
  cpu::optimizer_seat seat_;
  cpu::pinned_threads threads_;
  std::vector<std::string> notes_;
};

}  // namespace superoffload::offload
