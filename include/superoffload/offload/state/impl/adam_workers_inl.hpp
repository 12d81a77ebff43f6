// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/state/adam_workers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace superoffload::offload {

SUPEROFFLOAD_INLINE adam_workers::adam_workers(std::string const& pci_address, int threads,
                                               std::string const& resource_group)
    : adam_workers{cpu::read_topology(cpu::allowed_processors()), node_of_pci(pci_address), threads,
                   resource_group} {}

SUPEROFFLOAD_INLINE adam_workers::adam_workers(cpu::topology const& host, int node_of_device, int threads,
                                               std::string const& resource_group)
    : seat_{cpu::seat_near(host, node_of_device, threads)}, threads_{seat_.processors} {
  if (threads_.size() < threads) {
    note(concat("CPU Adam has ", threads_.size(), " threads instead of ", threads,
                ": there are no more processors"));
  }
  if (host.nodes.size() < 2) {
    seat_.node.reset();  // one node: nothing to bind
  }
  for (auto const& line : threads_.notes()) { note(line); }
  if (!resource_group.empty()) {
    if (auto line = cpu::join_resource_group(resource_group, threads_.thread_ids()); !line.empty()) {
      note(std::move(line));
    }
  }
}

SUPEROFFLOAD_INLINE cpu::state_memory adam_workers::memory(adam_workers* workers, memory_account& account,
                                                           std::size_t bytes) {
  cpu::state_memory memory{account, bytes, workers == nullptr ? std::nullopt : workers->node()};
  if (memory.refusal() != 0) {
    workers->note(concat("the memory of CPU Adam could not be bound to node ", *workers->node(), " (",
                         std::strerror(memory.refusal()),
                         "): it comes from the nodes of the threads that touch it first"));
  }
  return memory;
}

SUPEROFFLOAD_INLINE void adam_workers::each_piece(std::int64_t count, std::vector<segment> const& segments,
                                                  function_ref<void(segment const&)> work) {
  pieces_.reset(count);
  auto const share = [&](int thread, int) {
    if (listener_.self != nullptr) {
      listener_.begins(listener_.self, thread);
    }
    pieces_.each_piece(thread, [&](cpu::slice const& piece) {
      for (auto s : segments) {
        auto const begin = std::max(s.offset, piece.begin);
        auto const end = std::min(s.offset + s.count, piece.end);
        if (begin < end) {
          s.offset = begin;
          s.count = end - begin;
          work(s);
        }
      }
    });
    if (listener_.self != nullptr) {
      listener_.ends(listener_.self, thread);
    }
  };
  threads_.run(share, [this] {
    if (idle_callback_.self != nullptr) {
      idle_callback_.pass(idle_callback_.self);
    }
  });
}

}  // namespace superoffload::offload
