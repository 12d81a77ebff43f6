// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Ranks, as processes, that end, fail or stop while an engine trains: every other rank names the culprit.
#include <superoffload/comm/shared.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "support/engine_cores.hpp"
#include "support/fault_case.hpp"
#include "support/rank_fault.hpp"
#include "support/sanitizer.hpp"
#include "support/small_inputs.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
using engine =
    train::engine<model::llama, precision::bf16, zero::offloaded_or_sharded<comm::shared>, offload::super>;

using test::fault;
/// The point of a step at which the fault happens; `anywhere`: by a timer.
enum class phase {
  loading,
  before_forward,
  before_backward,
  before_step,
  evaluating,
  reading_state,
  anywhere
};
constexpr int phases = 7;

/// A model whose first unit has a cell of the norm's grid for each rank, so that all ranks read weights.
model::config tiny() {
  return {.model_type = "llama",
          .vocabulary = 2100,
          .hidden = 64,
          .intermediate = 96,
          .layers = 2,
          .heads = 2,
          .kv_heads = 1,
          .head_dim = 32,
          .max_positions = 16,
          .tied_head = true};
}

/// Trains; the culprit has fault `what` at point `where` of step `when`.
void train_until(engine& e, bool is_victim, fault what, phase where, int when, int delay_us) {
  auto const at = [&](phase here, int now) {
    if (is_victim && here == where && now == when) {
      commit(what);
    }
  };
  e.initialize([&](std::string const& name, std::int64_t first, std::span<float> to) {
    at(phase::loading, when);
    test::some_weights(name, first, to);
  });
  std::thread clock;
  if (is_victim && where == phase::anywhere) {
    clock = std::thread{[=] {
      std::this_thread::sleep_for(std::chrono::microseconds{delay_us});
      commit(what);
    }};
    clock.detach();
  }
  auto const batch = test::batch_of({1, 2, 3, 700, 5});
  for (int now = 0;; ++now) {
    at(phase::before_forward, now);
    e.begin_step(4 * 3, 1, 1e-3);
    e.forward(batch);
    at(phase::before_backward, now);
    e.backward();
    at(phase::before_step, now);
    e.step(1e-3);
    at(phase::evaluating, now);
    e.evaluate(batch);
    at(phase::reading_state, now);
    auto const field = e.state_fields().front();
    std::vector<std::byte> some(256);
    e.read_state(field, 0, some);
  }
}

TEST_CASE("the end of a rank in training ends all others with its name") {
  std::mt19937 random{5};
  int const cases = test::in_long_tests(840, test::under_sanitizer ? 16 : 64);
  constexpr int ranks = 3;
  for (int i = 0; i < cases; ++i) {
    auto const where = static_cast<phase>(i % phases);
    auto const what = i % 16 == 15               ? fault::stops
                      : where == phase::anywhere ? (i % 2 == 0 ? fault::killed : fault::exits)
                                                 : static_cast<fault>(random() % 3);
    int const victim = static_cast<int>(random() % ranks);
    int const when = static_cast<int>(random() % 3);
    int const delay_us = static_cast<int>(random() % 20000);
    CAPTURE(i);
    CAPTURE(victim);
    CAPTURE(when);
    test::fault_case const injected{"F16"};
    test::processes groups;
    groups.stops = what == fault::stops ? victim : -1;
    groups.settings.piece_bytes = 1U << 16;
    groups.settings.patience = std::chrono::milliseconds{groups.stops >= 0 ? 400 : 60000};
    auto const outcomes = groups.run(ranks, [=](auto& device, auto& group) {
      engine e{device, group, tiny(), {.max_rows = 8, .max_positions = 8}};
      offload::configuration tiers;
      tiers.buckets = offload::buckets_of(e.units_of_state(), 1);
      for (std::size_t b = 0; b < tiers.buckets.size(); ++b) {
        tiers.buckets[b].where = b % 2 == 0 ? offload::tier::host : offload::tier::resident;
      }
      e.configure(std::move(tiers), std::numeric_limits<std::size_t>::max());
      comm::abort_on_exception const guard{group};
      train_until(e, group.rank() == victim, what, where, when, delay_us);
    });
    for (int r = 0; r < ranks; ++r) {
      CAPTURE(r);
      auto const& said = outcomes[static_cast<std::size_t>(r)];
      CAPTURE(said);
      if (r != victim) {
        CHECK(said.find("rank " + std::to_string(victim)) == 0);
      } else {
        CHECK(said == (what == fault::throws ? "the disk is gone" : "ended"));
      }
    }
  }
}

}  // namespace
