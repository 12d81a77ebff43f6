// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/range.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"
#include "support/placed_training.hpp"
#include "support/precisions.hpp"
#include "support/recording_listener.hpp"
#include "support/small_inputs.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <concepts>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
using test::batch_of;
using test::some_weights;

static_assert(std::same_as<train::engine<model::llama, precision::bf16, recompute::every_block>,
                           train::engine<recompute::every_block, precision::bf16, model::llama>>);
static_assert(
    std::same_as<train::engine<model::llama>,
                 train::engine<model::llama, cpu::device, precision::fp32, zero::resident, offload::none>>);
static_assert(std::same_as<train::engine<model::llama>, train::engine<model::llama, profile::none>>);

model::config small() {
  return {.model_type = "llama",
          .vocabulary = 19,
          .hidden = 16,
          .intermediate = 24,
          .layers = 2,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 4,
          .max_positions = 32};
}

template <class Engine>
std::vector<float> all_weights(Engine& e) {
  std::vector<float> all;
  for (auto const& unit : e.model().units()) {
    std::vector<float> part(static_cast<std::size_t>(unit.elements()));
    e.read_weights(unit, 0, part);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST_CASE_TEMPLATE("an engine allocates what its plan says", P, SUPEROFFLOAD_TEST_PRECISIONS) {
  for (auto const recompute : {recompute::choice::none, recompute::choice::every_block}) {
    for (bool const accumulates : {false, true}) {
      cpu::device device{2};
      train::engine<model::llama, P> e{
          device,
          small(),
          {.max_rows = 24, .max_positions = 12, .accumulates = accumulates, .recompute = recompute}};
      CHECK(device.bytes_in_use() == 0);
      e.initialize(some_weights);
      CHECK(static_cast<double>(device.bytes_in_use()) ==
            doctest::Approx(static_cast<double>(e.allocation().total())).epsilon(0.03));
      e.forward(batch_of({1, 2, 3, 4, 5}));
      e.backward();
      e.step(1e-3);
      e.synchronize();
      CHECK(static_cast<double>(device.peak_bytes()) ==
            doctest::Approx(static_cast<double>(e.allocation().total())).epsilon(0.03));
    }
  }
}

/// The CPU, whose streams take and keep memory at their first kernel, as a GPU's do.
struct keeping_device : cpu::device {
  using cpu::device::device;
  static constexpr std::size_t gemm_workspace_bytes = 3'000'000;
  struct stream : cpu::stream {
    explicit stream(keeping_device& on) : cpu::stream{on}, device{&on} {}
    template <class Arguments>
    friend void launch(stream& on, Arguments const& arguments) {
      if (on.workspace.bytes() == 0) {
        on.workspace = buffer<cpu::device>{*on.device, gemm_workspace_bytes};
      }
      launch(static_cast<cpu::stream&>(on), arguments);
    }
    keeping_device* device;
    buffer<cpu::device> workspace{};
  };
};

TEST_CASE("the plan includes a stream's memory for GEMMs") {
  keeping_device device{2};
  train::engine<model::llama, keeping_device> e{device, small(), {.max_rows = 24, .max_positions = 12}};
  CHECK(e.allocation().workspaces == keeping_device::gemm_workspace_bytes);
  e.initialize(some_weights);
  e.forward(batch_of({1, 2, 3, 4, 5}));
  e.backward();
  e.step(1e-3);
  e.synchronize();
  CHECK(device.peak_bytes() == e.allocation().total());
}

TEST_CASE("automatic recompute uses the available memory, and no more") {
  cpu::device device{2};
  train::engine<model::llama> e{
      device, small(), {.max_rows = 24, .max_positions = 12, .recompute = recompute::choice::automatic}};
  auto const everything = e.allocation();
  CHECK(everything.results_recomputed == 0);
  e.fit_into(everything.total());
  CHECK(e.allocation().total() == everything.total());
  std::size_t before = 0;
  for (std::size_t memory = everything.total() - everything.activations; memory < everything.total();
       memory += 512) {
    e.fit_into(memory);
    CHECK(e.allocation().results_recomputed > 0);
    CHECK(e.allocation().recomputed_flops_per_token > 0.0);
    CHECK((e.allocation().total() <= memory ||
           e.allocation().results_recomputed == e.allocation().results - 2));
    CHECK(e.allocation().activations >= before);
    before = e.allocation().activations;
  }
}

TEST_CASE_TEMPLATE("a smaller micro-batch keeps more in the same memory, which changes no bit", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  auto const documents = [](int count) {
    data::batch all;
    for (int i = 0; i < count; ++i) {
      auto const one = batch_of({1 + i % 5, 2, 3, 4, 5 + i % 3, 6, 7, 8});
      all.tokens.insert(all.tokens.end(), one.tokens.begin(), one.tokens.end());
      all.targets.insert(all.targets.end(), one.targets.begin(), one.targets.end());
      all.positions.insert(all.positions.end(), one.positions.begin(), one.positions.end());
      all.starts.push_back(8 * i);
    }
    all.starts.push_back(8 * count);
    return all;
  };
  train::engine_options options{
      .max_rows = 1024, .max_positions = 16, .recompute = recompute::choice::automatic};
  train::engine<model::llama, P> adapting{device, small(), options};
  auto const least = adapting.allocation().total() - adapting.allocation().activations;
  adapting.fit_into(least);  // the largest micro-batch keeps the inputs of blocks alone
  options.recompute = recompute::choice::none;
  train::engine<model::llama, P> keeping{device, small(), options};
  adapting.initialize(some_weights);
  keeping.initialize(some_weights);
  double before = 0.0;
  for (int const count : {8, 32, 64, 96, 112, 128, 8}) {
    CAPTURE(count);
    auto const batch = documents(count);
    CHECK(adapting.forward(batch) == keeping.forward(batch));
    adapting.backward();
    keeping.backward();
    CHECK(adapting.step(1e-3).grad_norm == keeping.step(1e-3).grad_norm);
    auto const of_token = adapting.recomputed_flops() / static_cast<double>(batch.rows());
    if (count == 8) {
      CHECK(of_token == 0.0);
    } else {
      CHECK(of_token >= before);
      before = of_token;
    }
    CHECK(keeping.recomputed_flops() == 0.0);
  }
  CHECK(before == adapting.allocation().recomputed_flops_per_token);
  CHECK(before > 0.0);
}

TEST_CASE_TEMPLATE("training lowers the loss of a repeated batch", P, SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  train::engine<model::llama, P> e{device, small(), {.max_rows = 12, .max_positions = 12}};
  e.initialize(some_weights);
  auto const batch = batch_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  double const before = e.evaluate(batch) / 11.0;
  double first = 0.0;
  for (int i = 0; i < 60; ++i) {
    double const loss = e.forward(batch);
    if (i == 0) {
      first = loss;
    }
    e.backward();
    CHECK(e.step(1e-2).accepted);
  }
  CHECK(first == doctest::Approx(before).epsilon(1e-6));
  CHECK(e.evaluate(batch) / 11.0 < 0.5 * before);
  CHECK(e.accepted_steps() == 60);
}

TEST_CASE("errors of a device name the engine's queued work") {
  cpu::device device{1};
  train::engine<model::llama> e{device, small(), {.max_rows = 8, .max_positions = 8}};
  e.initialize(some_weights);
  CHECK(last_range() == "loading of weights");
  auto const b = batch_of({1, 2, 3, 4, 5, 6, 7, 8});
  e.forward(b);
  CHECK(last_range() == "forward of head");
  e.backward();
  CHECK(last_range() == "backward of embedding");
  REQUIRE(e.step(1e-3).accepted);
  CHECK(last_range() == "optimizer step");
}

TEST_CASE(
    "a profiler gets ranges for every unit's passes, the gradient check, the update and the host's tasks") {
  test::recording_listener heard;
  test::recorded::heard = &heard;
  std::vector<std::string> const step{"forward of embedding", "forward of layer 0",    "forward of layer 1",
                                      "forward of head",      "backward of head",      "backward of layer 1",
                                      "backward of layer 0",  "backward of embedding", "gradient check",
                                      "optimizer step"};
  {
    cpu::device device{2};
    train::engine_options options{.max_rows = 8, .max_positions = 8};
    options.configuration.buckets = offload::buckets_of(model::llama{small()}.units(), 1);
    for (auto& b : options.configuration.buckets) { b.where = offload::tier::host; }
    train::engine<model::llama, offload::super, test::recorded> e{device, small(), options};
    e.initialize(some_weights);
    CHECK(heard.of_this_thread().empty());
    auto const b = batch_of({1, 2, 3, 4, 5, 6, 7, 8});
    e.forward(b);
    e.backward();
    REQUIRE(e.step(1e-3).accepted);
    CHECK(heard.of_this_thread() == step);
  }
  auto const tasks = heard.of_others();
  for (auto const* const task :
       {"update of embedding", "update of layer 0", "update of layer 1", "update of head"}) {
    CHECK(std::count(tasks.begin(), tasks.end(), task) == 1);
  }
  CHECK(heard.balanced());
}

TEST_CASE("a step without labels, or with a gradient that is not finite, changes nothing") {
  cpu::device device{2};
  train::engine<model::llama, precision::bf16> e{device, small(), {.max_rows = 12, .max_positions = 12}};
  e.initialize(some_weights);
  auto const before = all_weights(e);
  SUBCASE("no labels") {
    auto batch = batch_of({1, 2, 3});
    batch.targets = {-1, -1, -1};
    CHECK(e.forward(batch) == 0.0);
    e.backward();
    CHECK_FALSE(e.step(1.0).accepted);
  }
  SUBCASE("not finite") {
    for (auto const& field : e.state_fields()) {
      float const infinity = std::numeric_limits<float>::infinity();
      if (field.name == "unit3.master") {
        e.write_state(field, 0, std::as_bytes(std::span{&infinity, 1}));
      }
    }
    auto const poisoned = all_weights(e);
    e.forward(batch_of({1, 2, 3, 4}));
    e.backward();
    auto const result = e.step(1.0);
    CHECK_FALSE(result.accepted);
    CHECK_FALSE(std::isfinite(result.grad_norm));
    CHECK(all_weights(e) == poisoned);
    CHECK(e.accepted_steps() == 0);
    return;
  }
  CHECK(all_weights(e) == before);
  CHECK(e.accepted_steps() == 0);
}

TEST_CASE_TEMPLATE("several threads load the weights that one loads, and none does unasked", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  train::engine_options options{.max_rows = 12, .max_positions = 12};
  train::engine<model::llama, P> one{device, small(), options};
  std::atomic<int> inside{0};
  std::atomic<bool> alone{true};
  one.initialize([&](std::string const& name, std::int64_t first, std::span<float> to) {
    if (inside.fetch_add(1) != 0) {
      alone = false;
    }
    some_weights(name, first, to);
    inside.fetch_sub(1);
  });
  CHECK(alone);

  options.configuration =
      test::configure(one.model().units(), {.offloaded = test::offloading_case::units::none, .tiers = "hsr"});
  train::engine<model::llama, P, offload::super> several{device, small(), options};
  train::tensor_reader reader{some_weights};
  reader.is_concurrent = true;
  several.initialize(reader);
  CHECK(all_weights(several) == all_weights(one));

  train::tensor_reader failing{[](std::string const& name, std::int64_t first, std::span<float> to) {
    expect(name.find("layers.1.mlp") == std::string::npos, exit_code::io_failure, name, " cannot be read");
    some_weights(name, first, to);
  }};
  failing.is_concurrent = true;
  CHECK_THROWS_AS(several.load(failing), error);
}

TEST_CASE_TEMPLATE("state is master, m and v in fp32, and another engine continues from it bit for bit", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  auto const freezes_embedding = [](autograd::tensor_entry const& t) {
    return t.name.find("embed") == std::string::npos;
  };
  train::engine_options const options{.max_rows = 12, .max_positions = 12, .trainable = freezes_embedding};
  train::engine<model::llama, P> first{device, small(), options}, second{device, small(), options};
  first.initialize(some_weights);
  second.initialize([](auto const&, auto, auto to) { std::fill(to.begin(), to.end(), 1.0F); });
  auto const batch = batch_of({1, 2, 3, 4, 5, 6});
  auto const go_on = [&](auto& engine, int steps) {
    for (int i = 0; i < steps; ++i) {
      engine.forward(batch);
      engine.backward();
      engine.step(1e-2);
    }
  };
  go_on(first, 3);
  std::vector<std::string> names;
  for (auto const& field : first.state_fields()) {
    names.push_back(field.name);
    std::vector<std::byte> bytes(field.bytes);
    first.read_state(field, 0, bytes);
    std::size_t const half = field.bytes / 8 * 4;
    second.write_state(field, half, std::span{bytes}.subspan(half));
    second.write_state(field, 0, std::span{bytes}.first(half));
  }
  CHECK(names == std::vector<std::string>{"unit0.weights", "unit1.master", "unit1.m", "unit1.v",
                                          "unit2.master", "unit2.m", "unit2.v", "unit3.master", "unit3.m",
                                          "unit3.v"});
  second.set_accepted_steps(first.accepted_steps());
  CHECK(all_weights(second) == all_weights(first));
  go_on(first, 3);
  go_on(second, 3);
  CHECK(all_weights(second) == all_weights(first));
  std::byte byte{};
  auto const field = first.state_fields().front();
  CHECK_THROWS_WITH_AS(first.read_state(field, field.bytes, {&byte, 1}), doctest::Contains("unit0.weights"),
                       error);
}

TEST_CASE("a micro-batch without rows takes part with a zero gradient") {
  auto const train_on = [](std::vector<data::batch> const& micro_batches) {
    cpu::device device{2};
    train::engine<model::llama> e{
        device, small(), {.max_rows = 12, .max_positions = 12, .accumulates = true}};
    e.initialize(some_weights);
    e.begin_step(4, static_cast<std::int64_t>(micro_batches.size()));
    for (auto const& batch : micro_batches) {
      e.forward(batch);
      e.backward();
    }
    e.step(1e-2);
    return all_weights(e);
  };
  data::batch empty;
  empty.starts = {0};
  auto const batch = batch_of({1, 2, 3, 4, 5});
  auto const expected = train_on({batch});
  CHECK(train_on({batch, empty}) == expected);
  CHECK(train_on({empty, batch}) == expected);
}

TEST_CASE("frozen tensors keep their bits and are not in the norm") {
  cpu::device device{2};
  auto const frozen = [](autograd::tensor_entry const& t) {
    return t.name.find("q_proj") != std::string::npos || t.name.find("embed") != std::string::npos;
  };
  train::engine<model::llama, precision::bf16> e{
      device, small(), {.max_rows = 12, .max_positions = 12, .trainable = [&](auto const& t) {
                          return !frozen(t);
                        }}};
  train::engine<model::llama, precision::bf16> whole{device, small(), {.max_rows = 12, .max_positions = 12}};
  e.initialize(some_weights);
  whole.initialize(some_weights);
  auto const before = all_weights(e);
  for (auto* engine : {&e}) {
    engine->forward(batch_of({1, 2, 3, 4, 5}));
    engine->backward();
  }
  whole.forward(batch_of({1, 2, 3, 4, 5}));
  whole.backward();
  CHECK(e.step(1e-2).grad_norm < whole.step(1e-2).grad_norm);
  auto const after = all_weights(e);
  std::size_t at = 0;
  for (auto const& unit : e.model().units()) {
    for (auto const& tensor : unit.tensors()) {
      CAPTURE(tensor.name);
      auto const begin = at + static_cast<std::size_t>(tensor.offset);
      bool const same =
          std::equal(before.begin() + begin, before.begin() + begin + tensor.count(), after.begin() + begin);
      CHECK(same == frozen(tensor));
    }
    at += static_cast<std::size_t>(unit.elements());
  }
}

TEST_CASE("calls that do not fit the plan or the contract are refused with a message") {
  cpu::device device{1};
  CHECK_THROWS_WITH_AS((train::engine<model::llama>{device, small(), {}}),
                       doctest::Contains("at least one token"), error);
  auto other = small();
  other.model_type = "mamba";
  CHECK_THROWS_WITH_AS((train::engine<model::llama>{device, other, {.max_rows = 1, .max_positions = 1}}),
                       doctest::Contains("'mamba'"), error);
  train::engine<model::llama> e{device, small(), {.max_rows = 4, .max_positions = 4}};
  CHECK_THROWS_WITH_AS(e.initialize([](auto const&, auto, auto to) {
    for (auto& value : to) { value = std::numeric_limits<float>::quiet_NaN(); }
  }),
                       doctest::Contains("not finite"), error);
  train::engine<model::llama> empty{device, small(), {.max_rows = 4, .max_positions = 4}};
  CHECK_THROWS_WITH_AS(empty.forward(batch_of({1, 2})), doctest::Contains("initialize() first"), error);
  CHECK_THROWS_WITH_AS(empty.evaluate(batch_of({1, 2})), doctest::Contains("initialize() first"), error);
  e.initialize(some_weights);
  CHECK_THROWS_WITH_AS(e.forward(batch_of({1, 2, 3, 4, 5})), doctest::Contains("max_rows is 4"), error);
  CHECK_THROWS_WITH_AS(e.logits(batch_of({1, 2, 3, 4, 5})), doctest::Contains("max_rows is 4"), error);
  CHECK_THROWS_WITH_AS(e.begin_step(4, 2), doctest::Contains("accumulates"), error);
}

TEST_CASE("calls before initialize(), or again after it, are refused") {
  cpu::device device{1};
  train::engine<model::llama> e{device, small(), {.max_rows = 4, .max_positions = 4}};
  auto const& unit = e.model().units().front();
  auto const field = e.state_fields().front();
  std::vector<float> some(1);
  auto const refused = [](auto&& call) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains("call initialize() first"), error);
  };
  refused([&] { e.synchronize(); });
  refused([&] { e.begin_step(1); });
  refused([&] { e.read_weights(unit, 0, some); });
  refused([&] { e.read_gradient(unit, 0, some); });
  refused([&] { e.read_state(field, 0, std::as_writable_bytes(std::span{some})); });
  refused([&] { e.write_state(field, 0, std::as_bytes(std::span{some})); });
  refused([&] { e.load(some_weights); });
  e.initialize(some_weights);
  for (auto const& call :
       std::vector<std::function<void()>>{[&] { e.initialize(some_weights); }, [&] { e.fit_into(1 << 20); },
                                          [&] { e.configure({}, 1 << 20); }}) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains("expected before initialize()"), error);
  }
  for (auto const& [first, size] : {std::pair<std::int64_t, std::size_t>{-1, 1},
                                    {unit.elements(), 1},
                                    {unit.elements() - 1, 2},
                                    {std::int64_t{1} << 40, 0}}) {
    some.resize(size);
    CHECK_THROWS_WITH_AS(e.read_weights(unit, first, some), doctest::Contains("expected a part of a unit"),
                         error);
  }
  CHECK_THROWS_WITH_AS((train::engine<model::llama>{
                           device, small(), {.max_grad_norm = -1.0, .max_rows = 1, .max_positions = 1}}),
                       doctest::Contains("max_grad_norm is -1"), error);
  train::engine_options int8{.max_rows = 1, .max_positions = 1};
  int8.configuration.format = state_format::int8;
  CHECK_THROWS_WITH_AS((train::engine<model::llama>{device, small(), int8}),
                       doctest::Contains("expected offload::super"), error);
}

