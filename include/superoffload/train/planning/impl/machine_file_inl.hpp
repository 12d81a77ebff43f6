// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/train/planning/machine_file.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {
namespace detail {

using ordered = nlohmann::ordered_json;

/// An object whose members are read one by one; expect_no_more() refuses others.
class machine_section {
public:
  explicit machine_section(io::json_field field) : field_{std::move(field)} { field_.require_object(); }

  io::json_field operator[](char const* name) {
    known_.emplace_back(name);
    return field_[name];
  }
  /// A positive number in units of `unit`.
  double positive(char const* name, double unit) {
    auto const field = (*this)[name];
    double const value = field.number(0.0, 1e9);
    expect(value > 0.0, exit_code::bad_input, field.where(), ": expected a number above 0, found ",
           field.shown());
    return value * unit;
  }
  /// A share: above 0, at most 1.
  double share(char const* name) {
    auto const field = (*this)[name];
    double const value = field.number(0.0, 1.0);
    expect(value > 0.0, exit_code::bad_input, field.where(), ": expected a share above 0, found ",
           field.shown());
    return value;
  }
  [[nodiscard]] bool has(char const* name) const { return field_.raw().contains(name); }
  /// The name of a field, or the one that earlier versions wrote, if that is there.
  [[nodiscard]] char const* renamed(char const* name, char const* before) const {
    return !has(name) && has(before) ? before : name;
  }
  [[nodiscard]] std::string where() const { return field_.where(); }
  std::size_t gibibytes(char const* name) {
    constexpr double gib = 1024.0 * 1024.0 * 1024.0;
    return static_cast<std::size_t>((*this)[name].number(0.0, 1e6) * gib);
  }
  void expect_no_more() const {
    for (auto const& [name, value] : field_.raw().items()) {
      expect(std::find(known_.begin(), known_.end(), name) != known_.end(), exit_code::bad_input,
             field_.where(), ": field '", printable(name), "' is not known");
    }
  }

private:
  io::json_field field_;
  std::vector<std::string> known_;
};

inline constexpr std::array<char const*, offload::adam_tasks> tasks{
    "update", "speculate", "commit", "commit_speculate", "commit_update", "update_in_place"};
inline constexpr std::array<char const*, offload::adam_tasks> tasks_before{
    "update", "emit", "commit", "commit_emit", "commit_update", "update_in_place"};

SUPEROFFLOAD_INLINE offload::machine::adam_seconds adam_seconds(io::json_field const& field) {
  machine_section s{field};
  offload::machine::adam_seconds seconds;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    seconds[i] = s.positive(s.renamed(tasks[i], tasks_before[i]), 1e-9);
  }
  s.expect_no_more();
  return seconds;
}
SUPEROFFLOAD_INLINE ordered json_of(offload::machine::adam_seconds const& seconds) {
  ordered json;
  for (std::size_t i = 0; i < seconds.size(); ++i) { json[tasks[i]] = 1e9 * seconds[i]; }
  return json;
}

SUPEROFFLOAD_INLINE void read_sources(io::json_field const& sources) {
  sources.require_array();
  expect(!sources.raw().empty(), exit_code::bad_input, sources.where(),
         ": expected a line about the source of the figures");
  for (std::size_t i = 0; i < sources.raw().size(); ++i) { static_cast<void>(sources[i].text()); }
}

SUPEROFFLOAD_INLINE void read_device(machine_section device, offload::machine& m) {
  m.device.memory = device.gibibytes("memory_gib");
  m.device.reserve = device.gibibytes("reserve_gib");
  m.device.gemms = device.positive(device.renamed("gemms_tflops", "products_tflops"), 1e12);
  if (auto const* const name = device.renamed("grouped_gemms_tflops", "grouped_products_tflops");
      device.has(name)) {
    m.device.grouped_gemms = device.positive(name, 1e12);
  }
  if (device.has("rested_gemms_factor")) {
    m.device.rested = device["rested_gemms_factor"].number(1.0, 10.0);
  }
  if (device.has("float8_gemms_tflops")) {
    m.device.float8_gemms = device.positive("float8_gemms_tflops", 1e12);
  }
  m.device.attention_forward = device.positive("attention_forward_tflops", 1e12);
  m.device.attention_backward = device.positive("attention_backward_tflops", 1e12);
  m.device.bandwidth = device.positive("memory_gb_per_s", 1e9);
  m.device.round_trip = device["round_trip_us"].number(0.0, 1e6) * 1e-6;
  device.expect_no_more();
}

