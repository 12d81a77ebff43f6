// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Runs that are interrupted after any step, and go on on as many ranks or on others. Ranks are threads of
// this process.
#include <superoffload/comm/shared.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/engine_cores.hpp"
#include "support/fault_case.hpp"
#include "support/sanitizer.hpp"
#include "support/scratch_directory.hpp"
#include "support/short_run.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;

template <class P>
using engine = train::engine<model::llama, P, zero::offloaded_or_sharded<comm::shared>, offload::super>;

/// What differs between runs in how much of a field a rank has.
struct variant {
  char const* name;
  char const* model = "llama";
  offload::mode offload = offload::mode::none;
  bool frozen = false;
  state_format format = state_format::float32;
  bool is_part = false;  ///< another variant has all of it, and more
};

train::training_options options(fs::path const& output, std::int64_t steps, variant const& v) {
  auto o = test::short_run(output, steps);
  o.model = o.model.parent_path() / v.model;
  o.batch_size = 5;
  o.accumulation = 2;  // of 5 sequences: some ranks have none
  o.max_length = 24;
  o.lr = 1e-3;
  o.scheduler = optim::schedule::shape::constant;
  o.metrics = output / "metrics.jsonl";
  o.offload.how = v.offload;
  o.offload.state = v.format;
  o.offload.bucket_bytes = 1 << 20;
  if (v.offload != offload::mode::none) {
    o.offload.ratio = 0.7;
  }
  if (v.frozen) {
    o.freeze = {"model.embed_tokens*", "*.0.self_attn*"};
  }
  return o;
}

/// The fields of the whole state by kind, weights first, and the exported weights.
using state = std::map<std::string, std::vector<std::byte>>;

template <class P>
state run_on(int ranks, train::training_options const& o) {
  test::threads_of_a_process groups;
  groups.settings.piece_bytes = 1U << 18;
  std::mutex mutex;
  state done;
  conformance::all_succeeded(groups.run(ranks, [&](auto& device, auto& group) {
    auto own = o;
    own.rank = group.rank();
    own.ranks = group.ranks();
    train::trainer<engine<P>> trainer{device, own, &group};
    (void)trainer.run();
    state all;
    for (auto const& field : trainer.engine().state_fields()) {
      auto& kind = all[field.name.substr(field.name.rfind('.') + 1)];
      auto const before = kind.size();
      kind.resize(before + field.bytes);
      trainer.engine().read_state(field, 0, std::span{kind}.subspan(before));
    }
    std::lock_guard const lock{mutex};
    conformance::require(done.empty() || done == all, "ranks differ in the state");
    done = std::move(all);
  }));
  std::ifstream stream{o.output / "model" / "model.safetensors", std::ios::binary};
  std::string const exported{std::istreambuf_iterator<char>{stream}, {}};
  auto const bytes = std::as_bytes(std::span{exported});
  done["exported"].assign(bytes.begin(), bytes.end());
  return done;
}

/// Numbers of each step, as text with all digits.
std::vector<std::string> series(train::training_options const& o, std::vector<char const*> const& names) {
  std::vector<std::string> values;
  std::ifstream file{o.metrics};
  for (std::string line; std::getline(file, line);) {
    auto const json = io::json::parse(line);
    if (json.contains("grad_norm")) {
      auto& text = values.emplace_back();
      for (auto const* name : names) { text += json[name].dump() + " "; }
    }
  }
  return values;
}

std::vector<std::string> behind(std::vector<std::string> const& all, std::int64_t steps) {
  return {all.begin() + steps, all.end()};
}

template <class P>
void check_every_step(int ranks, variant const& v) {
  CAPTURE(ranks);
  CAPTURE(v.name);
  constexpr std::int64_t steps = test::under_sanitizer ? 8 : 20;
  std::vector<char const*> const numbers{"loss", "grad_norm", "lr", "epoch", "label_tokens", "tokens"};
  test::scratch_directory const whole;
  auto o = options(whole.path(), steps, v);
  o.save_steps = 1;
  auto const expected = run_on<P>(ranks, o);
  auto const expected_series = series(o, numbers);
  REQUIRE(expected_series.size() == steps);
  std::int64_t const stride = test::under_sanitizer ? steps - 1 : test::in_long_tests(1, 6);
  for (std::int64_t step = 1; step <= steps; step += stride) {
    CAPTURE(step);
    test::fault_case const interrupted{"F13"};
    test::scratch_directory const going_on;
    auto next = options(going_on.path(), steps, v);
    next.resume = (whole.path() / concat("checkpoint-", step)).string();
    CHECK((run_on<P>(ranks, next) == expected));
    CHECK(series(next, numbers) == behind(expected_series, step));
  }
}

