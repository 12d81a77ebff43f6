// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Whole runs whose ranks are threads of this process: what they share, save and resume.
// tests/examples/ranks_test.cpp has the same with processes.
#include <superoffload/comm/shared.hpp>
#include <superoffload/io/fault.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/engine_cores.hpp"
#include "support/precisions.hpp"
#include "support/sanitizer.hpp"
#include "support/scratch_directory.hpp"
#include "support/short_run.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;

template <class P>
using engine = train::engine<model::llama, P, zero::offloaded_or_sharded<comm::shared>, offload::super>;

train::training_options options(fs::path const& output, std::int64_t steps) {
  auto o = test::short_run(output, steps);
  o.batch_size = 5;
  o.max_length = 24;
  o.lr = 1e-3;
  o.metrics = output / "metrics.jsonl";
  return o;
}

/// The results of a run: the whole state of all units, and the summary.
struct outcome {
  std::vector<std::byte> state;
  train::run_summary summary;
};
template <class Trainer>
std::vector<std::byte> state_of(Trainer& trainer) {
  std::vector<std::byte> all;
  for (auto const& field : trainer.engine().state_fields()) {
    std::vector<std::byte> part(field.bytes);
    trainer.engine().read_state(field, 0, part);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

/// The error message of each rank; empty if it succeeded.
template <class P>
std::vector<std::string> try_on(int ranks, train::training_options o, outcome& done,
                                std::function<void(train::training_options&)> const& change = {}) {
  test::threads_of_a_process groups;
  groups.settings.piece_bytes = 1U << 18;
  std::mutex mutex;
  return groups.run(ranks, [&](auto& device, auto& group) {
    auto own = o;
    own.rank = group.rank();
    own.ranks = group.ranks();
    if (change) {
      change(own);
    }
    train::trainer<engine<P>> trainer{device, own, &group};
    auto const summary = trainer.run();
    auto state = state_of(trainer);
    std::lock_guard const lock{mutex};
    conformance::require(done.state.empty() || done.state == state, "ranks differ in the state");
    done = {std::move(state), summary};
  });
}
template <class P>
outcome run_on(int ranks, train::training_options const& o) {
  outcome done;
  conformance::all_succeeded(try_on<P>(ranks, o, done));
  return done;
}
template <class P>
outcome run_alone(train::training_options const& o) {
  cpu::device device{1};
  train::trainer<engine<P>> trainer{device, o};
  auto const summary = trainer.run();
  return {state_of(trainer), summary};
}

std::vector<double> series(train::training_options const& o, char const* name) {
  std::vector<double> values;
  std::ifstream file{o.metrics};
  for (std::string line; std::getline(file, line);) {
    auto const json = io::json::parse(line);
    if (json.contains(name)) {
      values.push_back(json[name].get<double>());
    }
  }
  return values;
}
void check_near(std::vector<double> const& a, std::vector<double> const& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(a[i] - b[i]) <= tolerance * std::abs(b[i]));
  }
}

void write_held_out(fs::path const& file) {
  std::ofstream out{file};
  for (int i = 0; i < 7; ++i) {
    out << R"({"instruction": "count", "input": "", "output": ")"
        << std::string(static_cast<std::size_t>(5 + 7 * i), 'x') << "\"}\n";
  }
}

