// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/topology.hpp>

#include <doctest/doctest.h>

#include "support/fake_sys.hpp"

#include <string>
#include <vector>

using namespace superoffload;
using namespace superoffload::cpu;

namespace {

using list = std::vector<int>;

/// With processors and nodes.
class fake_sys : public test::fake_sys {
public:
  void core(list const& siblings) const {
    std::string text;
    for (int const id : siblings) { text += (text.empty() ? "" : ",") + std::to_string(id); }
    for (int const id : siblings) {
      write("devices/system/cpu/cpu" + std::to_string(id) + "/topology/thread_siblings_list", text);
    }
  }
  void node(int id, std::string const& processors, std::int64_t kilobytes,
            std::string const& distances) const {
    auto const folder = "devices/system/node/node" + std::to_string(id);
    auto const name = "Node " + std::to_string(id);
    write(folder + "/cpulist", processors);
    write(folder + "/meminfo",
          name + " MemTotal:       " + std::to_string(kilobytes) + " kB\n" + name + " MemFree:  1 kB");
    write(folder + "/distance", distances);
  }
};

/// Two sockets of four cores, two logical processors each: 0-7 are the first ones, 8-15 their siblings.
struct two_sockets : fake_sys {
  two_sockets() {
    for (int i = 0; i < 8; ++i) { core({i, i + 8}); }
    write("devices/system/node/online", "0-1");
    node(0, "0-3,8-11", 64 << 20, "10 21");
    node(1, "4-7,12-15", 64 << 20, "21 10");
  }
};
list const all_16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

TEST_CASE("lists of processors and nodes") {
  CHECK(cpu::detail::parse_list("0-3,8,10-11\n") == list{0, 1, 2, 3, 8, 10, 11});
  CHECK(cpu::detail::parse_list("5") == list{5});
  CHECK(cpu::detail::parse_list("").empty());
  CHECK(cpu::detail::parse_list("\n").empty());
  CHECK(cpu::detail::parse_list("3-1").empty());
  CHECK(cpu::detail::parse_list("1,x") == list{1});
  CHECK(cpu::detail::parse_list("0-99999999999").empty());
}

TEST_CASE("two sockets with siblings: physical cores first, near the device first") {
  two_sockets const sys;
  auto const host = read_topology(all_16, sys.root());
  CHECK(host.cores() == 8);
  CHECK(host.nodes.size() == 2);
  CHECK(host.nodes[1].bytes == std::int64_t{64} << 30);
  CHECK(host.distance(0, 1) == 21);
  CHECK(host.nearest_node(1) == 1);
  CHECK(host.processors_near(1, 6) == list{4, 5, 6, 7, 0, 1});
  CHECK(host.processors_near(0, 10) == list{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(host.processors_near(0, 99).size() == 16);

  auto const seat = seat_of_optimizer(host, 0.9, 1);
  CHECK(seat.processors == list{4, 5, 6, 7, 0, 1, 2});  // 7 of 8 cores
  CHECK(seat_near(host, 1, 2).processors == list{4, 5});
  CHECK(seat_near(host, 1, 1000).processors.size() == host.processors.size());
  CHECK(seat.node == 1);
}

TEST_CASE("only processors that the process may use are used") {
  two_sockets const sys;
  auto const host = read_topology({2, 3, 10, 11, 12}, sys.root());
  CHECK(host.cores() == 3);  // 12 without its sibling is a core, too
  CHECK(host.processors_near(1, 5) == list{12, 2, 3, 10, 11});
  CHECK(seat_of_optimizer(host, 1.0, 1).processors == list{12, 2});
  CHECK(read_topology({2, 3}, sys.root()).nearest_node(1) == 0);  // the near node has no usable processor
}

TEST_CASE("a GPU's memory that the host shows as a node is not host memory") {
  fake_sys sys;
  for (int i = 0; i < 72; ++i) { sys.core({i}); }
  sys.write("devices/system/node/online", "0-2");
  sys.node(0, "0-71", 480 << 20, "10 80 80");
  sys.node(1, "", 96 << 20, "80 10 255");
  sys.node(2, "", 0, "80 255 10");
  list all;
  for (int i = 0; i < 72; ++i) { all.push_back(i); }
  auto const host = read_topology(all, sys.root());
  for (int const device : {-1, 0, 1, 2, 7}) { CHECK(seat_of_optimizer(host, 0.9, device).node == 0); }
  CHECK(seat_of_optimizer(host, 0.9, 1).processors.size() == 64);
}

TEST_CASE("a node without memory is skipped for the nearest one with memory") {
  fake_sys sys;
  sys.write("devices/system/node/online", "0,2-3");
  sys.node(0, "0", 1 << 20, "10 30 20");
  sys.node(2, "1", 0, "30 10 40");
  sys.node(3, "2", 1 << 20, "20 40 10");
  auto const host = read_topology({0, 1, 2}, sys.root());
  CHECK(host.nearest_node(2) == 0);
  CHECK(host.distance(2, 3) == 40);
  CHECK(host.nearest_node(3) == 3);
}

TEST_CASE("a host without information has one node, and a core for each processor") {
  auto const host = read_topology({1, 4}, "/nowhere");
  CHECK(host.cores() == 2);
  CHECK(host.nearest_node(-1) == 0);
  CHECK(seat_of_optimizer(host, 0.9, -1).processors == list{1});
}

TEST_CASE("the optimizer never takes all of several cores, and always at least one") {
  auto const threads = [](int cores, double share, int quota = 1000) {
    list ids;
    for (int i = 0; i < cores; ++i) { ids.push_back(i); }
    return seat_of_optimizer(read_topology(ids, "/nowhere"), share, -1, quota).processors.size();
  };
  CHECK(threads(1, 1.0) == 1);
  CHECK(threads(2, 1.0) == 1);
  CHECK(threads(2, 0.1) == 1);
  CHECK(threads(10, 0.9) == 9);
  CHECK(threads(16, 0.9) == 14);
  CHECK(threads(16, 0.95) == 15);
  CHECK(threads(16, 1.0) == 15);
  CHECK(threads(16, 1.0, 4) == 3);
  CHECK(threads(16, 1.0, 1) == 1);
}

TEST_CASE("ranks of one host get whole cores, equally many, on one node if possible") {
  two_sockets const host;
  auto const all = read_topology(all_16, host.root());
  using lists = std::vector<list>;
  CHECK(divide_processors(all, 1) == lists{all_16});
  CHECK(divide_processors(all, 2) == lists{{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}});
  CHECK(divide_processors(all, 3) == lists{{0, 1, 8, 9}, {2, 3, 10, 11}, {4, 5, 12, 13}});
  CHECK(divide_processors(all, 8)[7] == list{7, 15});
  CHECK(divide_processors(all, 9).empty());
  CHECK(divide_processors(read_topology({1, 6, 9, 14}, host.root()), 2) == lists{{1, 9}, {6, 14}});
}

TEST_CASE("the largest cache of a processor") {
  fake_sys sys;
  sys.write("devices/system/cpu/cpu3/cache/index0/size", "48K");
  sys.write("devices/system/cpu/cpu3/cache/index3/size", "32768K");
  CHECK(largest_cache_bytes(3, sys.root()) == 32 << 20);
  sys.write("devices/system/cpu/cpu3/cache/index4/size", "64M");
  CHECK(largest_cache_bytes(3, sys.root()) == 64 << 20);
  sys.write("devices/system/cpu/cpu3/cache/index4/size", "much");
  CHECK(largest_cache_bytes(3, sys.root()) == 32 << 20);
  CHECK(largest_cache_bytes(4, sys.root()) == 0);
}

TEST_CASE("this machine has processors and memory") {
  auto const allowed = allowed_processors();
  CHECK_FALSE(allowed.empty());
  auto const host = read_topology(allowed);
  CHECK(host.cores() >= 1);
  CHECK(seat_of_optimizer(host, 0.9, -1).processors.size() >= 1);
}

}  // namespace
