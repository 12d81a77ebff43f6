// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/planning/alternatives.hpp>
#include <superoffload/train/run/run_data.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

constexpr std::size_t gib = std::size_t{1} << 30;

/// A run that takes a GiB of the device for each sequence of a micro-batch, and what is not there of 8 GiB of
/// state from the host.
offload::plan planned(train::training_options const& o) {
  offload::plan p;
  double const off = o.offload.ratio.value_or(0.0);
  p.host = off;
  p.on_device.activations = static_cast<std::size_t>(train::most_rows(o) / o.max_length) * gib;
  p.on_device.state = static_cast<std::size_t>((1.0 - off) * 8) * gib;
  p.on_host.state = static_cast<std::size_t>(off * 8) * gib;
  p.device_available = 16 * gib;
  p.host_available = 6 * gib;
  p.fits = p.on_device.total() <= p.device_available && p.on_host.total() <= p.host_available;
  p.recompute = o.recompute == recompute::choice::every_block ? "every block" : "none";
  p.step_time = 0.25;
  p.tokens_per_second = 1000.0 * static_cast<double>(o.batch_size);
  return p;
}

train::run_planner planner_of(train::training_options const& o) {
  return {.plan = planned, .fits_in = [&o](std::size_t device, std::size_t host) {
            auto const p = planned(o);
            return p.on_device.total() <= device && p.on_host.total() <= host;
          }};
}

train::training_options options(std::int64_t batch, std::int64_t accumulation) {
  train::training_options o;
  o.batch_size = batch;
  o.accumulation = accumulation;
  return o;
}

std::vector<std::string> flags_of(train::alternatives const& all) {
  std::vector<std::string> flags;
  for (auto const& row : all.rows) { flags.push_back(row.flags); }
  return flags;
}

train::alternatives of(train::training_options const& o) {
  return train::alternatives_of(o, planned(o), planner_of(o));
}

TEST_CASE("of a token budget, not of sequences") {
  auto o = options(8, 1);
  o.tokens_per_batch = 4096;
  auto const flags = flags_of(of(o));
  REQUIRE(flags.size() > 5);
  CHECK(std::vector<std::string>(flags.begin() + 1, flags.begin() + 5) ==
        std::vector<std::string>{"--tokens_per_batch 8192", "--tokens_per_batch 16384",
                                 "--gradient_accumulation_steps 2", "--gradient_accumulation_steps 4"});
}

TEST_CASE("alternatives change one option at a time") {
  CHECK(flags_of(of(options(8, 2))) == std::vector<std::string>{"",
                                                                "--batch_size 16",
                                                                "--batch_size 32",
                                                                "--gradient_accumulation_steps 1",
                                                                "--gradient_accumulation_steps 4",
                                                                "--gradient_accumulation_steps 8",
                                                                "--activation_checkpointing none",
                                                                "--activation_checkpointing every_block",
                                                                "--activation_checkpointing offload",
                                                                "--offload none",
                                                                "--ratio .25",
                                                                "--ratio .5",
                                                                "--ratio .75",
                                                                "--ratio 1",
                                                                "--offload_weights on",
                                                                "--max_grad_norm 0 --on_nonfinite stop",
                                                                "--state bf16",
                                                                "--state int8",
                                                                "--device_memory 12",
                                                                "--device_memory 8",
                                                                "--device_memory 4"});
  auto o = options(2, 1);
  o.ranks = 2;  // a sequence for each rank: no smaller micro-batch
  o.recompute = recompute::choice::none;
  o.offload.how = offload::mode::none;
  o.max_grad_norm = 0.0;
  o.nonfinite = train::on_nonfinite::stop;
  CHECK(flags_of(of(o)) ==
        std::vector<std::string>{"", "--batch_size 4", "--batch_size 8", "--sequence_parallel 2",
                                 "--activation_checkpointing every_block", "--activation_checkpointing auto",
                                 "--activation_checkpointing offload", "--offload auto", "--state bf16",
                                 "--state int8"});
}

TEST_CASE("more or fewer ranks may share a micro-batch, if they form groups") {
  auto o = options(8, 1);
  o.ranks = 6;
  o.sequence_ranks = 2;
  auto flags = flags_of(of(o));
  std::erase_if(flags, [](std::string const& one) { return !one.starts_with("--sequence_parallel"); });
  CHECK(flags ==
        std::vector<std::string>{"--sequence_parallel 1", "--sequence_parallel 3", "--sequence_parallel 6"});
}

