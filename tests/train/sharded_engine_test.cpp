// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/shared.hpp>
#include <superoffload/comm/single.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>
#include <superoffload/zero/sharded.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/engine_cores.hpp"
#include "support/precisions.hpp"
#include "support/ranked_threads.hpp"
#include "support/ranked_training.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
using conformance::require;

using test::ranked::batch_of;
using test::ranked::config_of;
using test::ranked::configuration_of;
using test::ranked::label_tokens_of;
using test::ranked::mixed;
using test::ranked::on_threads;
using test::ranked::options_of;
using test::ranked::record;
using test::ranked::settings;
using test::ranked::some_weights;
using test::ranked::train;
using test::ranked::worst;

template <class P>
record resident(settings const& s) {
  cpu::device device{1};
  train::engine<model::llama, P> e{device, config_of(s.tied, s.layers), options_of(s)};
  return train(e, s, 0, 1);
}

template <class P, class Offload = offload::none>
record sharded(int ranks, settings const& s) {
  return on_threads(ranks, [&](auto& device, auto& group) {
    train::engine<model::llama, P, zero::sharded<comm::shared>, Offload> e{
        device, group, config_of(s.tied, s.layers), options_of(s)};
    e.configure(configuration_of(e, s, group.rank()), std::numeric_limits<std::size_t>::max());
    comm::abort_on_exception const guard{group};
    return train(e, s, group.rank(), ranks);
  });
}

TEST_CASE_TEMPLATE("any number of ranks trains as a single rank does", P, SUPEROFFLOAD_TEST_PRECISIONS) {
  double const tolerance = std::is_same_v<P, precision::fp32> ? 2e-5 : 2e-3;
  for (auto const& s :
       {settings{}, settings{.tied = true}, settings{.micro_batches = 2},
        settings{.tied = true, .micro_batches = 3, .recompute = recompute::choice::every_block},
        settings{.micro_batches = 2, .recompute = recompute::choice::offload, .layers = 6},
        settings{.max_grad_norm = 0.0}}) {
    CAPTURE(s.tied);
    CAPTURE(s.micro_batches);
    auto const one = resident<P>(s);
    for (int const ranks : test::numbers_of_ranks()) {
      CAPTURE(ranks);
      auto const all = sharded<P>(ranks, s);
      CHECK(worst(all.losses, one.losses) < tolerance);
      CHECK(worst({all.evaluation}, {one.evaluation}) < tolerance);
      CHECK(worst(all.norms, one.norms) < 20 * tolerance);
      CHECK(all.weights.size() == one.weights.size());
      CHECK(all.moments.size() == one.moments.size());
      if (ranks == 1 &&
          (s.micro_batches == 1 || tolerance < 1e-4)) {  // the same numbers, added in the same order
        CHECK((s.micro_batches > 1 || all == one));
      }
    }
  }
}

TEST_CASE_TEMPLATE("state off the device gives the same bits on every rank", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  for (auto const& s : {settings{.max_grad_norm = 1e6}, settings{.tied = true, .micro_batches = 2},
                        settings{.max_grad_norm = 0.0, .speculates = false}}) {
    CAPTURE(s.tied);
    for (int const ranks : test::numbers_of_ranks()) {
      CAPTURE(ranks);
      CHECK((sharded<P, offload::super>(ranks, s) == sharded<P>(ranks, s)));
    }
  }
}

TEST_CASE_TEMPLATE("a gradient that overflows on one rank alone leaves nothing behind on any", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  constexpr int ranks = 3;
  for (auto s : {settings{}, settings{.micro_batches = 2, .max_grad_norm = 1e6}}) {
    CAPTURE(s.micro_batches);
    auto const expected = sharded<P>(ranks, s);
    for (int const rank : test::under_sanitizer ? std::vector{1} : std::vector{0, 1, 2}) {
      CAPTURE(rank);
      s.overflows_on = rank;
      if (!test::under_thread_sanitizer) {  // the other has its threads, and more
        CHECK((sharded<P>(ranks, s) == expected));
      }
      CHECK((sharded<P, offload::super>(ranks, s) == expected));
    }
  }
}

