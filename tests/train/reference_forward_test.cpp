// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// One forward and backward against the numbers of Hugging Face transformers; see tests/data/README.md.
#include <doctest/doctest.h>

#include "support/reference_model.hpp"

#include <string>

namespace {

using namespace superoffload;
using model = test::reference_model<cpu::device, precision::fp32>;

TEST_CASE("loss, gradients of every parameter and logits are those of transformers") {
  std::string name;
  SUBCASE("untied") { name = "llama"; }
  SUBCASE("tied") { name = "llama_tied"; }
  model m{name};
  test::check_loss_and_gradients(m);
  test::check_logits(m);
}

TEST_CASE_TEMPLATE("recompute changes no bit", Precision, precision::fp32, precision::bf16) {
  test::reference_model<cpu::device, Precision> kept{"llama"}, again{"llama", true};
  test::check_recompute(kept, again);
}

}  // namespace
