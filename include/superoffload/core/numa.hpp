// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace superoffload {

/// The NUMA node of a PCI device such as "0000:1B:00.0" (CUDA's domains of eight digits too), -1 when the
/// host does not say. `sys` is the path of sysfs.
int node_of_pci(std::string_view id, std::string const& sys = "/sys");

/// The same; none where the host has only one node.
std::optional<int> node_beside(std::string_view id, std::string const& sys = "/sys");

/// Asks the system to take pages of [memory, memory + bytes), whole pages, from node `node` when they are
/// touched later, and from other nodes when it is full. Returns 0 or an error number. Containers often
/// refuse; pages then come from the node of the thread that touches them first.
int prefer_node(void* memory, std::size_t bytes, int node) noexcept;

}  // namespace superoffload

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/core/impl/numa_inl.hpp>
#endif
