// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Metrics and timeline of a whole run on the CPU device with state in every memory tier.
#include <superoffload/comm/shared.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"
#include "support/scratch_directory.hpp"
#include "support/short_run.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;
using engine =
    train::engine<model::llama, precision::bf16, zero::offloaded_or_sharded<comm::shared>, offload::super>;

constexpr int steps = 6;

train::training_options options(fs::path const& output) {
  auto o = test::short_run(output, steps);
  o.lr = 1e-3;
  o.max_grad_norm = 1e6;
  o.metrics = output / "metrics.jsonl";
  o.offload.how = offload::mode::super;
  o.offload.ratio = 1.0;
  o.offload.device_updated_share = 0.5;
  return o;
}

struct outcome {
  std::vector<io::json> lines;
  offload::worker_counts counts;
  std::vector<std::string> units;
  offload::placement buckets;
};
outcome run(train::training_options const& o) {
  cpu::device device{2};
  train::trainer<engine> trainer{device, o};
  trainer.run();
  float master = 0.0F;  // reading one commits pending state, which an export of working weights does not
  trainer.engine().read_weights(trainer.engine().model().units().front(), 0, {&master, 1});
  outcome done{.lines = {},
               .counts = trainer.engine().state().counts(),
               .units = {},
               .buckets = trainer.engine().options().configuration.buckets};
  for (auto const& unit : trainer.engine().model().units()) { done.units.push_back(unit.name()); }
  std::ifstream file{o.metrics};
  for (std::string line; std::getline(file, line);) { done.lines.push_back(io::json::parse(line)); }
  REQUIRE(done.lines.size() == steps);
  return done;
}

io::json read_json(fs::path const& file) { return io::json::parse(test::contents_of(file)); }

TEST_CASE("a resumed run is planned for the saved hit rate") {
  test::scratch_directory const scratch;
  auto o = options(scratch.path());
  o.offload.device_updated_share = 0.0;
  o.max_grad_norm = 1e-3;  // every step is clipped
  o.max_steps = 40;
  o.save_steps = 40;
  o.metrics.clear();
  cpu::device device{2};
  auto const speculated = [&] {
    train::trainer<engine> const trainer{device, o};
    return trainer.plan().step.speculated;
  };
  CHECK(speculated() > 0.0);
  {
    train::trainer<engine> trainer{device, o};
    trainer.run();
  }
  o.overwrite_output = true;
  CHECK(speculated() > 0.0);
  o.overwrite_output = false;
  o.resume = "auto";
  CHECK(speculated() == 0.0);
  o.resume = (scratch.path() / "nothing").string();
  CHECK_THROWS_WITH_AS(speculated(), doctest::Contains("nothing/manifest.json"), error);
}