TEST_CASE_TEMPLATE("several copies of the weights change no bit, and sums in copies the order of sums", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  double const tolerance = std::is_same_v<P, precision::fp32> ? 2e-5 : 2e-3;
  std::vector<settings> all{{.tied = true, .micro_batches = 2}, {.micro_batches = 3, .weight_buffers = 9}};
  if (!test::under_sanitizer) {
    all.insert(all.end(), {{.layers = 3}, {.tied = true, .recompute = recompute::choice::every_block}});
  }
  for (auto s : all) {
    CAPTURE(s.tied);
    CAPTURE(s.micro_batches);
    for (int const ranks : test::under_sanitizer ? std::vector{2} : std::vector{2, 4}) {
      CAPTURE(ranks);
      s.weight_ranks = 0;
      auto const one_copy = sharded<P>(ranks, s);
      for (int weight_ranks = 1; weight_ranks < ranks; weight_ranks *= 2) {
        CAPTURE(weight_ranks);
        s.weight_ranks = weight_ranks;
        s.sums_in_copies = false;
        CHECK(test::ranked::difference(sharded<P>(ranks, s), one_copy) == "");
        s.sums_in_copies = true;
        auto const summed = sharded<P, offload::super>(ranks, s);
        CHECK((sharded<P>(ranks, s) == summed));
        if (s.micro_batches == 1) {
          CHECK((summed == one_copy));
        } else {
          CHECK(worst(summed.losses, one_copy.losses) < tolerance);
          CHECK(worst(summed.norms, one_copy.norms) < 20 * tolerance);
        }
      }
    }
  }
}

TEST_CASE("ranks that give a step other arguments are all refused before it changes anything") {
  using engine = train::engine<model::llama, precision::fp32, zero::sharded<comm::shared>>;
  for (bool const rates : {true, false}) {
    CAPTURE(rates);
    auto const outcomes = test::threads_of_a_process{}.run(3, [=](auto& device, auto& group) {
      engine e{device, group, config_of(false), options_of({})};
      comm::abort_on_exception const guard{group};
      e.initialize(some_weights);
      bool const other = group.rank() == 1;
      e.begin_step(label_tokens_of(0) + (other && !rates ? 1 : 0));
      e.forward(batch_of(0, 0, 5));
      e.backward();
      e.step(other && rates ? 3e-4 : 2e-4);
    });
    for (auto const& said : outcomes) {
      CHECK(said.starts_with(
          rates ? "ranks differ in the learning rate of a step: rank 0 has 2e-04, rank 1 has "
                  "3e-04; expected the same on all"
                : "ranks differ in the label tokens of a step: rank 0 has "));
    }
  }
}

TEST_CASE("copies of the weights are of a number of ranks that divides them") {
  using engine = train::engine<model::llama, precision::fp32, zero::sharded<comm::shared>>;
  auto const outcomes = test::threads_of_a_process{}.run(2, [](auto& device, auto& group) {
    engine e{device, group, config_of(false), options_of({})};
    offload::configuration configuration;
    configuration.weight_ranks = 3;
    e.configure(configuration, std::numeric_limits<std::size_t>::max());
  });
  for (auto const& said : outcomes) {
    CHECK(said == "--hybrid_sharding is 3, but there are 2 ranks; expected a number that divides them");
  }
}

std::vector<int> const numbers_of_ranks = test::under_sanitizer ? std::vector{2} : std::vector{1, 2, 3};

