// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// One forward and backward against the numbers of Hugging Face transformers; see tests/data/README.md.
#include <superoffload/model/phi3.hpp>
#include <superoffload/model/qwen3.hpp>
#include <superoffload/model/seed_oss.hpp>

#include <doctest/doctest.h>

#include "support/reference_model.hpp"

#include <string>

namespace {

using namespace superoffload;

template <class Precision, model::architecture Architecture = model::llama>
void check(std::string const& name) {
  CAPTURE(name);
  test::reference_model<cpu::device, Precision, Architecture> m{name};
  test::check_loss_and_gradients(m);
  test::check_logits(m);
}

TEST_CASE_TEMPLATE("loss, gradients of every parameter and logits are those of transformers", Precision,
                   precision::fp32, precision::bf16) {
  check<Precision>("llama");
  check<Precision>("llama_tied");
  check<Precision, model::phi3>("phi3");
  check<Precision, model::qwen3>("qwen3");
  check<Precision, model::qwen3>("qwen3_tied");
  check<Precision, model::seed_oss>("seed_oss");
}

TEST_CASE_TEMPLATE("recompute changes no bit", Precision, precision::fp32, precision::bf16) {
  test::reference_model<cpu::device, Precision> kept{"llama"}, again{"llama", recompute::choice::every_block};
  test::check_recompute(kept, again);
}

}  // namespace