TEST_CASE("ranks of several hosts may keep other copies of the weights") {
  auto o = options(8, 1);
  o.ranks = 8;
  auto const copies = [&](offload::plan const& asked, int ranks_of_host) {
    auto planner = planner_of(o);
    planner.ranks_of_host = ranks_of_host;
    auto flags = flags_of(train::alternatives_of(o, asked, planner));
    std::erase_if(flags, [](std::string const& one) { return !one.starts_with("--hybrid_sharding"); });
    return flags;
  };
  using flags = std::vector<std::string>;
  auto asked = planned(o);
  CHECK(copies(asked, 0) == flags{});
  CHECK(copies(asked, 3) == flags{});
  CHECK(copies(asked, 4) == flags{"--hybrid_sharding 4"});
  asked.state.weight_ranks = 4;
  CHECK(copies(asked, 4) == flags{"--hybrid_sharding 8"});
  o.accumulation = 2;  // the plan's own copies leave the order of sums alone
  CHECK(copies(asked, 4) == flags{"--hybrid_sharding 4", "--hybrid_sharding 8"});
  asked.state.sums_in_copies = true;
  CHECK(copies(asked, 4) == flags{"--hybrid_sharding 8"});
}

TEST_CASE("the MLPs of a long sequence may be computed in tiles, and those in tiles at once") {
  auto const tiles = [](train::training_options const& o) {
    auto flags = flags_of(of(o));
    std::erase_if(flags, [](std::string const& one) { return !one.starts_with("--tiled_mlp"); });
    return flags;
  };
  auto o = options(8, 1);
  o.max_length = 16384;
  CHECK(tiles(o).empty());
  o.max_length = 16385;
  CHECK(tiles(o) == std::vector<std::string>{"--tiled_mlp 16384"});
  o.ranks = o.sequence_ranks = 2;
  CHECK(tiles(o).empty());  // of half the rows
  o.tiled_mlp = 1000;
  CHECK(tiles(o) == std::vector<std::string>{"--tiled_mlp 0"});
}

TEST_CASE("an alternative has its own plan") {
  auto const all = of(options(8, 1));
  auto const row = [&](std::string const& flags) -> offload::plan const& {
    for (auto const& a : all.rows) {
      if (a.flags == flags) {
        return a.plan;
      }
    }
    FAIL("no row " << flags);
    return all.rows.front().plan;
  };
  CHECK(row("").fits);
  CHECK_FALSE(row("--batch_size 16").fits);
  CHECK(row("--ratio .5").on_host.state == 4 * gib);
  CHECK(row("--gradient_accumulation_steps 4").on_device.activations == 2 * gib);
  CHECK(row("--activation_checkpointing every_block").recompute == "every block");
}

TEST_CASE("an alternative that the planner refuses has no row, and other errors pass") {
  auto const o = options(1, 1);
  auto planner = planner_of(o);
  auto code = exit_code::bad_input;
  planner.plan = [&](train::training_options const& other) {
    expect(other.offload.offload_weights != offload::choice::on, code, "no blocks");
    return planned(other);
  };
  auto const flags = flags_of(train::alternatives_of(o, planned(o), planner));
  REQUIRE(flags.size() > 2);
  CHECK(flags[flags.size() - 7] == "--ratio 1");
  code = exit_code::internal;
  CHECK_THROWS_AS(train::alternatives_of(o, planned(o), planner), error);
}

TEST_CASE("without rates of offloading its alternatives are left out") {
  auto const o = options(1, 1);
  auto planner = planner_of(o);
  planner.rates_of_offloading = false;
  CHECK(flags_of(train::alternatives_of(o, planned(o), planner)).back() ==
        "--activation_checkpointing every_block");
}

TEST_CASE("the least memory of a run is that of its smallest plan, to 16 MiB") {
  auto o = options(3, 1);
  o.offload.ratio = 0.25;
  auto const all = of(o);
  CHECK(all.least_device == 9 * gib);
  CHECK(all.least_host == 2 * gib);

  auto planner = planner_of(o);
  planner.fits_in = [](std::size_t device, std::size_t host) {
    return device >= 3 * gib + 1 && host >= 7 * gib;
  };
  auto const odd = train::alternatives_of(o, planned(o), planner);
  CHECK(odd.least_device == 0);  // the host, of 6 GiB, is too small beside any device
  CHECK(odd.least_host == 7 * gib);

  planner.one_memory = true;
  auto const one = train::alternatives_of(o, planned(o), planner);
  CHECK(one.least_device == 7 * gib);
  CHECK(one.least_host == 0);
  CHECK(train::describe(one).find("the run as asked for takes at least 7.00 GiB of memory") !=
        std::string::npos);
}

TEST_CASE("the table has a line for each alternative, aligned") {
  auto const text = train::describe(of(options(8, 1)));
  CHECK(text.starts_with(
      "alternatives, with one option changed\n"
      "  GiB                                       device      host  state off    step ms   tokens/s  "
      "recompute\n"
      "  as asked for                               16.00      0.00        0 %      250.0       8000  none\n"
      "  --batch_size 16                            24.00      0.00        0 %  does not fit\n"));
  CHECK(text.find(
            "  --ratio .5                                 12.00      4.00       50 %      250.0       8000  "
            "none\n") != std::string::npos);
  CHECK(text.ends_with(
      "  with this host's memory it takes at least 16.00 GiB of device memory (available: 16.00)\n"
      "  with this device's memory it takes at least 0.02 GiB of host memory (available: 6.00)\n"));
}

}  // namespace
