// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// A trainer with its own loop, as a user of the package writes it, with the optimizer's state off the device:
// trainer MODEL DATASET OUTPUT.
#include <superoffload/superoffload.hpp>

#include <cstdio>

namespace so = superoffload;

using engine = so::train::engine<so::model::llama, so::precision::bf16, so::recompute::every_block,
                                 so::zero::offloaded, so::offload::super>;

int main(int argc, char** argv) try {
  if (argc != 4) {
    return std::fprintf(stderr, "usage: %s MODEL DATASET OUTPUT\n", argv[0]), 2;
  }
  constexpr std::int64_t length = 128;  // short: the header-only program is not optimised
  constexpr std::int64_t batch = 2;

  auto const tokenizer = so::text::tokenizer::load(argv[1]);
  auto const examples =
      so::data::encode_examples(so::data::read_instructions(argv[2]), tokenizer, {.max_length = length});
  so::data::loader loader{examples, {.batch_size = batch}};

  engine::device_type device;
  so::train::planned_engine<engine> trained{device,
                                            so::model::read_config(argv[1]),
                                            {.max_rows = batch * length, .max_positions = length},
                                            {.offload = {.ratio = 1.0}}};
  std::fputs(trained.plan_text().c_str(), stdout);
  auto const weights = so::io::hub_checkpoint::open(argv[1]);
  so::train::expect_tensors(trained.model().units(), weights);
  trained.initialize(so::train::weights_of(weights));

  double first = 0.0, last = 0.0;
  for (int i = 0; i < 10; ++i) {
    auto const step = loader.next();
    trained.begin_step(step.label_tokens, 1, 1e-3);
    last = trained.forward(step.micro_batches[0]);
    trained.backward();
    auto const done = trained.step(1e-3);
    if (i == 0) {
      first = last;
    }
    std::printf("step %d loss %.4f gradient %.3f\n", i + 1, last, done.grad_norm);
  }
  so::train::export_model(trained, argv[1], argv[3]);
  auto const served = trained.state().counts();
  bool const offloaded = served.speculated + served.updated > 0;
  return offloaded && last < first ? 0 : 1;
} catch (so::error const& e) {
  std::fprintf(stderr, "error: %s\n", e.what());
  return static_cast<int>(e.code());
}