TEST_CASE_TEMPLATE("weights that stay gathered from forward to backward change no bit", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  for (auto s : {settings{.recompute = recompute::choice::offload, .layers = 6},
                 settings{.tied = true, .micro_batches = 2, .layers = 5},
                 settings{.micro_batches = 3, .recompute = recompute::choice::every_block, .layers = 4}}) {
    CAPTURE(s.tied);
    for (int const ranks : numbers_of_ranks) {
      CAPTURE(ranks);
      s.weight_buffers = 3;
      auto const expected = sharded<P>(ranks, s);
      for (int const buffers : test::under_thread_sanitizer ? std::vector{5} : std::vector{5, 99}) {
        CAPTURE(buffers);
        s.weight_buffers = buffers;
        CHECK((sharded<P>(ranks, s) == expected));
      }
      CHECK((sharded<P, offload::super>(ranks, s) == expected));
    }
  }
}

/// Results of the immediate mode with gradients that share `buffers` device buffers; 0: they stay.
template <class P>
record offloading(int ranks, settings const& s, int buffers, bool blocks_only = false) {
  return on_threads(ranks, [&](auto& device, auto& group) {
    train::engine<model::llama, P, zero::offloaded_or_sharded<comm::shared>, offload::super> e{
        device, group, config_of(s.tied, s.layers), options_of(s)};
    auto const stays = e.allocation().gradients;
    auto a = configuration_of(e, s, group.rank());
    a.immediate = true;
    if (buffers > 0) {
      a.offloaded.gradients.assign(e.model().units().size(), true);
      a.offloaded.gradients.front() = a.offloaded.gradients.back() = !blocks_only;
      a.offloaded.gradient_buffers = buffers;
    }
    e.configure(std::move(a), std::numeric_limits<std::size_t>::max());
    require((e.allocation().gradients < stays) == (buffers > 0 && buffers < s.layers), "gradients take ",
            e.allocation().gradients, " bytes, ", stays, " where they stay");
    comm::abort_on_exception const guard{group};
    auto const r = train(e, s, group.rank(), ranks);
    test::ranked::require_planned_memory(device, e);
    return r;
  });
}

TEST_CASE_TEMPLATE("offloaded gradients of shards change no bit", P, SUPEROFFLOAD_TEST_PRECISIONS) {
  for (auto const& s :
       {settings{.recompute = recompute::choice::offload, .immediate = true, .layers = 6},
        settings{
            .tied = true, .recompute = recompute::choice::every_block, .immediate = true, .layers = 4}}) {
    CAPTURE(s.tied);
    for (int const ranks : numbers_of_ranks) {
      CAPTURE(ranks);
      auto const expected = offloading<P>(ranks, s, 0);
      CHECK(offloading<P>(ranks, s, 3, true) == expected);
      CHECK(offloading<P>(ranks, s, 2) == expected);
      CHECK(offloading<P>(ranks, s, 1, true) == expected);
      auto whole = s;
      whole.weight_buffers = 99;
      CHECK(offloading<P>(ranks, whole, 2) == expected);
    }
  }
}

TEST_CASE("a rank's engine refuses offloading that shards do not support") {
  cpu::device device{1};
  comm::single_communicator<cpu::device> group;
  auto const refused = [&](bool several, auto const& change) {
    settings s{.micro_batches = several ? 2 : 1, .immediate = true};
    train::engine<model::llama, zero::offloaded_or_sharded<comm::single>, offload::super> e{
        device, group, config_of(false), options_of(s)};
    offload::configuration a;
    a.buckets = mixed(e.units_of_state(), 0);
    a.immediate = true;
    a.offloaded.gradients = {false, true, true, false};
    change(a);
    try {
      e.configure(a, std::numeric_limits<std::size_t>::max());
      FAIL("the configuration should have been refused");
    } catch (error const& refusal) { CHECK(refusal.code() == exit_code::bad_input); }
  };
  refused(false, [](auto& a) { a.immediate = false; });
  refused(false, [](auto& a) { a.offloaded.weights = {false, true, true, false}; });
  refused(true, [](auto&) {});
}

