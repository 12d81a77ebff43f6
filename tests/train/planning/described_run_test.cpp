// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/planning/planner.hpp>
#include <superoffload/train/planning/described_run.hpp>
#include <superoffload/train/planning/machine_file.hpp>

#include <doctest/doctest.h>

#include "support/scratch_directory.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace {

using namespace superoffload;

/// A directory with a config.json only: Llama 3.1 8B's shape with the given number of layers.
class llama_8b {
public:
  explicit llama_8b(int layers) {
    std::ofstream{directory_.path() / "config.json"}
        << R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,)"
        << R"( "num_attention_heads": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,)"
        << R"( "max_position_embeddings": 1048576, "tie_word_embeddings": false, "num_hidden_layers": )"
        << layers << "}";
    options_.model = directory_.path();
    options_.output = directory_.path() / "out";
    options_.dry_run = true;
    options_.max_length = 2048;
    options_.batch_size = 4;
  }
  train::training_options& options() { return options_; }
  [[nodiscard]] offload::plan on(char const* machine, offload::settings const& s = {}) const {
    auto const whole = train::read_machine(std::filesystem::path{SUPEROFFLOAD_HARDWARE} / machine);
    auto const m = offload::within_budget(whole, s);
    return train::plan_on<model::llama, bfloat16>(m, s, options_);
  }

private:
  test::scratch_directory directory_;
  train::training_options options_;
};

TEST_CASE("a config.json is enough to plan for a described machine") {
  llama_8b const small{8}, whole{32};
  auto const resident = small.on("h200_pcie5.json");
  CHECK(resident.fits);
  CHECK(resident.resident == 1.0);
  CHECK(resident.recompute == "none");
  // 2.8e9 parameters at 4,096 x 2,048: an H200 needs at least a fifth of a second for them.
  CHECK(resident.step_time > 0.15);
  CHECK(resident.step_time < 0.25);

  auto const superchip = whole.on("gh200.json");
  CHECK(superchip.fits);
  CHECK(superchip.resident < 0.6);
  CHECK(superchip.on_device.total() <= superchip.device_available);
  CHECK(superchip.on_host.total() <= superchip.host_available);
  CHECK(whole.on("gb200.json").step_time < superchip.step_time);
  CHECK(whole.on("rtx4090.json").fits);
  CHECK_FALSE(whole.on("rtx4090.json", {.host_memory = std::size_t{58} << 30}).fits);
}

TEST_CASE(
    "a run for which device and host are too small is told of a larger host and of state in fewer bytes") {
  llama_8b const m{32};
  auto const refused = m.on("rtx4060.json");
  REQUIRE_FALSE(refused.fits);
  CAPTURE(refused.refusal);
  for (auto const* const part : {"of device memory, but", "this device and a host with ", "(--state int8)"}) {
    CAPTURE(std::string{part});
    CHECK(refused.refusal.find(part) != std::string::npos);
  }
  CHECK(m.on("rtx4060.json", {.state = state_format::int8}).fits);
}

TEST_CASE("frozen tensors and the sizes of micro-batches reach the plan") {
  llama_8b m{32};
  auto const all =
      m.on("h200_pcie5.json", {.how = offload::mode::super, .ratio = 1.0, .device_updated_share = 0.0});
  m.options().freeze = {"model.embed_tokens.weight", "lm_head.weight"};
  auto const some =
      m.on("h200_pcie5.json", {.how = offload::mode::super, .ratio = 1.0, .device_updated_share = 0.0});
  CHECK(all.on_host.state - some.on_host.state >= 12ULL * 128256 * 4096);
  CHECK(some.step_time < all.step_time);
  m.options().freeze.clear();
  m.options().accumulation = 4;
  auto const in_parts = m.on("h200_pcie5.json", {.how = offload::mode::super, .ratio = 1.0});
  CHECK(in_parts.on_device.gradients > all.on_device.gradients);
  CHECK(in_parts.on_device.activations < all.on_device.activations);
  m.options().accumulation = 1;
  m.options().recompute = recompute::choice::every_block;
  CHECK(m.on("h200_pcie5.json").recompute == "every block");
}

