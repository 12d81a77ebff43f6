// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Training on a GPU against the numbers of Hugging Face transformers (see tests/data/README.md) and against
// the CPU.
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/model/gpt_oss.hpp>
#include <superoffload/model/mistral.hpp>
#include <superoffload/model/phi3.hpp>
#include <superoffload/model/qwen2.hpp>
#include <superoffload/model/qwen3.hpp>
#include <superoffload/model/qwen3_moe.hpp>
#include <superoffload/model/seed_oss.hpp>

#include <doctest/doctest.h>

#include "support/reference_model.hpp"

#include <string>
#include <type_traits>

namespace {

using namespace superoffload;
using test::reference_model;

template <class Precision, model::architecture Architecture = model::llama>
void check(std::string const& name) {
  CAPTURE(name);
  reference_model<cuda::device, Precision, Architecture> m{name};
  test::check_loss_and_gradients(m);
  test::check_logits(m);
}

TEST_CASE_TEMPLATE("on a GPU, loss, gradients of every parameter and logits are those of transformers",
                   Precision, precision::fp32, precision::bf16) {
  check<Precision>("llama");
  check<Precision>("llama_tied");
  check<Precision, model::mistral>("mistral");
  check<Precision, model::phi3>("phi3");
  check<Precision, model::phi3>("phi3_longrope");
  check<Precision, model::qwen2>("qwen2");
  check<Precision, model::qwen3>("qwen3");
  check<Precision, model::qwen3>("qwen3_tied");
  check<Precision, model::qwen3_moe>("qwen3_moe");
  check<Precision, model::seed_oss>("seed_oss");
  check<Precision, model::gpt_oss>("gpt_oss");
  check<Precision, model::gpt_oss>("gpt_oss_mxfp4");
}

TEST_CASE_TEMPLATE("on a GPU, the plan equals what is then allocated", Precision, precision::fp32,
                   precision::bf16) {
  reference_model<cuda::device, Precision> m{"llama"};
  m.train(2);
  CHECK(static_cast<double>(m.device.peak_bytes()) ==
        doctest::Approx(static_cast<double>(m.trained.allocation().total())).epsilon(0.03));
}

TEST_CASE_TEMPLATE("on a GPU, recompute changes no bit", Precision, precision::fp32, precision::bf16) {
  reference_model<cuda::device, Precision> kept{"llama"}, recomputed{"llama", recompute::choice::every_block};
  test::check_recompute(kept, recomputed);
}

TEST_CASE_TEMPLATE("training on a GPU repeats bit for bit, and follows the CPU's", Precision, precision::fp32,
                   precision::bf16) {
  constexpr int steps = 8;
  reference_model<cuda::device, Precision> once{"llama"}, again{"llama"};
  reference_model<cpu::device, Precision> on_cpu{"llama"};
  auto const losses = once.train(steps);
  CHECK(losses == again.train(steps));
  CHECK(once.weights() == again.weights());
  auto const expected = on_cpu.train(steps);
  auto const tolerance = std::is_same_v<Precision, precision::fp32> ? 1e-4 : 2e-2;
  for (int i = 0; i < steps; ++i) { CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(tolerance)); }
  CHECK(losses.back() < 0.9 * losses.front());
}

}  // namespace