TEST_CASE("metrics of all steps add up, and recording changes no bit") {
  test::scratch_directory const plain, watched;
  auto o = options(watched.path());
  o.wall_clock_breakdown = true;
  o.trace = watched.path() / "trace.json";
  o.trace_steps = 4;
  auto const without = run(options(plain.path()));
  auto const with = run(o);
  double device_busy = 0.0;
  double speculated = 0, committed = 0, updated = 0, resent = 0;
  for (std::size_t i = 0; i < with.lines.size(); ++i) {
    auto const& line = with.lines[i];
    CHECK(line["loss"] == without.lines[i]["loss"]);
    CHECK(line["grad_norm"] == without.lines[i]["grad_norm"]);
    CHECK_FALSE(without.lines[i].contains("breakdown"));
    CHECK(without.lines[i]["buckets"].size() == 4);  // counts are always there
    CHECK(line["hit_rate"].get<double>() > 0.9);
    auto const& b = line["breakdown"];
    for (auto const* const name : {"device", "device_adam", "link_down", "link_up", "cpu_adam"}) {
      CAPTURE(name);
      CHECK(b["busy"][name].get<double>() >= 0.0);
      CHECK(b["busy"][name].get<double>() <= 1.0);
    }
    device_busy += b["busy"]["device"].get<double>();
    double sum = 0.0;
    for (auto const& unit : with.units) {
      CAPTURE(unit);
      CHECK(b["waits_ms"][unit].get<double>() >= 0.0);
      sum += b["waits_ms"][unit].get<double>();
    }
    CHECK(b["waits_ms"].size() == with.units.size());
    CHECK(b["waited_ms"].get<double>() == doctest::Approx(sum));
    CHECK(sum <= line["step_time_ms"].get<double>());
    speculated += line["buckets"]["speculated"].get<double>();
    committed += line["buckets"]["committed"].get<double>();
    updated += line["buckets"]["updated"].get<double>();
    resent += line["buckets"]["resent"].get<double>();
  }
  // The others' spans are microseconds long. On a host with more threads than cores they may seem to lie
  // outside of all steps; the timeline below has them.
  CHECK(device_busy > 0.0);
  // All buckets are updated in the end; updates after the last line are in the counts only.
  auto const host =
      static_cast<double>(std::count_if(with.buckets.begin(), with.buckets.end(),
                                        [](auto const& b) { return b.where == offload::tier::host; }));
  auto const& counts = with.counts;
  CHECK(resent == 0);
  CHECK(counts.speculated + counts.updated == static_cast<std::int64_t>(with.buckets.size()) * steps);
  CHECK(counts.committed == counts.speculated);
  CHECK(speculated <= static_cast<double>(counts.speculated));
  CHECK(speculated + updated <= static_cast<double>(counts.speculated + counts.updated));
  CHECK(speculated + host >= static_cast<double>(counts.speculated));
  CHECK(committed <= static_cast<double>(counts.committed));

  // The timeline: rows of slices that do not overlap, each unit's forward and backward once a step.
  auto const trace = read_json(o.trace);
  std::map<int, std::string> rows;
  std::map<int, std::vector<std::pair<double, double>>> slices;
  std::map<std::string, int> named;
  for (auto const& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") {
      rows[event["tid"]] = event["args"]["name"];
    } else if (event["ph"] == "X") {
      double const begin = event["ts"];
      slices[event["tid"]].emplace_back(begin, begin + event["dur"].get<double>());
      ++named[event["name"]];
    }
  }
  for (auto& of_row : slices) {
    CAPTURE(rows[of_row.first]);
    auto& all = of_row.second;
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      CHECK(all[i].second <= all[i + 1].first + 1e-3);  // microseconds are rounded
    }
  }
  for (char const* const row :
       {"steps", "device", "device waits for weights", "CPU Adam 0", "gradients to host", "weights to device",
        "state to device", "state to host"}) {
    CAPTURE(row);
    auto const at = std::find_if(rows.begin(), rows.end(), [&](auto const& r) { return r.second == row; });
    REQUIRE(at != rows.end());
    CHECK_FALSE(slices[at->first].empty());
  }
  for (int step = 1; step <= steps; ++step) { CHECK(named["step " + std::to_string(step)] == (step <= 4)); }
  for (auto const& unit : with.units) {
    CAPTURE(unit);
    CHECK(named["forward of " + unit] == 4);
    CHECK(named["backward of " + unit] == 4);
  }
}

TEST_CASE("a timeline that cannot be written ends the run before its first step") {
  test::scratch_directory const output;
  auto o = options(output.path());
  o.trace = output.path() / "absent" / "trace.json";
  cpu::device device{2};
  train::trainer<engine> trainer{device, o};
  CHECK_THROWS_WITH_AS(trainer.run(), doctest::Contains(o.trace.parent_path().c_str()), error);
  CHECK(trainer.engine().accepted_steps() == 0);
}

TEST_CASE("if every bucket is updated before the step ends, each line has them all") {
  test::scratch_directory const output;
  auto o = options(output.path());
  o.offload.how = offload::mode::zero;
  auto const done = run(o);
  for (auto const& line : done.lines) {
    CHECK(line["buckets"]["updated"] == done.buckets.size());
    CHECK(line["buckets"]["speculated"] == 0);
  }
  o.offload.ratio = 0.0;
  o.offload.device_updated_share = 0.0;
  o.overwrite_output = true;
  CHECK_FALSE(run(o).lines.back().contains("buckets"));  // all state is on the device
}

TEST_CASE(
    "a timeline of a shorter run is written at its end, and recording alone adds nothing to the metrics") {
  test::scratch_directory const output;
  auto o = options(output.path());
  o.trace = output.path() / "trace.json";
  o.trace_steps = 1000;
  auto const done = run(o);
  CHECK_FALSE(done.lines.back().contains("breakdown"));
  int traced = 0;
  auto const trace = read_json(o.trace);  // a range-for does not extend a temporary's lifetime
  for (auto const& event : trace["traceEvents"]) {
    traced += event["ph"] == "X" && event["name"].get<std::string>().starts_with("step ");
  }
  CHECK(traced == steps);
}

}  // namespace
