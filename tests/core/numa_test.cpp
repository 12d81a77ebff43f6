// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/numa.hpp>
#include <superoffload/core/pinned_memory.hpp>

#include <doctest/doctest.h>

#include "support/fake_sys.hpp"

#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using test::fake_sys;

TEST_CASE("the node of a PCI device") {
  fake_sys const sys;
  sys.write("bus/pci/devices/0000:1b:00.0/numa_node", "1");
  sys.write("bus/pci/devices/0000:1c:00.0/numa_node", "-1");
  CHECK(node_of_pci("0000:1b:00.0", sys.root()) == 1);
  CHECK(node_of_pci("00000000:1B:00.0", sys.root()) == 1);
  CHECK(node_of_pci("0000:1c:00.0", sys.root()) == -1);
  CHECK(node_of_pci("0000:ff:00.0", sys.root()) == -1);
  CHECK(node_of_pci("../../../etc", sys.root()) == -1);
  CHECK(node_of_pci("", sys.root()) == -1);
}

TEST_CASE("memory goes to a device's node if the host has several nodes and names it") {
  fake_sys const sys;
  sys.write("bus/pci/devices/0000:1b:00.0/numa_node", "1");
  sys.write("bus/pci/devices/0000:1c:00.0/numa_node", "-1");
  CHECK(node_beside("0000:1b:00.0", sys.root()) == std::nullopt);
  for (char const* online : {"0", "0-1", "0,8"}) {
    sys.write("devices/system/node/online", online);
    CHECK(node_beside("0000:1b:00.0", sys.root()) == (online[1] == '\0' ? std::nullopt : std::optional{1}));
    CHECK(node_beside("0000:1c:00.0", sys.root()) == std::nullopt);
  }
}

/// Locks everything.
struct willing {
  static bool lock(void*, std::size_t) { return true; }
  static void unlock(void*) {}
  static void* allocate(std::size_t) { return nullptr; }
  static void release(void*) {}
};

std::vector<std::string> said;
void listen(std::string const& line) { said.push_back(line); }

/// The node that a page's policy prefers; none if it has no such policy.
std::optional<int> preferred_node(void* memory) {
  constexpr unsigned long of_address = 2;  // MPOL_F_ADDR
  int policy = 0;
  unsigned long nodes[16]{};
  if (syscall(SYS_get_mempolicy, &policy, nodes, 1024UL, memory, of_address) != 0 || policy != 1) {
    return std::nullopt;
  }
  for (int node = 0; node < 1024; ++node) {
    if ((nodes[node / 64] >> (node % 64) & 1) != 0) {
      return node;
    }
  }
  return std::nullopt;
}

TEST_CASE("pinned memory comes from the requested node, or one warning says why not") {
  constexpr auto bytes = pinned_memory<willing>::mapped_bytes;
  said.clear();
  pinned_memory<willing> near{{}, listen, 0};
  auto* const block = near.allocate(bytes);
  std::memset(block, 1, bytes);
  if (said.empty()) {
    CHECK(preferred_node(block) == 0);
  } else {
    MESSAGE("the system refused: ", said.front());
  }
  near.release(block, bytes);
  pinned_memory<willing> anywhere{{}, listen};
  auto* const other = anywhere.allocate(bytes);
  CHECK(preferred_node(other) == std::nullopt);
  anywhere.release(other, bytes);

  said.clear();
  pinned_memory<willing> nowhere{{}, listen, 1023};
  for (int i = 0; i < 2; ++i) {
    auto* const memory = nowhere.allocate(bytes);
    std::memset(memory, 1, bytes);
    nowhere.release(memory, bytes);
  }
  REQUIRE(said.size() == 1);
  CHECK(said.front().find("node 1023") != std::string::npos);
}

}  // namespace
