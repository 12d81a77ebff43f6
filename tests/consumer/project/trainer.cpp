// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// A trainer in a few dozen lines: a small Llama from random weights. Fails unless the loss falls.
#include <superoffload/data/loader.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/optim/schedule.hpp>
#include <superoffload/train/engine.hpp>

#include "instructions.hpp"

#include <cstdio>
#include <random>
#include <span>
#include <string>

namespace so = superoffload;

int main(int argc, char** argv) try {
  so::expect(argc == 3, so::exit_code::bad_input, "usage: trainer MODEL_DIRECTORY INSTRUCTIONS");
  constexpr std::int64_t batch_size = 4;
  constexpr std::int64_t steps = 10;
  auto const examples = load_instructions(argv[1], argv[2], 32);
  so::data::loader loader{examples, {.batch_size = batch_size, .seed = 1}};

  so::cpu::device device{2};
  so::train::engine<so::model::llama, so::precision::fp32> engine{
      device,
      so::model::read_config(argv[1]),
      {.max_rows = batch_size * examples.longest(), .max_positions = examples.longest()}};
  std::mt19937 random{1};
  engine.initialize([&](std::string const& name, std::int64_t, std::span<float> to) {
    std::normal_distribution<float> normal{0.0F, 0.05F};
    for (auto& weight : to) { weight = name.find("norm") == std::string::npos ? normal(random) : 1.0F; }
  });

  so::optim::schedule const rate{
      .kind = so::optim::schedule::shape::cosine, .peak = 1e-2, .warmup_steps = 2, .total_steps = steps};
  double first = 0.0, last = 0.0;
  for (std::int64_t k = 0; k < steps; ++k) {
    auto const step = loader.next();
    last = engine.forward(step.micro_batches.front());
    engine.backward();
    auto const result = engine.step(rate(k));
    if (k == 0) {
      first = last;
    }
    std::printf("step %lld: loss %.4f, gradient norm %.3f\n", static_cast<long long>(k), last,
                result.grad_norm);
  }
  return last < first ? 0 : 1;
} catch (so::error const& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return static_cast<int>(e.code());
}
