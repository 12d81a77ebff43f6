// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/planning/machine_file.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;

fs::path const hardware = SUPEROFFLOAD_HARDWARE;

TEST_CASE("every machine file of the project can be read and has plausible numbers") {
  int files = 0, with_peers = 0;
  for (auto const& entry : fs::directory_iterator{hardware}) {
    if (entry.path().extension() != ".json") {
      continue;
    }
    ++files;
    CAPTURE(entry.path());
    auto const m = train::read_machine(entry.path());
    CHECK(!m.name.empty());
    CHECK(m.device.memory > m.device.reserve);
    CHECK(m.host.memory > m.host.reserve);
    CHECK(m.device.attention_forward <= m.device.gemms);
    CHECK(m.device.attention_backward <= m.device.attention_forward);
    CHECK(m.link.both.down <= m.link.alone.down);
    CHECK(m.link.both.up <= m.link.alone.up);
    CHECK(m.link.beside_adam.down <= 1.0);
    CHECK(m.link.beside_adam.up <= 1.0);
    if (m.peers.known()) {
      CHECK(m.peers.reduce_scatter <= m.peers.all_gather);  // with the time of the sum
      CHECK(m.peers.all_gather < m.device.bandwidth);
      ++with_peers;
    }
    CHECK(m.adam.threads <= m.host.cores);
    using offload::adam_task;
    for (int task = 0; task < offload::adam_tasks; ++task) {
      auto const of = [&](int directions) {
        return m.adam_time(static_cast<adam_task>(task), m.adam.threads, directions);
      };
      CHECK(of(0) <= of(1));
      CHECK(of(1) <= of(2));
    }
    CHECK(m.adam_time(adam_task::update, 1, 0) == doctest::Approx(m.adam.one_thread));
    CHECK(m.adam_time(adam_task::speculate, 1, 0) < m.adam_time(adam_task::update, 1, 0));
  }
  CHECK(files == 7);
  CHECK(with_peers == 4);
}

TEST_CASE("figures are converted to SI units") {
  auto const m = train::read_machine(hardware / "h200_pcie5.json");
  CHECK(m.device.memory == static_cast<std::size_t>(139.8 * 1024 * 1024 * 1024));
  CHECK(m.device.gemms == doctest::Approx(740e12));
  CHECK(m.device.round_trip == doctest::Approx(50e-6));
  CHECK(m.link.alone.down == doctest::Approx(55.4e9));
  CHECK(m.link.alone.up == doctest::Approx(55.6e9));
  CHECK(m.peers.all_gather == doctest::Approx(330e9));
  CHECK(m.peers.reduce_scatter == doctest::Approx(260e9));
  CHECK(m.peers.latency == doctest::Approx(35e-6));
  CHECK(m.peers.beside_compute == doctest::Approx(.69));
  CHECK(m.host.cores == 16);
  CHECK(m.adam_time(offload::adam_task::update, 15, 0) == doctest::Approx(.144e-9));
  CHECK(m.adam_time(offload::adam_task::update, 15, 1) == doctest::Approx(.1645e-9));
  CHECK(m.adam_time(offload::adam_task::commit_speculate, 15, 2) == doctest::Approx(.201e-9));
  CHECK(m.adam_time(offload::adam_task::update_in_place, 15, 2) == doctest::Approx(.161e-9));
}