TEST_CASE("calls out of a step's order are refused, and the step goes on as if they had not been made") {
  cpu::device device{1};
  train::engine<model::llama> e{device, small(), {.max_rows = 4, .max_positions = 4}};
  train::engine<model::llama> same{device, small(), {.max_rows = 4, .max_positions = 4}};
  auto const batch = batch_of({1, 2, 3, 4});
  for (auto* const one : {&e, &same}) { one->initialize(some_weights); }
  auto const refused = [](auto&& call, char const* says) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains(says), error);
  };
  refused([&] { e.step(1e-3); }, "step() after the backward of 0 of 0");
  refused([&] { e.backward(); }, "without a forward()");
  refused([&] { e.begin_step(-1); }, "-1 label tokens");
  refused([&] { e.begin_step(4, 0); }, "0 micro-batches");
  refused([&] { e.begin_step(4, 1, -1.0); }, "the learning rate -1");
  e.begin_step(batch.label_tokens(), 1, 1e-3);
  same.begin_step(batch.label_tokens(), 1, 1e-3);
  auto const loss = e.forward(batch);
  CHECK(loss == same.forward(batch));
  refused([&] { e.evaluate(batch); }, "evaluate() between a forward() and its backward()");
  refused([&] { e.logits(batch); }, "logits() between a forward() and its backward()");
  refused([&] { e.step(1e-3); }, "step() after the backward of 0 of 1");
  e.backward();
  same.backward();
  refused([&] { e.backward(); }, "without a forward()");
  refused([&] { e.step(std::numeric_limits<double>::quiet_NaN()); }, "the learning rate nan");
  refused([&] { e.step(2e-3); }, "the learning rate 0.002, but begin_step() 0.001");
  CHECK(e.step(1e-3).grad_norm == same.step(1e-3).grad_norm);
  refused([&] { e.step(1e-3); }, "step() after the backward of 0 of 0");
  CHECK(e.evaluate(batch) == same.evaluate(batch));
  CHECK(e.accepted_steps() == 1);
}