SUPEROFFLOAD_INLINE void read_link(machine_section link, offload::machine& m) {
  m.link.alone = {link.positive("down_gb_per_s", 1e9), link.positive("up_gb_per_s", 1e9)};
  m.link.both = {link.positive("down_both_gb_per_s", 1e9), link.positive("up_both_gb_per_s", 1e9)};
  m.link.beside_adam = {link.share("down_share_beside_adam"), link.share("up_share_beside_adam")};
  m.link.latency = link["latency_us"].number(0.0, 1e6) * 1e-6;
  link.expect_no_more();
}

SUPEROFFLOAD_INLINE offload::network network_of(machine_section network) {
  offload::network const read{.ranks_of_host = static_cast<int>(network["ranks_of_host"].integer(1, 1 << 20)),
                              .rate = network.positive("gb_per_s", 1e9),
                              .latency = network["latency_us"].number(0.0, 1e6) * 1e-6};
  network.expect_no_more();
  return read;
}

SUPEROFFLOAD_INLINE void read_peers(machine_section peers, int ranks, offload::machine& m) {
  m.peers.all_gather = peers.positive("all_gather_gb_per_s", 1e9);
  m.peers.reduce_scatter = peers.positive("reduce_scatter_gb_per_s", 1e9);
  m.peers.latency = peers["latency_us"].number(0.0, 1e6) * 1e-6;
  m.peers.beside_compute = peers.share("share_beside_compute");
  m.peers.compute_beside = peers.share("compute_share_beside");
  if (peers.has("network")) {
    m.peers = offload::across_hosts(m.peers, network_of(machine_section{peers["network"]}), ranks);
  }
  peers.expect_no_more();
}

SUPEROFFLOAD_INLINE void read_host(machine_section host, offload::machine& m) {
  m.host.memory = host.gibibytes("memory_gib");
  m.host.reserve = host.gibibytes("reserve_gib");
  m.host.cores = static_cast<int>(host["cores"].integer(1, 1 << 20));
  m.adam.latency = host["task_us"].number(0.0, 1e6) * 1e-6;
  host.expect_no_more();
}

SUPEROFFLOAD_INLINE void read_adam(machine_section adam, offload::machine& m) {
  m.adam.threads = static_cast<int>(adam["threads"].integer(1, 1 << 20));
  m.adam.one_thread = adam.positive("update_by_one_thread", 1e-9);
  m.adam.links_idle = adam_seconds(adam["links_idle"]);
  m.adam.links_busy = adam_seconds(adam["links_busy"]);
  if (adam.has("one_way_share")) {
    m.adam.one_way_share = adam["one_way_share"].number(0.0, 1.0);
  }
  if (adam.has("state")) {
    auto const state = adam["state"];
    auto const format = state_format_of(state.text());
    expect(format.has_value(), exit_code::bad_input, state.where(), " is '", printable(state.text()),
           "', expected float32, bf16 or int8");
    m.adam.format = *format;
  }
  adam.expect_no_more();
}

}  // namespace detail