TEST_CASE("rates of ranks on several hosts are bounded by the network that each host has") {
  auto const of = [](int ranks) { return train::read_machine(hardware / "h200_hosts.json", ranks).peers; };
  CHECK(of(8).all_gather == doctest::Approx(330e9));
  CHECK(of(8).reduce_scatter == doctest::Approx(260e9));
  CHECK(of(8).latency == doctest::Approx(35e-6));
  // Of 16 ranks, 8 parts reach a host in an all-gather: 340 GB/s bound the 15 that leave a rank to 637.
  CHECK(of(16).all_gather == doctest::Approx(330e9));
  CHECK(of(16).reduce_scatter == doctest::Approx(260e9));  // the network allows 319
  CHECK(of(16).latency == doctest::Approx(55e-6));
  auto const within = of(8);
  offload::network const slow{.ranks_of_host = 8, .rate = 42.5e9};
  CHECK(offload::across_hosts(within, slow, 8).all_gather == within.all_gather);
  CHECK(offload::across_hosts(within, slow, 24).all_gather == doctest::Approx(42.5e9 * 23 / 16));
  CHECK(offload::across_hosts(within, slow, 24).reduce_scatter == doctest::Approx(42.5e9 * 23 / 16 / 2));
  offload::network const of_one{.ranks_of_host = 1, .rate = 42.5e9};
  CHECK(offload::across_hosts(within, of_one, 2).reduce_scatter == doctest::Approx(42.5e9));
  CHECK(offload::across_hosts(within, slow, 24).compute_beside == within.compute_beside);
  // The ranks of a host share what reaches it; among themselves they are as fast as on one.
  auto const three = offload::across_hosts(within, slow, 24);
  CHECK(three.of(comm::counterparts(8)).all_gather == doctest::Approx(42.5e9 / 8));
  CHECK(three.of(comm::counterparts(8)).reduce_scatter == doctest::Approx(42.5e9 / 8));
  CHECK(three.of(comm::neighbours(8)).all_gather == within.all_gather);
  CHECK(three.of(comm::neighbours(4)).reduce_scatter == within.reduce_scatter);
  CHECK(three.of(comm::neighbours(24)).all_gather == three.all_gather);
  CHECK(three.of({}).all_gather == three.all_gather);
  CHECK(within.of(comm::counterparts(2)).all_gather == within.all_gather);
}

TEST_CASE("a written description is read back unchanged") {
  test::scratch_directory const directory;
  auto const file = directory.path() / "machine.json";
  auto m = train::read_machine(hardware / "gh200.json");
  m.link.beside_adam = {0.9, 0.65};
  m.adam.one_way_share = 0.3;
  m.device.rested = 1.2;
  m.peers.beside_compute = 0.75;
  m.peers.compute_beside = 0.5;
  std::ofstream{file} << train::to_json(m, "a test");
  auto const reread = train::read_machine(file);
  CHECK(reread.name == m.name);
  CHECK(reread.device.memory == m.device.memory);
  CHECK(reread.device.reserve == m.device.reserve);
  CHECK(reread.host.memory == m.host.memory);
  CHECK(reread.host.reserve == m.host.reserve);
  CHECK(reread.host.cores == m.host.cores);
  CHECK(reread.adam.threads == m.adam.threads);
  auto const rates = [](offload::machine const& of) {
    std::vector<double> all{of.device.gemms,
                            of.device.attention_forward,
                            of.device.attention_backward,
                            of.device.bandwidth,
                            of.device.round_trip,
                            of.link.alone.down,
                            of.link.alone.up,
                            of.link.both.down,
                            of.link.both.up,
                            of.link.beside_adam.down,
                            of.link.beside_adam.up,
                            of.link.latency,
                            of.peers.all_gather,
                            of.peers.reduce_scatter,
                            of.peers.latency,
                            of.peers.beside_compute,
                            of.peers.compute_beside,
                            of.adam.latency,
                            of.adam.one_thread,
                            of.device.grouped_gemms,
                            of.device.float8_gemms,
                            of.adam.one_way_share,
                            of.device.rested};
    all.insert(all.end(), of.adam.links_idle.begin(), of.adam.links_idle.end());
    all.insert(all.end(), of.adam.links_busy.begin(), of.adam.links_busy.end());
    return all;
  };
  auto const expected = rates(m), found = rates(reread);
  for (std::size_t i = 0; i < expected.size(); ++i) { CHECK(found[i] == doctest::Approx(expected[i])); }
  auto const alone = train::read_machine(hardware / "rtx4090.json");
  std::ofstream{file} << train::to_json(alone, "a test");
  CHECK_FALSE(train::read_machine(file).peers.known());
  auto without = m;
  without.device.grouped_gemms = 0.0;
  std::ofstream{file} << train::to_json(without, "a test");
  CHECK(train::read_machine(file).device.grouped_gemms == 0.0);
}

TEST_CASE("a description with the field names of earlier versions is read") {
  test::scratch_directory const directory;
  auto text = test::contents_of(hardware / "gh200.json");
  for (auto const& [now, before] : {std::pair{"\"grouped_gemms_tflops\"", "\"grouped_products_tflops\""},
                                    {"\"gemms_tflops\"", "\"products_tflops\""},
                                    {"\"speculate\"", "\"emit\""},
                                    {"\"commit_speculate\"", "\"commit_emit\""}}) {
    int renamed = 0;
    for (auto at = text.find(now); at != std::string::npos; at = text.find(now)) {
      text.replace(at, std::string{now}.size(), before);
      ++renamed;
    }
    CHECK(renamed > 0);
  }
  auto const file = directory.path() / "machine.json";
  std::ofstream{file} << text;
  CHECK(train::to_json(train::read_machine(file), "a test") ==
        train::to_json(train::read_machine(hardware / "gh200.json"), "a test"));
}