TEST_CASE_TEMPLATE("a run on any number of ranks gives the results of a single rank", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  double const tolerance = std::is_same_v<P, precision::fp32> ? 2e-5 : 2e-3;
  for (bool const offloads : {false, true}) {
    CAPTURE(offloads);
    auto const with = [&](fs::path const& output) {
      auto o = options(output, 6);
      o.model = o.model.parent_path() / (offloads ? "llama_tied" : "llama");
      o.accumulation = 2;  // of 5 sequences: some ranks have none
      write_held_out(output / "held_out.jsonl");
      o.eval_dataset = output / "held_out.jsonl";
      o.eval_steps = 3;
      o.save_steps = 4;
      o.recompute = offloads ? recompute::choice::every_block : recompute::choice::automatic;
      o.offload.how = offloads ? offload::mode::super : offload::mode::none;
      o.offload.bucket_bytes = 1 << 20;
      if (offloads) {
        o.offload.ratio = 0.7;
        o.offload.device_updated_share = 0.5;
      }
      return o;
    };
    test::scratch_directory const alone;
    auto const one = with(alone.path());
    auto const whole = run_alone<P>(one);
    for (int const ranks : test::numbers_of_ranks()) {
      CAPTURE(ranks);
      test::scratch_directory const output;
      auto const o = with(output.path());
      auto const several = run_on<P>(ranks, o);
      check_near(series(o, "loss"), series(one, "loss"), tolerance);
      check_near(series(o, "eval_loss"), series(one, "eval_loss"), tolerance);
      check_near(series(o, "grad_norm"), series(one, "grad_norm"), 20 * tolerance);
      CHECK(series(o, "label_tokens") == series(one, "label_tokens"));
      CHECK(series(o, "epoch") == series(one, "epoch"));
      CHECK(several.state.size() == whole.state.size());
      CHECK(several.summary.checkpoint.filename() == "checkpoint-6");
      auto const saved = io::checkpoint_reader::open(several.summary.checkpoint);
      saved.verify();
      CHECK(saved.world_size() == ranks);
      CHECK(fs::exists(output.path() / "model" / "model.safetensors"));
      if (ranks == 1) {
        CHECK(several.state.size() == whole.state.size());
      }
    }
  }
}

TEST_CASE("the same run on several ranks gives the same bits, and leaves no other files") {
  test::scratch_directory const first, second;
  auto const state = [](fs::path const& output) {
    auto o = options(output, 4);
    o.save_steps = 2;
    o.save_total_limit = 1;
    o.offload.how = offload::mode::super;
    o.offload.ratio = 1.0;
    return run_on<precision::bf16>(3, o).state;
  };
  CHECK((state(first.path()) == state(second.path())));
  std::vector<std::string> left;
  for (auto const& entry : fs::directory_iterator{first.path()}) { left.push_back(entry.path().filename()); }
  std::sort(left.begin(), left.end());
  CHECK(left == std::vector<std::string>{"checkpoint-4", "metrics.jsonl", "model", "run.json"});
}

TEST_CASE("a run resumes on another number of ranks: the same bits, and no sample lost or repeated") {
  test::scratch_directory const unbroken;
  auto const whole = options(unbroken.path(), 6);
  run_alone<precision::fp32>(whole);
  test::scratch_directory const constant;
  auto same = options(constant.path(), 6);
  same.scheduler = optim::schedule::shape::constant;  // does not depend on the length of the run
  run_alone<precision::fp32>(same);
  // From one rank to several, to fewer and to more, and below back to one.
  auto const all_savers = test::under_sanitizer ? std::vector{1, 3} : std::vector{1, 2, 4};
  auto const all_readers = test::under_sanitizer ? std::vector{2} : std::vector{1, 2, 4};
  for (int const savers : all_savers) {
    test::scratch_directory const saved;
    auto o = options(saved.path(), 3);
    o.scheduler = optim::schedule::shape::constant;
    o.save_steps = 3;
    auto const before = run_on<precision::fp32>(savers, o);
    for (int const readers : all_readers) {
      CAPTURE(savers);
      CAPTURE(readers);
      test::scratch_directory const going_on;
      auto next = options(going_on.path(), 3);
      next.scheduler = optim::schedule::shape::constant;
      next.resume = (saved.path() / "checkpoint-3").string();
      CHECK((run_on<precision::fp32>(readers, next).state == before.state));
      next.max_steps = 6;
      next.metrics = going_on.path() / "more.jsonl";
      run_on<precision::fp32>(readers, next);
      auto const tokens = series(whole, "label_tokens");
      CHECK(series(next, "label_tokens") == std::vector<double>(tokens.begin() + 3, tokens.end()));
      CHECK(series(next, "epoch").back() == series(whole, "epoch").back());
    }
    // On a single rank, with the whole run's schedule to the end.
    auto alone = o;
    alone.resume = "auto";
    alone.max_steps = 6;
    run_alone<precision::fp32>(alone);
    check_near(series(alone, "loss"), series(same, "loss"), 2e-5);
  }
}