TEST_CASE("ranks that are processes train as threads do") {
  settings const s{.tied = true, .micro_batches = 2};
  auto const threads = sharded<precision::bf16>(2, s);
  test::processes groups;
  groups.settings.piece_bytes = 1U << 18;
  conformance::all_succeeded(groups.run(2, [&](auto& device, auto& group) {
    train::engine<model::llama, precision::bf16, zero::sharded<comm::shared>> e{
        device, group, config_of(s.tied, s.layers), options_of(s)};
    comm::abort_on_exception const guard{group};
    require(train(e, s, group.rank(), 2) == threads, "processes differ from threads");
  }));
}

TEST_CASE("the same run on several ranks gives the same bits") {
  settings const s{.tied = true, .micro_batches = 2};
  CHECK(sharded<precision::bf16>(3, s) == sharded<precision::bf16>(3, s));
}

TEST_CASE("the state of one number of ranks is that of another, bit for bit") {
  auto const state_of = [](int ranks, std::vector<float> const* from) {
    test::threads_of_a_process groups;
    groups.settings.piece_bytes = 1U << 18;
    std::vector<float> read;
    std::mutex mutex;
    conformance::all_succeeded(groups.run(ranks, [&](auto& device, auto& group) {
      settings const s{};
      train::engine<model::llama, precision::bf16, zero::sharded<comm::shared>> e{
          device, group, config_of(false), options_of(s)};
      comm::abort_on_exception const guard{group};
      e.initialize(some_weights);
      std::vector<float> all;
      std::size_t at = 0;
      for (auto const& field : e.state_fields()) {
        std::vector<float> values(field.bytes / sizeof(float));
        if (from != nullptr) {
          // In pieces that do not match shards.
          for (std::size_t first = 0; first < values.size(); first += 30011) {
            auto const n = std::min<std::size_t>(30011, values.size() - first);
            e.write_state(field, first * sizeof(float),
                          std::as_bytes(std::span{*from}.subspan(at + first, n)));
          }
        }
        at += values.size();
        e.read_state(field, 0, std::as_writable_bytes(std::span{values}));
        all.insert(all.end(), values.begin(), values.end());
      }
      std::lock_guard const lock{mutex};
      read = all;
    }));
    return read;
  };
  auto state = state_of(1, nullptr);
  // Padding is zero in every state and stays zero.
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (state[i] != 0.0F) {
      state[i] += 1e-3F * static_cast<float>(i % 17);
    }
  }
  for (int const ranks : {1, 2, 3, 4}) {
    CAPTURE(ranks);
    CHECK((state_of(ranks, &state) == state));
  }
}

TEST_CASE(
    "a step without labels, or with a gradient that is not finite on one rank, changes nothing on any rank") {
  test::threads_of_a_process groups;
  conformance::all_succeeded(groups.run(2, [&](auto& device, auto& group) {
    train::engine<model::llama, zero::sharded<comm::shared>> e{device, group, config_of(false),
                                                               options_of({})};
    comm::abort_on_exception const guard{group};
    e.initialize([](std::string const& name, std::int64_t first, std::span<float> to) {
      some_weights(name, first, to);
      if (name == "model.norm.weight" && first == 0) {
        to[0] = 3e38F;  // GEMMs with it overflow
      }
    });
    auto const weights = [&] {
      std::vector<float> all(static_cast<std::size_t>(e.model().units()[1].elements()));
      e.read_weights(e.model().units()[1], 0, all);
      return all;
    };
    auto const before = weights();
    auto const nothing = batch_of(0, 3, 4);  // no targets
    e.begin_step(0);
    e.forward(nothing);
    e.backward();
    require(!e.step(1e-2).accepted, "a step without labels");
    auto const some = batch_of(0, 0, 1);
    e.begin_step(some.label_tokens());
    e.forward(group.rank() == 0 ? some : nothing);
    e.backward();
    auto const result = e.step(2e-4);
    require(!result.accepted && !std::isfinite(result.grad_norm), "norm ", result.grad_norm);
    require(weights() == before, "the weights changed");
    require(e.accepted_steps() == 0, "steps");
  }));
}