TEST_CASE("a run that was interrupted after any step ends with the bits of one that was not") {
  for (int const ranks : test::under_sanitizer ? std::vector{2} : std::vector{1, 2, 4}) {
    check_every_step<precision::fp32>(ranks, {.name = "float32"});
    check_every_step<precision::bf16>(ranks,
                                      {.name = "bf16, off the device", .offload = offload::mode::super});
  }
  for (int const ranks : test::under_sanitizer ? std::vector<int>{} : std::vector{1, 2}) {
    for (auto const format : {state_format::bf16, state_format::int8}) {
      check_every_step<precision::bf16>(
          ranks, {.name = "state of fewer bytes", .offload = offload::mode::super, .format = format});
    }
  }
}

constexpr std::array<variant, 6> variants{
    {{.name = "uneven shards"},
     {.name = "int8 state, off the device", .offload = offload::mode::super, .format = state_format::int8},
     {.name = "tied", .model = "llama_tied", .is_part = true},
     {.name = "frozen", .frozen = true, .is_part = true},
     {.name = "off the device", .offload = offload::mode::super, .is_part = true},
     {.name = "tied, frozen, off the device",
      .model = "llama_tied",
      .offload = offload::mode::super,
      .frozen = true}}};

TEST_CASE("state that some ranks wrote is the same bits on any others") {
  auto const numbers = test::under_sanitizer ? std::vector{1, 2} : std::vector{1, 2, 4};
  auto const some_variants = test::in_long_tests(variants.size(), std::size_t{1});
  for (std::size_t i = 0; i < variants.size(); ++i) {
    auto const& v = variants[i];
    CAPTURE(v.name);
    if (test::under_sanitizer && v.is_part) {
      continue;
    }
    for (int const writers : numbers) {
      if (i >= some_variants && writers != numbers[i % numbers.size()]) {
        continue;
      }
      test::scratch_directory const saved;
      auto o = options(saved.path(), 2, v);
      o.save_steps = 2;
      auto const written = run_on<precision::bf16>(writers, o);
      CHECK(written.size() >= 4);  // weights or the master, both moments, and what is exported
      for (int const readers : numbers) {
        if ((test::under_sanitizer || i >= some_variants) && readers == writers) {
          continue;
        }
        CAPTURE(writers);
        CAPTURE(readers);
        test::scratch_directory const loaded;
        auto next = options(loaded.path(), 2, v);
        next.resume = (saved.path() / "checkpoint-2").string();
        auto const read = run_on<precision::bf16>(readers, next);
        CHECK(read.size() == written.size());
        for (auto const& kind : written) {
          CAPTURE(kind.first);
          test::fault_case const moved{"F14"};
          CHECK((read.at(kind.first) == kind.second));
        }
      }
    }
  }
}

TEST_CASE("a run that goes from 1 rank to 4, to 2 and back to 1 loses no state and no sample") {
  auto const some_variants = test::in_long_tests(variants.size(), std::size_t{2});
  for (std::size_t i = test::under_sanitizer ? some_variants - 1 : 0; i < some_variants; ++i) {
    auto const& v = variants[i];
    CAPTURE(v.name);
    std::vector<char const*> const numbers{"label_tokens", "tokens", "epoch"};
    test::scratch_directory const unbroken;
    auto const whole = options(unbroken.path(), 8, v);
    run_on<precision::bf16>(1, whole);

    test::scratch_directory const place;
    state before;
    std::int64_t steps = 0;
    for (int const ranks : test::under_sanitizer ? std::vector{1, 2} : std::vector{1, 4, 2, 1}) {
      CAPTURE(ranks);
      test::fault_case const moved{"F14"};
      if (steps > 0) {
        test::scratch_directory const loaded;
        auto same = options(loaded.path(), steps, v);
        same.resume = (place.path() / concat("checkpoint-", steps)).string();
        CHECK((run_on<precision::bf16>(ranks, same) == before));
      }
      auto o = options(place.path(), steps + 2, v);
      o.save_steps = 2;
      o.resume = "auto";
      before = run_on<precision::bf16>(ranks, o);
      steps += 2;
      auto const tokens = series(whole, numbers);
      CHECK(series(o, numbers) == std::vector<std::string>(tokens.begin(), tokens.begin() + steps));
    }
  }
}

}  // namespace
