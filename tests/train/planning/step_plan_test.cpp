// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Runs follow their plans: they allocate exactly what the plan says before.
#include <superoffload/comm/shared.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/trainer.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>
#include <superoffload/zero/sharded.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/engine_cores.hpp"
#include "support/precisions.hpp"
#include "support/sanitizer.hpp"
#include "support/scratch_directory.hpp"
#include "support/short_run.hpp"
#include "support/small_inputs.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;

template <class Precision>
using engine =
    train::engine<model::llama, Precision, zero::offloaded_or_sharded<comm::shared>, offload::super>;

train::training_options options(fs::path const& output) {
  auto o = test::short_run(output, 3);
  o.max_length = 64;
  o.batch_size = 4;
  o.padding = data::pad_to::max_length;
  return o;
}

double number(std::size_t bytes) { return static_cast<double>(bytes); }

model::config llama_of(std::int64_t layers, std::int64_t hidden, std::int64_t intermediate,
                       std::int64_t vocabulary, bool tied = false) {
  return {.model_type = "llama",
          .vocabulary = vocabulary,
          .hidden = hidden,
          .intermediate = intermediate,
          .layers = layers,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = hidden / 4,
          .max_positions = 32,
          .tied_head = tied};
}

TEST_CASE_TEMPLATE("a run takes the memory of its plan, of the device and of the host", P,
                   SUPEROFFLOAD_TEST_PRECISIONS) {
  std::vector<offload::settings> const all{
      {},
      {.how = offload::mode::super, .ratio = 0.7, .device_updated_share = 0.4, .bucket_bytes = 1 << 20},
      {.how = offload::mode::super, .ratio = 1.0, .device_updated_share = 0.0, .bucket_bytes = 1 << 20},
      {.how = offload::mode::super, .ratio = 1.0, .bucket_bytes = 1 << 20},
      {.how = offload::mode::zero, .ratio = 1.0},
      {.how = offload::mode::super,
       .ratio = 1.0,
       .offload_weights = offload::choice::on,
       .bucket_bytes = 1 << 20},
      {.ratio = 0.6, .offload_weights = offload::choice::on, .bucket_bytes = 1 << 20},
      {.how = offload::mode::zero, .offload_weights = offload::choice::on},
      {.offload_weights = offload::choice::on}};
  int tried = 0;
  for (auto const& s : all) {
    for (std::int64_t const accumulation : {1, 2}) {
      if (test::under_sanitizer && ++tried % 4 > 1) {  // 1, 2, 1, 2
        continue;
      }
      CAPTURE(s.ratio.value_or(-1.0));
      CAPTURE(accumulation);
      bool const streams = s.offload_weights == offload::choice::on;
      test::scratch_directory const output;
      auto o = options(output.path());
      o.offload = s;
      o.accumulation = accumulation;
      cpu::device device{2};
      train::trainer<engine<P>> trainer{device, o};
      auto const& plan = trainer.plan();
      REQUIRE(plan.fits);
      CHECK(trainer.engine().allocation().total() == plan.on_device.total());
      CHECK(trainer.engine().allocation().host == plan.on_host.total());
      CHECK((plan.on_host.state > 0) == (s.ratio.has_value() || streams));
      CHECK((plan.on_host.weights > 0) == streams);
      auto const done = trainer.run();
      CHECK(number(device.peak_bytes(memory::device)) ==
            doctest::Approx(number(plan.on_device.total())).epsilon(0.03));
      CHECK(number(device.peak_bytes(memory::host)) ==
            doctest::Approx(number(plan.on_host.total())).epsilon(0.03));
      CHECK(done.planned.time == plan.step_time);
      REQUIRE(done.measured);
      CHECK(done.measured->time > 0.0);
      CHECK(done.planned.tokens > 0.0);
      CHECK(done.measured->tokens > 0.0);
      auto const most = number(static_cast<std::size_t>(o.batch_size * o.accumulation * o.max_length));
      CHECK(done.planned.tokens <= most);
      CHECK(done.measured->tokens <= most);
    }
  }
}

