// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// trainer DIRECTORY: one step of a small Llama of DIRECTORY/config.json on two sentences, a token for each
// byte. The loss must be less after it.
#include <superoffload/superoffload.hpp>

#include <cmath>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace so = superoffload;

int main(int argc, char** argv) try {
  if (argc != 2) {
    return std::fputs("usage: trainer DIRECTORY\n", stderr), 2;
  }
  std::vector<so::data::instruction> const rows{
      {.instruction = "Say it in the passive voice.", .input = "", .output = "It was said."},
      {.instruction = "Count to three.", .input = "", .output = "One, two, three."}};
  auto const bytes = [](std::string_view text) {
    return std::vector<std::int32_t>{text.begin(), text.end()};
  };
  auto const examples = so::data::encode_examples(
      rows, bytes, 0, {.prompt_template = so::text::prompt_template::deepspeed, .max_length = 128});
  so::data::loader loader{examples, {.batch_size = 2}};

  so::cpu::device device;
  so::train::engine<so::model::llama, so::precision::fp32> engine{
      device,
      so::model::read_config(argv[1]),
      {.max_rows = 2 * examples.longest(), .max_positions = examples.longest()}};
  std::mt19937 random{1};
  std::normal_distribution<float> normal{0.0F, 0.05F};
  engine.initialize([&](std::string const& name, std::int64_t, std::span<float> to) {
    bool const is_norm = name.find("norm") != std::string::npos;
    for (auto& weight : to) { weight = is_norm ? 1.0F : normal(random); }
  });

  auto const step = loader.next();
  double const before = engine.forward(step.micro_batches.front());
  engine.backward();
  engine.step(1e-2);
  double const after = engine.forward(step.micro_batches.front());
  engine.backward();
  engine.step(0.0);
  std::printf("superoffload %d.%d.%d: loss %.3f, after a step %.3f\n", SUPEROFFLOAD_VERSION_MAJOR,
              SUPEROFFLOAD_VERSION_MINOR, SUPEROFFLOAD_VERSION_PATCH, before, after);
  return std::isfinite(after) && after < before ? 0 : 1;
} catch (so::error const& e) {
  std::fprintf(stderr, "error: %s\n", e.what());
  return static_cast<int>(e.code());
}