using resident_engine = train::engine<model::llama>;
using offloaded_engine = train::engine<model::llama, zero::offloaded, offload::super>;

TEST_CASE_TEMPLATE("a step without its step() changes nothing, wherever the state lives", engine,
                   resident_engine, offloaded_engine) {
  cpu::device device{2};
  train::engine_options options{.max_rows = 4, .max_positions = 4};
  if (engine::configures) {
    auto& buckets = options.configuration.buckets;
    buckets = offload::buckets_of(model::llama{small()}.units(), 64);
    for (auto& bucket : buckets) { bucket.where = offload::tier::host; }
    options.configuration.pinned_buffers = static_cast<int>(buckets.size()) + 2;
  }
  engine e{device, small(), options}, same{device, small(), options};
  for (auto* const one : {&e, &same}) { one->initialize(some_weights); }
  auto const batch = batch_of({1, 2, 3, 4});
  auto const other = batch_of({4, 3, 1});
  auto const train = [](engine& one, data::batch const& with) {
    one.begin_step(with.label_tokens(), 1, 1e-2);
    one.forward(with);
    one.backward();
  };
  train(e, other);  // abandoned
  for (int step = 0; step < 2; ++step) {
    train(e, batch);
    train(same, batch);
    CHECK(e.step(1e-2).grad_norm == same.step(1e-2).grad_norm);
  }
  CHECK(e.evaluate(other) == same.evaluate(other));
  CHECK(e.accepted_steps() == 2);
  if (engine::configures) {
    options.configuration.immediate = true;
    options.max_grad_norm = 0.0;
    engine at_once{device, small(), options};
    at_once.initialize(some_weights);
    train(at_once, other);
    CHECK_THROWS_WITH_AS(at_once.begin_step(3), doctest::Contains("had no step()"), error);
    CHECK(at_once.step(1e-2).accepted);
  }
}