TEST_CASE_TEMPLATE(
    "a run that offloads activations takes the memory of its plan, of the device and of the host", P,
    SUPEROFFLOAD_TEST_PRECISIONS) {
  for (auto const& s :
       {offload::settings{}, offload::settings{.how = offload::mode::none},
        offload::settings{.ratio = 0.6, .offload_weights = offload::choice::on, .bucket_bytes = 1 << 20}}) {
    test::scratch_directory const output;
    auto o = options(output.path());
    o.offload = s;
    o.accumulation = 2;
    o.recompute = recompute::choice::offload;
    cpu::device device{2};
    train::trainer<engine<P>> trainer{device, o};
    auto const& plan = trainer.plan();
    REQUIRE(plan.fits);
    CHECK(plan.state.activations.buffers >= 2);
    CHECK(trainer.engine().allocation().total() == plan.on_device.total());
    CHECK(trainer.engine().allocation().host == plan.on_host.total());
    CHECK(trainer.engine().allocation().activations_on_host == plan.on_host.activations);
    auto const done = trainer.run();
    CHECK(number(device.peak_bytes(memory::device)) ==
          doctest::Approx(number(plan.on_device.total())).epsilon(0.03));
    CHECK(number(device.peak_bytes(memory::host)) ==
          doctest::Approx(number(plan.on_host.total())).epsilon(0.03));
    CHECK(done.planned.tokens > 0.0);
  }
}

TEST_CASE("if everything fits, nothing is offloaded or recomputed") {
  test::scratch_directory const output;
  cpu::device device{2};
  train::trainer<engine<precision::bf16>> const trainer{device, options(output.path())};
  CHECK(trainer.plan().resident == 1.0);
  CHECK(trainer.plan().recompute == "none");
  CHECK(trainer.plan().step_time > 0.0);
  CHECK(trainer.machine_name() == device.description());
}

TEST_CASE("a described machine gives the rates, this machine the memory") {
  test::scratch_directory const output;
  cpu::device device{2};
  auto o = options(output.path());
  o.offload = {.how = offload::mode::super, .ratio = 1.0, .bucket_bytes = 1 << 20};
  o.offload.hardware = fs::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json";
  train::trainer<engine<precision::bf16>> const trainer{device, o};
  auto const described = train::read_machine(o.offload.hardware);
  CHECK(trainer.machine_name() == described.name);
  CHECK(trainer.plan().fits);
  CHECK(trainer.plan().device_available < device.available_bytes());
  CHECK(trainer.plan().state.workers ==
        cpu::optimizer_threads(o.offload.cpuadam_cores_perc, cpu::physical_cores()));
}

