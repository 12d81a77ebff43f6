// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A trainer inside a static library, with its own offload policy and architecture: it includes only what it
// uses, not the umbrella header.
#include "library.hpp"

#include <superoffload/data/examples.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/optim/schedule.hpp>
#include <superoffload/text/tokenizer.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/engine/weights.hpp>

#include "own_architecture.hpp"
#include "own_offload.hpp"

#include <cstdio>
#include <random>
#include <span>
#include <string>

namespace so = superoffload;

static_assert(so::offload::offload_policy<looped, so::cpu::device, float>);

namespace {

template <so::model::architecture Architecture>
losses train(std::filesystem::path const& model_directory, std::filesystem::path const& instructions,
             std::filesystem::path const& export_to = {}) {
  constexpr std::int64_t batch_size = 2;
  constexpr std::int64_t steps = 10;
  auto rows = so::data::read_instructions(instructions);
  rows.resize(32);
  auto const tokenizer = so::text::tokenizer::load(model_directory);
  auto const examples = so::data::encode_examples(rows, tokenizer, {.max_length = 128});
  so::data::loader loader{examples, {.batch_size = batch_size, .seed = 1}};

  so::cpu::device device{2};
  so::train::engine<so::precision::fp32, Architecture, looped> engine{
      device,
      so::model::read_config(model_directory, so::model::own_family<Architecture>()),
      {.max_rows = batch_size * examples.longest(), .max_positions = examples.longest()}};
  std::mt19937 random{1};
  engine.initialize([&](std::string const& name, std::int64_t, std::span<float> to) {
    std::normal_distribution<float> normal{0.0F, 0.05F};
    for (auto& weight : to) { weight = name.find("norm") == std::string::npos ? normal(random) : 1.0F; }
  });

  so::optim::schedule const rate{
      .kind = so::optim::schedule::shape::cosine, .peak = 1e-2, .warmup_steps = 2, .total_steps = steps};
  losses result{};
  for (std::int64_t k = 0; k < steps; ++k) {
    auto const step = loader.next();
    result.last = engine.forward(step.micro_batches.front());
    engine.backward();
    auto const done = engine.step(rate(k));
    if (k == 0) {
      result.first = result.last;
    }
    std::printf("step %lld: loss %.4f, gradient norm %.3f\n", static_cast<long long>(k), result.last,
                done.grad_norm);
  }
  if (!export_to.empty()) {
    so::train::export_model(engine, model_directory, export_to);
  }
  return result;
}

}  // namespace

losses train_from_scratch(std::filesystem::path const& model_directory,
                          std::filesystem::path const& instructions) {
  return train<so::model::llama>(model_directory, instructions);
}

losses train_own_architecture(std::filesystem::path const& model_directory,
                              std::filesystem::path const& instructions) {
  return train<parallel>(model_directory, instructions, model_directory / "trained");
}
