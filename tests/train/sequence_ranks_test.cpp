// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/shared.hpp>
#include <superoffload/model/gpt_oss.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/sharded.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/engine_cores.hpp"
#include "support/precisions.hpp"
#include "support/ranked_threads.hpp"
#include "support/ranked_training.hpp"
#include "support/sanitizer.hpp"

#include <cstddef>
#include <initializer_list>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

// Ranks that share the rows of each micro-batch: engine_options::sequence_ranks.

namespace {

using namespace superoffload;

using test::ranked::options_of;
using test::ranked::record;
using test::ranked::settings;
using test::ranked::worst;

struct llama {
  using type = model::llama;
  static model::config config(settings const& s) {
    auto c = test::ranked::config_of(s.tied, s.layers);
    c.kv_heads = s.kv_heads;
    c.tiled_mlp = s.tiled_mlp;
    return c;
  }
};

/// Attention with sinks and a window, and experts.
struct gpt_oss {
  using type = model::gpt_oss;
  static model::config config(settings const& s) {
    auto c = llama::config(s);
    c.model_type = "gpt_oss";
    c.experts = 4;
    c.experts_per_token = 2;
    c.windows = {4, 0};
    return c;
  }
};

template <class P, class Model = llama>
record alone(settings const& s) {
  cpu::device device{1};
  train::engine<typename Model::type, P> e{device, Model::config(s), options_of(s)};
  return test::ranked::train(e, s, 0, 1);
}

template <class P, class Offload = offload::none, class Model = llama>
record shared(int ranks, settings const& s) {
  return test::ranked::on_threads(ranks, [&](auto& device, auto& group) {
    train::engine<typename Model::type, P, zero::sharded<comm::shared>, Offload> e{
        device, group, Model::config(s), options_of(s)};
    auto const& kept = e.allocation();
    bool const some = s.recompute == recompute::choice::automatic;
    auto const memory =
        some ? kept.total() - kept.activations * 3 / 10 : std::numeric_limits<std::size_t>::max();
    e.configure(test::ranked::configuration_of(e, s, group.rank()), memory);
    conformance::require(!some || (0 < kept.results_recomputed && kept.results_recomputed < kept.results),
                         kept.results_recomputed, " of ", kept.results, " results are recomputed");
    comm::abort_on_exception const guard{group};
    auto const r = test::ranked::train(e, s, group.rank(), ranks);
    test::ranked::require_planned_memory(device, e);
    return r;
  });
}

/// Ranks, and how many of them share a micro-batch.
struct layout {
  int ranks, together;
};
std::vector<layout> layouts() {
  return test::under_sanitizer ? std::vector<layout>{{4, 2}} : std::vector<layout>{{2, 2}, {4, 2}, {4, 4}};
}

template <class P>
void check_near(record const& all, record const& one) {
  double const tolerance = std::is_same_v<P, precision::fp32> ? 2e-5 : 2e-3;
  CHECK(worst(all.losses, one.losses) < tolerance);
  CHECK(worst({all.evaluation}, {one.evaluation}) < tolerance);
  CHECK(worst(all.norms, one.norms) < 20 * tolerance);
  // The first forward has no sum over ranks but that of the loss.
  CHECK(worst({all.losses.front()}, {one.losses.front()}) < 1e-8);
}

TEST_CASE_TEMPLATE("ranks that share micro-batches train as a single rank does", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  for (auto s :
       {settings{.kv_heads = 4}, settings{.tied = true, .micro_batches = 2, .kv_heads = 4},
        settings{.recompute = recompute::choice::every_block, .kv_heads = 4},
        settings{.micro_batches = 2, .recompute = recompute::choice::offload, .layers = 6, .kv_heads = 4}}) {
    CAPTURE(s.tied);
    CAPTURE(s.micro_batches);
    s.sequence_ranks = 1;
    auto const one = alone<P>(s);
    for (auto const& of : layouts()) {
      CAPTURE(of.ranks);
      CAPTURE(of.together);
      s.sequence_ranks = of.together;
      check_near<P>(shared<P>(of.ranks, s), one);
    }
  }
}

TEST_CASE("ranks share micro-batches of a model with sinks, windows and experts") {
  settings s{};
  auto const one = alone<precision::bf16, gpt_oss>(s);
  s.sequence_ranks = 2;
  check_near<precision::bf16>(shared<precision::bf16, offload::none, gpt_oss>(2, s), one);
}

TEST_CASE_TEMPLATE("where ranks share micro-batches, placement and recompute change no bit", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  settings s{.micro_batches = 2, .max_grad_norm = 1e6, .layers = 4, .sequence_ranks = 2};
  auto const expected = shared<P>(4, s);
  CHECK((shared<P>(4, s) == expected));
  CHECK((shared<P, offload::super>(4, s) == expected));
  s.recompute = recompute::choice::every_block;
  CHECK((shared<P>(4, s) == expected));
  s.recompute = recompute::choice::automatic;
  CHECK((shared<P>(4, s) == expected));
  s.recompute = recompute::choice::offload;
  CHECK((shared<P, offload::super>(4, s) == expected));
}

TEST_CASE_TEMPLATE("ranks compute MLPs in tiles, with micro-batches of their own or shared ones", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  for (auto s : {settings{.tiled_mlp = 4},
                 settings{.tied = true, .micro_batches = 2, .max_grad_norm = 1e6, .tiled_mlp = 4}}) {
    CAPTURE(s.micro_batches);
    auto const one = alone<P>(s);
    // Of four ranks, some have no rows.
    auto all =
        test::under_sanitizer ? std::vector<layout>{{2, 2}} : std::vector<layout>{{2, 1}, {2, 2}, {4, 1}};
    for (auto const& of : all) {
      CAPTURE(of.ranks);
      CAPTURE(of.together);
      s.sequence_ranks = of.together;
      s.recompute = recompute::choice::none;
      auto const expected = shared<P>(of.ranks, s);
      check_near<P>(expected, one);
      CHECK((shared<P, offload::super>(of.ranks, s) == expected));
      s.recompute = recompute::choice::every_block;
      CHECK((shared<P>(of.ranks, s) == expected));
    }
  }
}

TEST_CASE("a gradient that overflows where ranks share micro-batches leaves nothing behind") {
  settings s{.sequence_ranks = 2};
  auto const expected = shared<precision::bf16>(4, s);
  for (int const group : {0, 1}) {
    CAPTURE(group);
    s.overflows_on = group;
    CHECK((shared<precision::bf16, offload::super>(4, s) == expected));
  }
}

TEST_CASE("an engine names what its ranks cannot share") {
  auto const refusal = [](int ranks, int together, auto const& change) {
    test::threads_of_a_process groups;
    std::string said;
    std::mutex mutex;
    conformance::all_succeeded(groups.run(ranks, [&](auto& device, auto& group) {
      settings const s{.sequence_ranks = together};
      auto config = llama::config(s);
      change(config);
      try {
        train::engine<model::llama, zero::sharded<comm::shared>> const e{device, group, config,
                                                                         options_of(s)};
        conformance::require(false, "the engine should have been refused");
      } catch (error const& e) {
        conformance::require(e.code() == exit_code::bad_input, "exit code");
        std::lock_guard const lock{mutex};
        said = e.what();
      }
    }));
    return said;
  };
  auto const nothing = [](model::config&) {};
  CHECK(refusal(3, 2, nothing) ==
        "--sequence_parallel is 2, but there are 3 ranks; expected a number that divides them");
  CHECK(refusal(4, 4, nothing) ==
        "--sequence_parallel is 4, but the model has 4 heads and 2 key-value heads; expected a number that "
        "divides both");
}

}  // namespace