TEST_CASE("a checkpoint that one rank cannot read is passed over by all") {
  test::scratch_directory const output;
  auto o = options(output.path(), 4);
  o.save_steps = 2;
  run_on<precision::fp32>(2, o);
  auto const damaged = output.path() / "checkpoint-4" / "rank-00000.bin";  // the first rank's part
  REQUIRE(fs::file_size(damaged) > 100);
  std::fstream file{damaged, std::ios::in | std::ios::out | std::ios::binary};
  file.seekp(64);
  file.put('\x7f');
  file.close();
  o.resume = "auto";
  o.save_steps = 0;
  auto const resumed = run_on<precision::fp32>(2, o);
  CHECK(resumed.summary.checkpoint.filename() == "checkpoint-2");
  CHECK(series(o, "loss").size() == 4);
}

/// Lets the calls of one rank on what is called so fail.
thread_local bool on_the_rank = false;
std::string failing_name;
int fail_on_the_rank(io::operation what, fs::path const& path) {
  bool const concerns = what == io::operation::open || what == io::operation::list;
  return on_the_rank && concerns && path.native().ends_with(failing_name) ? EIO : 0;
}

TEST_CASE("an I/O error of one rank is said by all, before they compare what they have read") {
  test::scratch_directory const output;
  auto o = options(output.path(), 4);
  o.save_steps = 2;
  run_on<precision::fp32>(2, o);
  o.resume = "auto";
  o.max_steps = 6;
  std::pair<std::string, std::string> const cases[] = {
      {"checkpoint-4/manifest.json", "checkpoint-4/manifest.json: cannot be opened"},
      {"models/llama", "models/llama: listing the directory failed"}};
  for (auto const& one : cases) {
    auto const& said = one.second;
    CAPTURE(said);
    failing_name = one.first;
    io::fault.store(&fail_on_the_rank);
    outcome none;
    auto const outcomes = try_on<precision::fp32>(2, o, none, [](auto& own) { on_the_rank = own.rank == 1; });
    io::fault.store(nullptr);
    for (auto const& outcome : outcomes) {
      CAPTURE(outcome);
      CHECK(outcome.find("rank 1: ") == 0);
      CHECK(outcome.find(said) != std::string::npos);
      CHECK(outcome.find("Input/output error") != std::string::npos);
    }
  }
}

TEST_CASE("ranks with different options or files are all refused with one message") {
  struct difference {
    std::string said;
    std::function<void(train::training_options&, fs::path const&)> change;
  };
  std::vector<difference> const differences{
      {"ranks differ in --seed: rank 0 has '0' (1 bytes), rank 1 has '7' (1 bytes)",
       [](auto& o, auto&) { o.seed = 7; }},
      {"ranks differ in --lr: rank 0 has '0.001'", [](auto& o, auto&) { o.lr = 2e-3; }},
      {"ranks differ in --freeze: rank 0 has '' (0 bytes), rank 1 has 'model.norm*'",
       [](auto& o, auto&) { o.freeze = {"model.norm*"}; }},
      {"ranks differ in the data set: rank 0 has '",
       [](auto& o, fs::path const& here) {
         write_held_out(here / "other.jsonl");
         o.dataset = {{here / "other.jsonl", {}}};
       }},
      {"ranks differ in the model's config.json",
       [](auto& o, auto&) { o.model = o.model.parent_path() / "llama_tied"; }},
      {"ranks differ in the model's weights: rank 0 has 'model.safetensors of ",
       [](auto& o, fs::path const& here) {
         fs::copy(o.model, here / "model");
         fs::resize_file(here / "model" / "model.safetensors", 1000);
         o.model = here / "model";
       }},
  };
  for (auto const& one : differences) {
    CAPTURE(one.said);
    test::scratch_directory const output, other;
    outcome none;
    auto const outcomes = try_on<precision::fp32>(2, options(output.path(), 2), none, [&](auto& o) {
      if (o.rank == 1) {
        one.change(o, other.path());
      }
    });
    for (auto const& outcome : outcomes) {
      CAPTURE(outcome);
      CHECK(outcome.find(one.said) != std::string::npos);
    }
  }
}

TEST_CASE("a file that only one rank cannot read ends all ranks with its error") {
  test::scratch_directory const output;
  outcome none;
  auto const outcomes = try_on<precision::fp32>(3, options(output.path(), 2), none, [&](auto& o) {
    if (o.rank == 1) {
      o.model = output.path() / "nowhere";
    }
  });
  for (auto const& outcome : outcomes) {
    CAPTURE(outcome);
    CHECK(outcome.find("rank 1: ") == 0);
    CHECK(outcome.find("nowhere/config.json") != std::string::npos);
  }
}

}  // namespace