TEST_CASE(
    "a batch whose members contradict each other is refused by the member's name, wherever it is given") {
  cpu::device device{1};
  train::engine<model::llama> e{device, small(), {.max_rows = 8, .max_positions = 4}};
  e.initialize(some_weights);
  auto const good = batch_of({1, 2, 3, 4});
  auto const loss = e.evaluate(good);
  auto const refused = [&](auto&& change, std::string const& said) {
    auto wrong = good;
    change(wrong);
    CHECK_THROWS_WITH_AS(e.evaluate(wrong), doctest::Contains(said.c_str()), error);
    CHECK_THROWS_WITH_AS(e.forward(wrong), doctest::Contains(said.c_str()), error);
    CHECK_THROWS_WITH_AS(e.logits(wrong), doctest::Contains(said.c_str()), error);
    CHECK(e.evaluate(good) == loss);
  };
  refused([](auto& b) { b.targets.pop_back(); }, "targets has 3 entries for 4 tokens");
  refused([](auto& b) { b.targets.push_back(1); }, "targets has 5 entries for 4 tokens");
  refused([](auto& b) { b.positions.clear(); }, "positions has 0 entries for 4 tokens");
  refused([](auto& b) { b.padding = {1}; }, "padding has 1 entries for 4 tokens");
  refused([](auto& b) { b.tokens[1] = 19; }, "tokens[1] is 19, expected 0 to 18");
  refused([](auto& b) { b.tokens[3] = -1; }, "tokens[3] is -1, expected 0 to 18");
  refused([](auto& b) { b.targets[0] = 100000000; }, "targets[0] is 100000000, expected -1 to 18");
  refused([](auto& b) { b.positions[2] = 4; }, "positions[2] is 4, expected 0 to 3");
  refused([](auto& b) { b.starts.clear(); }, "starts must rise from 0 to the 4 tokens");
  refused([](auto& b) { b.starts = {0, 3}; }, "starts must rise");
  refused([](auto& b) { b.starts = {1, 4}; }, "starts must rise");
  refused([](auto& b) { b.starts = {0, 3, 2, 4}; }, "starts must rise");
  refused([](auto& b) { b.starts = {0, 1000}; }, "a document of 1000 tokens");
}