TEST_CASE("a rank allocates what its plan says, and less with more ranks") {
  std::vector<std::size_t> states;
  for (int const ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    test::threads_of_a_process groups;
    std::size_t state = 0;
    std::mutex mutex;
    conformance::all_succeeded(groups.run(ranks, [&](auto& device, auto& group) {
      train::engine<model::llama, precision::bf16, zero::sharded<comm::shared>> e{
          device, group, config_of(false), options_of({})};
      auto const of_three = e.allocation().weights;
      offload::configuration a;
      a.buffers.weights = group.ranks();  // a different number in each run
      e.configure(std::move(a), std::numeric_limits<std::size_t>::max());
      require((e.allocation().weights > of_three) == (group.ranks() == 4), "buffers take ",
              e.allocation().weights);
      e.initialize(some_weights);
      test::ranked::require_planned_memory(device, e);
      e.synchronize();
      std::lock_guard const lock{mutex};
      state = e.allocation().optimizer_state;
    }));
    states.push_back(state);
  }
  CHECK(states[1] < states[0]);
  CHECK(states[2] < states[1]);
}

TEST_CASE(
    "ranks with different configurations are refused with the difference, before anything is allocated") {
  auto const outcomes_of = [](auto&& change) {
    test::threads_of_a_process groups;
    return groups.run(2, [&](auto& device, auto& group) {
      auto config = config_of(false);
      auto options = options_of({});
      if (group.rank() == 1) {
        change(config, options);
      }
      train::engine<model::llama, zero::sharded<comm::shared>> e{device, group, config, options};
      comm::abort_on_exception const guard{group};
      e.initialize(some_weights);
    });
  };
  auto const check = [&](auto&& change, std::string_view said) {
    for (auto const& outcome : outcomes_of(change)) {
      CAPTURE(outcome);
      CHECK(outcome.find(said) != std::string::npos);
    }
  };
  check([](auto& c, auto&) { c.layers = 3; }, "ranks differ in the layout of the model: rank 0 has '");
  check([](auto&,
           auto& o) { o.trainable = [](auto const& t) { return t.name.find("norm") == std::string::npos; }; },
        "ranks differ in the layout of the model");
  check([](auto&, auto& o) { o.max_grad_norm = 0.5; },
        "ranks differ in max_grad_norm: rank 0 has '1' (1 bytes), rank 1 has '0.5'");
  check([](auto&, auto& o) { o.adamw.weight_decay = 0.25; }, "ranks differ in the settings of AdamW");
  check([](auto&, auto& o) { o.accumulates = true; }, "ranks differ in accumulates: rank 0 has 'false'");
  check([](auto&, auto& o) { o.configuration.buffers.weights = 4; },
        "ranks differ in gather buffers: rank 0 has '3 3' (3 bytes), rank 1 has '4 3'");
}

TEST_CASE("an exception on one rank ends the training of all") {
  test::threads_of_a_process groups;
  auto const outcomes = groups.run(3, [&](auto& device, auto& group) {
    train::engine<model::llama, zero::sharded<comm::shared>> e{device, group, config_of(false),
                                                               options_of({})};
    comm::abort_on_exception const guard{group};
    e.initialize(some_weights);
    for (int step = 0;; ++step) {
      e.begin_step(label_tokens_of(step));
      e.forward(batch_of(step, 0, 5));
      require(step < 2 || group.rank() != 1, "no data");
      e.backward();
      e.step(1e-3);
    }
  });
  CHECK(outcomes[1] == "no data");
  for (auto const r : {0U, 2U}) { CHECK(outcomes[r].find("rank 1 failed") == 0); }
}

}  // namespace