/// A described machine with little memory: nothing is measured.
offload::machine small_machine(std::size_t device, std::size_t host) {
  auto m = train::read_machine(fs::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json");
  m.device.memory = device;
  m.host.memory = host;
  m.device.reserve = m.host.reserve = 0;
  return m;
}

TEST_CASE("state leaves a device that is too small for it, and the remaining memory saves recompute") {
  auto const model =
      train::lay_out<model::llama>(model::read_config(fs::path{SUPEROFFLOAD_TEST_DATA} / "models" / "llama"));
  cpu::device const device{1};
  train::step_shape shape{
      .micro_batch = {512, 64}, .sequences = 8, .recompute = recompute::choice::automatic};
  constexpr std::size_t host = std::size_t{1} << 30;
  offload::settings const s{.bucket_bytes = 1 << 20};
  auto const planned = [&](std::size_t memory) {
    return train::plan_step(train::dry_model_of<bfloat16>(device, model), shape, small_machine(memory, host),
                            s);
  };
  auto const whole = planned(host);
  REQUIRE(whole.fits);
  CHECK(whole.resident == 1.0);
  CHECK(whole.recompute == "none");
  auto const all = whole.on_device.total();
  int smaller = 0;
  for (std::size_t memory = all - 1; memory > all / 4; memory -= all / 16) {
    auto const p = planned(memory);
    CAPTURE(memory);
    if (!p.fits) {
      break;
    }
    ++smaller;
    CHECK(p.on_device.total() <= memory);
    CHECK((p.resident < 1.0 || p.recompute != "none"));
    engine<precision::bf16> e{const_cast<cpu::device&>(device),
                              model.settings(),
                              {.max_rows = 512,
                               .max_positions = 64,
                               .recompute = recompute::choice::automatic,
                               .configuration = p.state}};
    e.fit_into(p.on_device.total());
    CHECK(e.allocation().total() == p.on_device.total());
    CHECK(e.allocation().host == p.on_host.total());
  }
  CHECK(smaller > 4);
}

/// Losses and masters of a few steps of three micro-batches.
template <class Engine>
std::vector<double> trained(Engine& e) {
  std::vector<double> numbers;
  e.initialize(test::some_weights);
  for (int step = 0; step < 4; ++step) {
    e.begin_step(3 * 7, 3, 1e-2);
    for (int i = 0; i < 3; ++i) {
      numbers.push_back(e.forward(test::batch_of({1, 2, 3 + step, 4, 5 + i, 6, 7, 8})));
      e.backward();
    }
    numbers.push_back(e.step(1e-2).grad_norm);
  }
  for (auto const& unit : e.model().units()) {
    std::vector<float> weights(static_cast<std::size_t>(unit.elements()));
    e.read_weights(unit, 0, weights);
    numbers.insert(numbers.end(), weights.begin(), weights.end());
  }
  return numbers;
}

TEST_CASE(
    "sums leave a device that is too small for them, and the run has its plan's bytes and the same bits") {
  auto const config = llama_of(12, 64, 128, 64);
  auto const model = train::lay_out<model::llama>(config);
  cpu::device device{2};
  train::engine_options o{.max_grad_norm = 0.5,
                          .max_rows = 8,
                          .max_positions = 8,
                          .accumulates = true,
                          .recompute = recompute::choice::automatic};
  train::engine<model::llama, precision::bf16> simple{device, config, o};
  auto const expected = trained(simple);
  train::step_shape const shape{
      .micro_batch = {8, 8}, .micro_batches = 3, .recompute = recompute::choice::automatic};
  constexpr std::size_t host = std::size_t{1} << 30;
  auto const planned = [&](std::size_t memory) {
    return train::plan_step(train::dry_model_of<bfloat16>(device, model), shape, small_machine(memory, host),
                            {.bucket_bytes = 1 << 20});
  };
  std::size_t most = 0, with_sums = 0;
  for (auto memory = planned(host).on_device.total();; memory -= 100'000) {
    auto const p = planned(memory);
    if (!p.fits) {
      break;
    }
    CAPTURE(memory);
    auto const sums = static_cast<std::size_t>(p.sums_on_host());
    CHECK(p.on_device.total() <= memory);
    if (sums <= most) {
      continue;
    }
    most = sums;
    ++with_sums;
    o.configuration = p.state;
    cpu::device other{2};
    engine<precision::bf16> e{other, config, o};
    e.fit_into(p.on_device.total());
    CHECK(e.allocation().total() == p.on_device.total());
    CHECK(e.allocation().host == p.on_host.total());
    CHECK(trained(e) == expected);
    CHECK(number(other.peak_bytes()) == doctest::Approx(number(p.on_device.total())).epsilon(0.03));
    CHECK(number(other.peak_bytes(memory::host)) == doctest::Approx(number(p.on_host.total())).epsilon(0.03));
  }
  CHECK(with_sums >= 3);
  CHECK(most > 8);
}

/// Plans steps of several ranks, with an engine each, in more and more device memory. \returns the planned
/// numbers of gather buffers. Checks that every engine takes its plan's bytes, before and after training.
std::vector<int> buffers_planned(int ranks, bool tied, int micro_batches,
                                 std::optional<int> weight_ranks = std::nullopt) {
  using T = bfloat16;
  auto const config = llama_of(8, 128, 512, 4000, tied);
  test::threads_of_a_process groups;
  groups.settings.piece_bytes = 1U << 18;
  std::vector<int> all;
  std::mutex mutex;
  conformance::all_succeeded(groups.run(ranks, [&](auto& device, auto& group) {
    std::vector<int> own;
    std::size_t memory = std::size_t{1} << 30, least = 0;
    for (int blocks = -1; blocks < 12; ++blocks) {
      train::engine<model::llama, precision::bf16, zero::sharded<comm::shared>> e{
          device, group, config, {.max_rows = 8, .max_positions = 8, .accumulates = micro_batches > 1}};
      train::step_shape const shape{.micro_batch = {8, 8},
                                    .micro_batches = micro_batches,
                                    .recompute = recompute::choice::none,
                                    .offloads = false,
                                    .ranks = ranks,
                                    .whole_gradients = train::whole_gradients_of(e)};
      auto const whole = zero::whole_weight_bytes(e.model().units()[1], ranks, sizeof(T));
      if (blocks >= 0) {
        memory = least + static_cast<std::size_t>(blocks) * whole;
      }
      auto const p = train::plan_step(train::dry_model_of<T>(device, e.model()), shape,
                                      small_machine(memory, std::size_t{1} << 30),
                                      {.how = offload::mode::none,
                                       .weight_ranks = weight_ranks,
                                       .sums_in_copies = weight_ranks.has_value()});
      conformance::require(p.fits && p.on_device.total() <= memory, "no plan: ", p.refusal);
      e.configure(p.state, p.on_device.total());
      conformance::require(e.allocation().total() == p.on_device.total(), "planned ", p.on_device.total(),
                           " bytes, the engine ", e.allocation().total(), ", ", p.whole_at_once(),
                           " gather buffers");
      conformance::require(e.allocation().host == p.on_host.total(), "planned ", p.on_host.total(),
                           " bytes of the host, the engine ", e.allocation().host);
      if (blocks < 0) {  // the memory with three buffers
        auto three = p.state;
        three.buffers = {};
        e.configure(three, memory);
        least = e.allocation().total();
        continue;
      }
      own.push_back(p.whole_at_once());
    }
    std::lock_guard const lock{mutex};
    conformance::require(all.empty() || all == own, "ranks differ");
    all = own;
  }));
  return all;
}

TEST_CASE("ranks have the bytes of their plans with any number of gather buffers") {
  for (bool const tied : {false, true}) {
    CAPTURE(tied);
    // An untied head is larger than a block, and gets the last buffer.
    int const with_seven_blocks = tied ? 10 : 9;
    for (int const ranks : {2, 3}) {
      CAPTURE(ranks);
      for (int const micro_batches : {1, 2}) {
        CAPTURE(micro_batches);
        auto const buffers = buffers_planned(ranks, tied, micro_batches);
        for (int i = 0; i < 7; ++i) { CHECK(buffers[static_cast<std::size_t>(i)] == 3 + i); }
        CHECK(buffers.back() == 10);
        CHECK(buffers[7] == with_seven_blocks);
      }
    }
    CHECK(buffers_planned(4, tied, 1, 2).back() == 10);
    CHECK(buffers_planned(4, tied, 2, 2).back() == 10);
    if (!test::under_sanitizer) {
      CHECK(buffers_planned(2, tied, 1, 1).back() == 10);
      CHECK(buffers_planned(2, tied, 2, 2).back() == 10);
    }
    auto const alone = buffers_planned(1, tied, 1);
    CHECK(alone == std::vector<int>(12, 0));  // there are no collectives
  }
}

TEST_CASE(
    "gradients leave ranks' devices that are too small for them, which have their plan's bytes and the same "
    "bits") {
  auto const config = llama_of(12, 128, 512, 64);
  using ranked =
      train::engine<model::llama, precision::bf16, offload::super, zero::offloaded_or_sharded<comm::shared>>;
  // For a device memory: the bytes of the plan, whether gradients are offloaded, and the results of training.
  struct outcome {
    std::size_t bytes = 0;
    int whole_at_once = 0;
    bool fits = false, leaves = false;
    std::vector<double> numbers;
  };
  auto const run = [&](std::size_t memory) {
    test::threads_of_a_process groups;
    groups.settings.piece_bytes = 1U << 18;
    outcome all;
    std::mutex mutex;
    conformance::all_succeeded(groups.run(2, [&](auto& device, auto& group) {
      train::engine_options const o{
          .max_grad_norm = 0.0, .max_rows = 8, .max_positions = 8, .recompute = recompute::choice::automatic};
      ranked e{device, group, config, o};
      train::step_shape const shape{.micro_batch = {8, 8},
                                    .recompute = recompute::choice::automatic,
                                    .checks_gradient = false,
                                    .ranks = 2,
                                    .whole_gradients = train::whole_gradients_of(e)};
      auto const p = train::plan_step(train::dry_model_of<bfloat16>(device, e.model()), shape,
                                      small_machine(memory, std::size_t{1} << 30), {.bucket_bytes = 1 << 20});
      outcome own{p.on_device.total(), p.whole_at_once(), p.fits, p.state.offloaded.any_gradient(), {}};
      if (p.fits) {
        e.configure(p.state, p.on_device.total());
        conformance::require(e.allocation().total() == p.on_device.total(), "planned ", p.on_device.total(),
                             " bytes, the engine ", e.allocation().total());
        conformance::require(e.allocation().host == p.on_host.total(), "planned ", p.on_host.total(),
                             " bytes of the host, the engine ", e.allocation().host);
        comm::abort_on_exception const guard{group};
        e.initialize(test::some_weights);
        for (int step = 0; step < 3; ++step) {
          e.begin_step(2 * 7, 1, 1e-2);
          own.numbers.push_back(e.forward(test::batch_of({1, 2, 3 + step, 4, 5 + group.rank(), 6, 7, 8})));
          e.backward();
          own.numbers.push_back(e.step(1e-2).grad_norm);
        }
        for (auto const& unit : e.model().units()) {
          std::vector<float> weights(static_cast<std::size_t>(unit.elements()));
          e.read_weights(unit, 0, weights);
          own.numbers.insert(own.numbers.end(), weights.begin(), weights.end());
        }
        auto const taken = number(device.peak_bytes(memory::device));
        conformance::require(std::abs(taken - number(own.bytes)) < 0.03 * number(own.bytes), "planned ",
                             own.bytes, ", took ", taken);
      }
      std::lock_guard const lock{mutex};
      all = std::move(own);
    }));
    return all;
  };
  auto const whole = run(std::size_t{1} << 30);
  REQUIRE(whole.fits);
  CHECK_FALSE(whole.leaves);
  CHECK(whole.whole_at_once == 14);
  int leaving = 0, least = 14;
  constexpr int enough = test::under_sanitizer ? 1 : 3, parts = test::under_sanitizer ? 16 : 64;
  for (auto memory = whole.bytes; leaving < enough; memory -= whole.bytes / parts) {
    CAPTURE(memory);
    auto const tight = run(memory);
    REQUIRE(tight.fits);
    CHECK(tight.bytes <= memory);
    CHECK(tight.numbers == whole.numbers);
    least = std::min(least, tight.whole_at_once);
    leaving += tight.leaves ? 1 : 0;
  }
  CHECK(least == 3);
}

}  // namespace