TEST_CASE("a configuration that does not place all state is refused before weights are lost") {
  cpu::device device{1};
  using engine = train::engine<model::llama, zero::offloaded, offload::super>;
  auto const initialized_with = [&](offload::placement const& buckets) {
    train::engine_options options{.max_rows = 8, .max_positions = 8};
    options.configuration.buckets = buckets;
    engine{device, small(), options}.initialize(some_weights);
  };
  auto const all = offload::buckets_of(model::llama{small()}.units(), 1);
  CHECK_NOTHROW(initialized_with(all));
  CHECK_THROWS_WITH_AS(initialized_with({}), doctest::Contains("end at element 0 of "), error);
  CHECK_THROWS_WITH_AS(initialized_with({all.begin(), all.end() - 1}),
                       doctest::Contains("every trainable unit"), error);
  auto changed = all;
  changed.push_back(all.back());
  CHECK_THROWS_WITH_AS(initialized_with(changed), doctest::Contains("behind those of all"), error);
  changed = all;
  changed.front().unit = 77;
  CHECK_THROWS_WITH_AS(initialized_with(changed), doctest::Contains("every trainable unit"), error);
}

/// Three steps of two micro-batches in a loop. Some steps are clipped.
template <class Engine>
std::vector<double> train_for_a_while(Engine& e, int steps) {
  std::vector<double> numbers;
  for (int i = 0; i < steps; ++i) {
    double const rate = 1e-2 / (i + 1);
    e.begin_step(4 + 6, 2, rate);
    for (auto const& batch : {batch_of({1, 2, 3, 4, 5}), batch_of({7, 6, i % 19, 4, 3, 2, 1})}) {
      numbers.push_back(e.forward(batch));
      e.backward();
    }
    auto const done = e.step(rate);
    numbers.push_back(done.grad_norm);
    numbers.push_back(done.factor);
    if (i % 10 == 9) {
      numbers.push_back(e.evaluate(batch_of({5, 6, 7, 8})));
    }
  }
  return numbers;
}

