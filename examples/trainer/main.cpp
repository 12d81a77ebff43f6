// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The trainer of README.md, line by line.
#include <superoffload/superoffload.hpp>

#include <cstdio>

namespace so = superoffload;
using device = so::cpu::device;  // on a GPU so::cuda::device, of superoffload/cuda/device.hpp and cuda/kernels.hpp
using engine =
    so::train::engine<so::model::llama, device, so::precision::bf16, so::zero::offloaded, so::offload::super>;

int main(int argc, char** argv) try {
  if (argc != 4) { return std::fputs("usage: trainer MODEL DATASET OUTPUT\n", stderr), 2; }
  auto const tokenizer = so::text::tokenizer::load(argv[1]);
  auto const rows = so::data::read_instructions(argv[2]);
  auto const examples = so::data::encode_examples(rows, tokenizer, {.max_length = 512});
  so::data::loader loader{examples, {.batch_size = 4}};

  device runs_on;
  so::train::planned_engine<engine> trained{
      runs_on,
      so::model::read_config(argv[1]),
      {.max_rows = 4 * 512, .max_positions = 512, .recompute = so::recompute::choice::automatic},
      {.offload = {.ratio = 0.9}}};  // nine tenths of the optimizer state off the device; the rest as planned
  std::puts(trained.plan_text().c_str());
  auto const weights = so::io::hub_checkpoint::open(argv[1]);
  so::train::expect_tensors(trained.model().units(), weights);
  trained.initialize(so::train::weights_of(weights));

  for (int i = 1; i <= 10; ++i) {
    auto const step = loader.next();
    trained.begin_step(step.label_tokens, 1, 1e-3);  // with the rate, the CPU updates during backward
    double const loss = trained.forward(step.micro_batches.front());
    trained.backward();
    auto const done = trained.step(1e-3);
    std::printf("step %d: loss %.4f, gradient norm %.3f\n", i, loss, done.grad_norm);
  }
  so::train::export_model(trained, argv[1], argv[3]);
} catch (so::error const& e) {
  std::fprintf(stderr, "error: %s\n", e.what());
  return static_cast<int>(e.code());
}
