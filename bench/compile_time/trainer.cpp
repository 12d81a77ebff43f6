// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The program that measure.py measures against its budget: everything that a program for one architecture
// instantiates, in fp32 and bf16. Compiled, never run.
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

namespace so = superoffload;

template <class Precision>
double train(so::model::config const& config, so::data::batch const& batch) {
  so::cpu::device device;
  so::train::engine<so::model::llama, Precision> engine{device, config, {.max_rows = 1, .max_positions = 1}};
  engine.initialize([](std::string const&, std::int64_t, std::span<float>) {});
  double const loss = engine.forward(batch);
  engine.backward();
  engine.step(1e-5);
  return loss + engine.evaluate(batch);
}

template double train<so::precision::fp32>(so::model::config const&, so::data::batch const&);
template double train<so::precision::bf16>(so::model::config const&, so::data::batch const&);