TEST_CASE_TEMPLATE("an engine with its state off the device trains bit for bit like one with state on it", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  cpu::device device{2};
  train::engine_options options{
      .max_grad_norm = 2.0, .max_rows = 24, .max_positions = 12, .accumulates = true};
  train::engine<model::llama, P> simple{device, small(), options};
  simple.initialize(some_weights);
  auto const expected = train_for_a_while(simple, 40);
  for (auto const where : {offload::tier::host, offload::tier::device_updated}) {
    options.configuration.buckets = offload::buckets_of(simple.model().units(), 1);
    int resident = 0;
    for (auto& b : options.configuration.buckets) {
      b.where = resident++ == 1 ? offload::tier::resident : where;
    }
    train::engine<model::llama, P, offload::super> placed{device, small(), options};
    auto const before = device.bytes_in_use(memory::host);
    placed.initialize(some_weights);
    CHECK(static_cast<double>(device.bytes_in_use(memory::host) - before) ==
          doctest::Approx(static_cast<double>(placed.allocation().host)).epsilon(0.03));
    CHECK(train_for_a_while(placed, 40) == expected);
    CHECK(all_weights(placed) == all_weights(simple));
  }
}

TEST_CASE("in the immediate mode a gradient that is not finite ends the run") {
  cpu::device device{2};
  train::engine_options options{.max_grad_norm = 0.0, .max_rows = 12, .max_positions = 12};
  options.configuration.buckets = offload::buckets_of(model::llama{small()}.units(), 1);
  for (auto& b : options.configuration.buckets) { b.where = offload::tier::host; }
  options.configuration.immediate = true;
  train::engine<model::llama, precision::fp32, offload::super> e{device, small(), options};
  e.initialize(some_weights);
  auto const batch = batch_of({1, 2, 3, 4, 5});
  auto const field = e.state_fields().front();
  float const infinity = std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < field.bytes; i += sizeof(float)) {
    e.write_state(field, i, std::as_bytes(std::span{&infinity, 1}));
  }
  e.begin_step(4, 1, 1e-3);
  e.forward(batch);
  e.backward();
  CHECK_FALSE(e.step(1e-3).accepted);
  CHECK_THROWS_WITH_AS(e.forward(batch), doctest::Contains("last checkpoint"), error);
}

}  // namespace