SUPEROFFLOAD_INLINE offload::machine read_machine(std::filesystem::path const& file, int ranks) {
  using detail::machine_section;
  auto const document = io::read_json(file);
  machine_section all{{document, file.string()}};
  offload::machine m;
  m.name = all["name"].text();
  detail::read_sources(all["sources"]);
  detail::read_device(machine_section{all["device"]}, m);
  detail::read_link(machine_section{all["link"]}, m);
  expect(ranks == 1 || all.has("peers"), exit_code::bad_input, all.where(),
         ": field 'peers' is missing: expected the rates of collectives, for a plan of ", ranks, " ranks");
  if (all.has("peers")) {
    detail::read_peers(machine_section{all["peers"]}, ranks, m);
  }
  detail::read_host(machine_section{all["host"]}, m);
  detail::read_adam(machine_section{all["adam_seconds_per_1e9"]}, m);
  all.expect_no_more();
  return m;
}

SUPEROFFLOAD_INLINE std::string to_json(offload::machine const& m, std::string const& source) {
  constexpr double gib = 1024.0 * 1024.0 * 1024.0;
  auto const gibibytes = [](std::size_t bytes) { return static_cast<double>(bytes) / gib; };
  detail::ordered json{
      {"name", m.name},
      {"sources", {source}},
      {"device",
       {{"memory_gib", gibibytes(m.device.memory)},
        {"reserve_gib", gibibytes(m.device.reserve)},
        {"gemms_tflops", 1e-12 * m.device.gemms},
        {"attention_forward_tflops", 1e-12 * m.device.attention_forward},
        {"attention_backward_tflops", 1e-12 * m.device.attention_backward},
        {"memory_gb_per_s", 1e-9 * m.device.bandwidth},
        {"round_trip_us", 1e6 * m.device.round_trip}}},
      {"link",
       {{"down_gb_per_s", 1e-9 * m.link.alone.down},
        {"up_gb_per_s", 1e-9 * m.link.alone.up},
        {"down_both_gb_per_s", 1e-9 * m.link.both.down},
        {"up_both_gb_per_s", 1e-9 * m.link.both.up},
        {"down_share_beside_adam", m.link.beside_adam.down},
        {"up_share_beside_adam", m.link.beside_adam.up},
        {"latency_us", 1e6 * m.link.latency}}},
      {"host",
       {{"memory_gib", gibibytes(m.host.memory)},
        {"reserve_gib", gibibytes(m.host.reserve)},
        {"cores", m.host.cores},
        {"task_us", 1e6 * m.adam.latency}}},
      {"adam_seconds_per_1e9",
       {{"threads", m.adam.threads},
        {"state", std::string{name_of(m.adam.format)}},
        {"update_by_one_thread", 1e9 * m.adam.one_thread},
        {"links_idle", detail::json_of(m.adam.links_idle)},
        {"links_busy", detail::json_of(m.adam.links_busy)},
        {"one_way_share", m.adam.one_way_share}}},
  };
  if (m.device.grouped_gemms > 0.0) {
    json["device"]["grouped_gemms_tflops"] = 1e-12 * m.device.grouped_gemms;
  }
  if (m.device.rested > 1.0) {
    json["device"]["rested_gemms_factor"] = m.device.rested;
  }
  if (m.device.float8_gemms > 0.0) {
    json["device"]["float8_gemms_tflops"] = 1e-12 * m.device.float8_gemms;
  }
  if (m.peers.known()) {
    bool const network = m.peers.ranks_of_host > 0;
    auto const& between = m.peers.between_hosts;
    auto const within = network ? m.peers.within_hosts : m.peers.of({});
    json["peers"] = {{"all_gather_gb_per_s", 1e-9 * within.all_gather},
                     {"reduce_scatter_gb_per_s", 1e-9 * within.reduce_scatter},
                     {"latency_us", 1e6 * within.latency},
                     {"share_beside_compute", m.peers.beside_compute},
                     {"compute_share_beside", m.peers.compute_beside}};
    if (network) {
      json["peers"]["network"] = {{"ranks_of_host", m.peers.ranks_of_host},
                                  {"gb_per_s", 1e-9 * m.peers.ranks_of_host * between.all_gather},
                                  {"latency_us", 1e6 * std::max(0.0, between.latency - within.latency)}};
    }
  }
  return json.dump();
}

}  // namespace superoffload::train