TEST_CASE("state stays on the device if only micro-batches above the mean are recomputed for it") {
  llama_8b m{32};
  auto const machine = train::read_machine(std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json");
  auto const model = train::lay_out<model::llama>(model::read_config(m.options().model), {});
  described_device const device{machine.name, machine.device.memory - machine.device.reserve};
  train::step_shape shape{.micro_batch = {16384, 2048}, .sequences = 8, .checks_gradient = false};
  auto const full = train::plan_step(train::dry_model_of<bfloat16>(device, model), shape, machine, {});
  CHECK(full.state.any_off_the_device());  // recompute in every step would take longer
  shape.expected = train::expected_step{{3348, 1000}, 3348};
  auto const p = train::plan_step(train::dry_model_of<bfloat16>(device, model), shape, machine, {});
  CHECK_FALSE(p.state.any_off_the_device());
  CHECK(p.recompute.ends_with(" results of blocks; of the expected micro-batch 0"));
  CHECK(p.on_device.total() <= p.device_available);
}

TEST_CASE("recompute is weighed against state on the device more finely than by levels") {
  llama_8b m{62};
  auto& o = m.options();
  o.max_length = 4096;
  o.batch_size = 8;
  o.max_grad_norm = 0.0;
  o.nonfinite = train::on_nonfinite::stop;
  auto machine = train::read_machine(std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json");
  machine.host.memory = std::size_t{200} << 30;
  auto const plan = train::plan_on<model::llama, bfloat16>(machine, {}, o);
  REQUIRE(plan.fits);

  auto const model = train::lay_out<model::llama>(model::read_config(o.model), train::trained_by(o));
  described_device const device{machine.name, machine.device.memory - machine.device.reserve};
  auto const shape = train::shape_of(o);
  auto work = train::workload_of(train::dry_model_of<bfloat16>(device, model), shape);
  CHECK(offload::clearly_faster(plan, offload::make_plan(model.units(), work, machine, {})));
  auto const most = work.levels.front().activations;
  int fitting = 0;
  for (std::size_t i = 1; i <= 16; ++i) {
    work.levels = {train::level_within(train::dry_model_of<bfloat16>(device, model), shape, most / 16 * i)};
    auto const other = offload::make_plan(model.units(), work, machine, {});
    CAPTURE(i);
    CHECK_FALSE((other.fits && offload::clearly_faster(other, plan)));
    fitting += other.fits ? 1 : 0;
  }
  CHECK(fitting > 4);
}

TEST_CASE("inside a small part of a device activations leave it, if that is faster or fits alone") {
  llama_8b m{32};
  auto& o = m.options();
  auto const described =
      train::read_machine(std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json");
  auto const within = [&](std::size_t gib, recompute::choice choice) {
    o.recompute = choice;
    offload::settings const s{.device_memory = gib << 30};
    return train::plan_on<model::llama, bfloat16>(offload::within_budget(described, s), s, o);
  };
  o.batch_size = 16;
  using recompute::choice;
  auto const roomy = within(24, choice::automatic);
  CHECK(roomy.fits);
  CHECK(roomy.on_host.activations == 0);
  auto const small = within(18, choice::automatic);
  CHECK(small.fits);
  CHECK(small.state.activations.buffers >= 3);
  CHECK(small.on_host.activations > std::size_t{3} << 30);
  CHECK(offload::describe(small).find("activations of blocks go to the host") != std::string::npos);
  CHECK(within(14, choice::automatic).fits);
  CHECK_FALSE(within(14, choice::every_block).fits);
  CHECK(within(18, choice::offload).step_time == small.step_time);
}

TEST_CASE("collectives use the link between ranks, most of them beside compute") {
  llama_8b m{8};
  auto const alone = m.on("h200_pcie5.json");
  CHECK(alone.exchanged == 0.0);
  m.options().batch_size = 8;
  m.options().ranks = 2;
  auto const two = m.on("h200_pcie5.json");
  // A block has 218e6 parameters, of which a rank sends half: its weights, which stay gathered from forward
  // to backward, and its gradient. So do embedding and head; the head's gradient is float32.
  double const block = 218e6, table = 128256.0 * 4096;
  CHECK(two.exchanged ==
        doctest::Approx(0.5 * (block * 2 * (8 + 8) + table * (2 * 2 + 2 + 4))).epsilon(0.01));
  CHECK(two.collective_time > two.exchanged / 330e9);
  CHECK(two.collective_time < two.exchanged / 250e9);
  CHECK(two.step.waited_for_ranks > 0.0);
  CHECK(two.step.waited_for_ranks < 0.5 * two.collective_time);
  CHECK(two.step_time > alone.step_time * 0.95);  // each rank has half of the updates
  CHECK(two.tokens_per_second > 1.8 * alone.tokens_per_second);
}

TEST_CASE("hosts with a slow network keep a copy of the weights each, if it fits") {
  llama_8b m{8};
  auto& o = m.options();
  o.ranks = 32;
  o.batch_size = 8 * o.ranks;
  o.accumulation = 4;
  // With more memory, weights stay gathered from one micro-batch to the next: a copy of them saves nothing.
  auto const gib = [](double number) { return static_cast<std::size_t>(number * 1024 * 1024 * 1024); };
  auto const on = [&](double gb_per_s, offload::settings s = {}) {
    s.device_memory = s.device_memory.value_or(gib(12.0));
    auto machine = train::read_machine(std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json");
    machine.peers =
        offload::across_hosts(machine.peers, {.ranks_of_host = 8, .rate = gb_per_s * 1e9}, o.ranks);
    return train::plan_on<model::llama, bfloat16>(offload::within_budget(machine, s), s, o);
  };
  auto const chosen = on(20.0);
  CHECK(chosen.state.weight_ranks == 8);
  CHECK_FALSE(chosen.state.sums_in_copies);  // which a user asks for: sums have another order
  auto const one_copy = on(20.0, {.weight_ranks = 32});
  CHECK(one_copy.state.weight_ranks == 0);
  auto const summed = on(20.0, {.weight_ranks = 8, .sums_in_copies = true});
  CHECK(summed.state.sums_in_copies);
  CHECK(chosen.step_time < 0.9 * one_copy.step_time);
  CHECK(summed.step_time < 0.5 * chosen.step_time);
  CHECK(summed.collective_time < chosen.collective_time);
  CHECK(chosen.collective_time < one_copy.collective_time);
  // 2.8e9 parameters: each rank of a copy has an eighth of the weights, and of sums in float32.
  auto const bytes = [](offload::plan const& p) {
    return static_cast<double>(p.on_device.weights + p.on_device.gradients);
  };
  double const parameters = 8 * 218e6 + 2 * 128256.0 * 4096;
  auto const buffers = [](offload::plan p) { return p.state.buffers.weights; };
  CHECK(buffers(chosen) == buffers(one_copy));
  CHECK(bytes(chosen) - bytes(one_copy) ==
        doctest::Approx(parameters * 2 * (1.0 / 8 - 1.0 / 32)).epsilon(0.01));
  CHECK(buffers(summed) == buffers(chosen));
  CHECK(bytes(summed) - bytes(chosen) == doctest::Approx(parameters * 4 / 8).epsilon(0.01));
  CHECK(offload::describe(chosen).find(
            "  each 8 ranks keep a copy of the weights; new weights cross to the others once a step\n") !=
        std::string::npos);
  CHECK(offload::describe(summed).find("new weights and sums of gradients cross to the others once a step") !=
        std::string::npos);
  CHECK(offload::describe(one_copy).find("keep a copy") == std::string::npos);

  CHECK(on(1000.0).state.weight_ranks == 0);  // the network is as fast as the links within a host
  CHECK(on(20.0, {.device_memory = gib(24.0)}).state.weight_ranks == 0);
  // Where a copy does not fit, there is one of all ranks; who asks for more is told.
  auto const little = gib(9.5);
  CHECK(on(20.0, {.device_memory = little}).state.weight_ranks == 0);
  CHECK(on(20.0, {.device_memory = little}).fits);
  auto const refused = on(20.0, {.weight_ranks = 8, .sums_in_copies = true, .device_memory = little});
  CHECK_FALSE(refused.fits);
  CHECK(refused.refusal.find("or one copy of the weights (no --hybrid_sharding)") != std::string::npos);
}

TEST_CASE("ranks that share a long sequence take half of its time and memory, and exchange rows for heads") {
  llama_8b m{8};
  auto& o = m.options();
  o.batch_size = 1;
  o.max_length = 131072;
  o.recompute = recompute::choice::every_block;
  auto const alone = m.on("h200_pcie5.json");
  CHECK(alone.rows_exchanged == 0.0);
  o.ranks = o.sequence_ranks = 2;
  auto const two = m.on("h200_pcie5.json");
  REQUIRE(alone.fits);
  REQUIRE(two.fits);
  // In each layer half of a rank's queries, keys, values and results: forward, again, and backward.
  double const rows = 65536, columns = (32 + 2 * 8 + 32) * 128;
  CHECK(two.rows_exchanged == doctest::Approx(8 * 3 * 0.5 * rows * columns * 2));
  CHECK(two.rows_time == doctest::Approx(two.rows_exchanged / 330e9).epsilon(0.2));
  CHECK(two.step_time > 0.5 * alone.step_time);
  CHECK(two.step_time < 0.55 * alone.step_time);
  CHECK(static_cast<double>(two.on_device.activations) <
        0.6 * static_cast<double>(alone.on_device.activations));
  CHECK(offload::describe(two).find("shared micro-batches: ") != std::string::npos);
  o.ranks = o.sequence_ranks = 3;
  CHECK_THROWS_AS(static_cast<void>(m.on("h200_pcie5.json")), error);
}

TEST_CASE("ranks that share a long sequence keep what attention computes, and exchange it again") {
  llama_8b m{32};
  auto& o = m.options();
  o.batch_size = 1;
  o.max_length = 1 << 19;
  o.tiled_mlp = 16384;
  o.ranks = o.sequence_ranks = 2;
  auto const kept = m.on("h200_pcie5.json");
  o.recompute = recompute::choice::every_block;
  auto const recomputed = m.on("h200_pcie5.json");
  REQUIRE(kept.fits);
  REQUIRE(recomputed.fits);
  CHECK(kept.rows_exchanged == recomputed.rows_exchanged);
  // Two of seven GEMMs of attention, which takes most of the step.
  CHECK(kept.step_time < 0.85 * recomputed.step_time);
  // A block keeps its result and that of attention, 2 GiB each.
  CHECK(static_cast<double>(kept.on_host.activations) < 32 * 4.1 * 1024 * 1024 * 1024);
}

TEST_CASE("a plan counts the tokens of its batch, not those of ranks without a sequence") {
  llama_8b m{8};
  auto& o = m.options();
  o.batch_size = 5;
  o.ranks = 4;
  auto const p = m.on("h200_pcie5.json");
  CHECK(p.tokens_per_second * p.step_time == doctest::Approx(5.0 * static_cast<double>(o.max_length)));
}

TEST_CASE("a sequence that is too long for a device is refused with the number of ranks that may share it") {
  llama_8b m{32};
  auto& o = m.options();
  o.batch_size = 1;
  o.max_length = 1 << 20;
  o.ranks = 4;
  CHECK(m.on("h200_pcie5.json")
            .refusal.ends_with("shared by 2 ranks: use --sequence_parallel 2 --tiled_mlp 16384"));
  o.sequence_ranks = 4;
  CHECK(m.on("h200_pcie5.json").fits);
  o.sequence_ranks = 1;
  o.ranks = 3;  // divides neither heads nor key-value heads
  CHECK(m.on("h200_pcie5.json").refusal.find("--sequence_parallel") == std::string::npos);
}

TEST_CASE("tiles of MLPs take less memory, and a sequence that needs them is refused without") {
  llama_8b m{32};
  auto& o = m.options();
  o.batch_size = 1;
  o.max_length = 1 << 19;
  o.offload.state = state_format::int8;
  CHECK(m.on("h200_pcie5.json", o.offload).refusal.ends_with("use --tiled_mlp 16384"));
  o.tiled_mlp = 16384;
  CHECK(m.on("h200_pcie5.json", o.offload).fits);
  // A shorter one recomputes less with the memory that is free.
  o.max_length = 1 << 18;
  o.tiled_mlp = 0;
  auto const whole = m.on("h200_pcie5.json", o.offload);
  o.tiled_mlp = 16384;
  auto const tiled = m.on("h200_pcie5.json", o.offload);
  REQUIRE(whole.fits);
  REQUIRE(tiled.fits);
  CHECK(tiled.step_time < whole.step_time);
}

TEST_CASE("with enough memory weights stay gathered from forward to backward, and a step is faster") {
  llama_8b m{32};
  for (int const ranks : {2, 4}) {
    CAPTURE(ranks);
    m.options().batch_size = 4 * ranks;
    m.options().ranks = ranks;
    auto const p = m.on("h200_pcie5.json");
    REQUIRE(p.fits);
    CHECK(p.state.buffers.weights == 34);
    CHECK(p.recompute == "none");
    CHECK(p.on_device.total() <= p.device_available);
    double const block = 218.1e6, table = 525.3e6;
    CHECK(static_cast<double>(p.on_device.weights) ==
          doctest::Approx(2.0 * (1.0 + 1.0 / ranks) * (32 * block + 2 * table)).epsilon(0.002));
    CHECK(offload::describe(p).find("weights of 34 of 34 units stay gathered") != std::string::npos);
    // With 5 GiB less there is memory for some units, with 14 GiB less for none.
    auto less = train::read_machine(std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json");
    less.device.memory = p.on_device.total() - (std::size_t{5} << 30) + less.device.reserve;
    auto const some = train::plan_on<model::llama, bfloat16>(less, {}, m.options());
    CHECK(some.state.buffers.weights > 3);
    CHECK(some.state.buffers.weights < 34);
    CHECK(some.exchanged > p.exchanged);
    less.device.memory -= std::size_t{9} << 30;
    auto const none = train::plan_on<model::llama, bfloat16>(less, {}, m.options());
    REQUIRE(none.fits);
    CHECK(none.state.buffers.weights == 3);
    CHECK_FALSE(none.state.any_off_the_device());
    CHECK(p.step_time < some.step_time);
    CHECK(some.step_time < none.step_time);
  }
}

TEST_CASE("Llama 70B trains on four H200 without clipping, with offloaded gradients") {
  test::scratch_directory const directory;
  std::ofstream{directory.path() / "config.json"}
      << R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 8192, "intermediate_size": 28672,)"
      << R"( "num_attention_heads": 64, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,)"
      << R"( "max_position_embeddings": 131072, "tie_word_embeddings": false, "num_hidden_layers": 80})";
  train::training_options o;
  o.model = directory.path();
  o.output = directory.path() / "out";
  o.dry_run = true;
  o.max_length = 4096;
  o.batch_size = 16;
  o.ranks = 4;
  o.max_grad_norm = 0.0;
  o.nonfinite = train::on_nonfinite::stop;
  auto m = train::read_machine(std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json");
  auto const p = train::plan_on<model::llama, bfloat16>(m, {}, o);
  CAPTURE(p.refusal);
  REQUIRE(p.fits);
  CHECK(p.state.immediate);
  CHECK(p.state.offloaded.gradient_of(40));
  // Shards of weights, one buffer for the embedding or the head, two for blocks. The same for gradients,
  // where embedding and head are float32, with parts from three other ranks and the shards of embedding and
  // head.
  double const block = 855.7e6, end = 1050.7e6;
  CHECK(static_cast<double>(p.on_device.weights) ==
        doctest::Approx(2.0 * (20 * block + end / 2) + 2.0 * (end + 2 * block)).epsilon(0.001));
  CHECK(static_cast<double>(p.on_device.gradients) ==
        doctest::Approx(4.0 * end + 2.0 * 2 * block + 3.0 * (256 << 20) + 2.0 * 3 * block / 4 + 2.0 * end / 2)
            .epsilon(0.001));
}

TEST_CASE("a micro-batch that is too large is refused with the largest that fits") {
  llama_8b m{32};
  m.options().batch_size = 2000;
  auto const refused = m.on("h200_pcie5.json");
  CHECK_FALSE(refused.fits);
  CAPTURE(refused.refusal);
  auto const number_after = [&](std::string const& words) {
    auto const at = refused.refusal.find(words);
    REQUIRE(at != std::string::npos);
    return std::stoll(refused.refusal.substr(at + words.size()));
  };
  auto const steps = number_after("--gradient_accumulation_steps ");
  CHECK(number_after("the largest micro-batch that fits has ") == (2000 + steps - 1) / steps);
  m.options().accumulation = steps;
  CHECK(m.on("h200_pcie5.json").fits);
  m.options().accumulation = steps - 1;
  CHECK_FALSE(m.on("h200_pcie5.json").fits);
}

}  // namespace