TEST_CASE("a bad description is refused by file and field") {
  test::scratch_directory const directory;
  auto const good = test::contents_of(hardware / "gh200.json");
  auto const message_of = [&](std::string const& text, int ranks = 1) -> std::string {
    auto const file = directory.path() / "machine.json";
    std::ofstream{file} << text;
    try {
      static_cast<void>(train::read_machine(file, ranks));
    } catch (error const& e) {
      CHECK(e.code() == exit_code::bad_input);
      std::string const message = e.what();
      CHECK(message.find("machine.json") != std::string::npos);
      CHECK(message.find('\n') == std::string::npos);
      return message;
    }
    return "read";
  };
  CHECK(message_of(good) == "read");
  auto const with = [&](std::string const& from, std::string const& to) {
    auto text = good;
    auto const at = text.find(from);
    REQUIRE(at != std::string::npos);
    return message_of(text.replace(at, from.size(), to));
  };
  auto const says = [](std::string const& message, std::string const& part) {
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  says(with("\"cores\": 72", "\"cores\": 0"), "host.cores: expected an integer from 1");
  says(with("\"cores\": 72", "\"cores\": 7.2"), "host.cores: expected an integer");
  says(with("\"memory_gib\": 447,", ""), "host: field 'memory_gib' is missing");
  says(with("\"cores\": 72", "\"cores\": 72, \"sockets\": 1"), "host: field 'sockets' is not known");
  says(with("\"link\"", "\"links\""), "field 'link' is missing");
  says(with("\"gemms_tflops\": 740", "\"gemms_tflops\": 0"),
       "device.gemms_tflops: expected a number above 0");
  says(with("\"gemms_tflops\": 740", "\"gemms_tflops\": \"fast\""), "device.gemms_tflops: expected a number");
  says(with("\"grouped_gemms_tflops\": 640", "\"grouped_gemms_tflops\": 0"),
       "device.grouped_gemms_tflops: expected a number above 0");
  says(with("\"float8_gemms_tflops\": 1150", "\"float8_gemms_tflops\": 0"),
       "device.float8_gemms_tflops: expected a number above 0");
  says(with("\"speculate\": 0.060", "\"speculate\": -1"),
       "adam_seconds_per_1e9.links_idle.speculate: expected a number from 0");
  says(with("\"speculate\": 0.060", "\"speculates\": 1"), "links_idle: field 'speculate' is missing");
  says(with("\"name\": \"NVIDIA", "\"kind\": 1, \"name\": \"NVIDIA"), "field 'kind' is not known");
  for (auto const& [number, complaint] :
       {std::pair{"0", "expected a number above 0"}, std::pair{"-1", "expected a number from 0"},
        std::pair{"1e400", "expected valid JSON"}, std::pair{"1e12", "expected a number from 0"},
        std::pair{"null", "expected a number"}, std::pair{"\"330\"", "expected a number"},
        std::pair{"[330]", "expected a number"}}) {
    says(with("\"all_gather_gb_per_s\": 330", concat("\"all_gather_gb_per_s\": ", number)), complaint);
  }
  says(with("\"reduce_scatter_gb_per_s\": 260,", ""), "peers: field 'reduce_scatter_gb_per_s' is missing");
  says(with("\"share_beside_compute\": 1.0", "\"share_beside_compute\": 1.5"),
       "peers.share_beside_compute: expected a number from 0 to 1");
  says(with("\"compute_share_beside\": 1.0", "\"compute_share_beside\": 0"),
       "peers.compute_share_beside: expected a share above 0");
  says(with("\"share_beside_compute\"", "\"nvlinks\": 18, \"share_beside_compute\""),
       "peers: field 'nvlinks' is not known");
  says(with("\"peers\": {", "\"peers\": null, \"rest\": {"), "peers: expected an object, found null");
  auto const alone = test::contents_of(hardware / "rtx4090.json");
  CHECK(message_of(alone) == "read");
  CHECK(message_of(good, 4) == "read");
  says(message_of(alone, 2),
       "field 'peers' is missing: expected the rates of collectives, for a plan of 2 ranks");
  says(message_of("[1]"), "expected an object");
  says(message_of("{"), "byte");
  CHECK_THROWS_AS(static_cast<void>(train::read_machine(directory.path() / "none.json")), error);
}

}  // namespace
