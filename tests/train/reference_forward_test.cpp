// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// One forward and backward against the numbers of Hugging Face transformers; see tests/data/README.md.
#include <doctest/doctest.h>

#include "support/reference_model.hpp"

#include <string>

namespace {

using namespace superoffload;

TEST_CASE_TEMPLATE("loss, gradients of every parameter and logits are those of transformers", Precision,
                   precision::fp32, precision::bf16) {
  for (std::string const name : {"llama", "llama_tied"}) {
    CAPTURE(name);
    test::reference_model<cpu::device, Precision> m{name};
    test::check_loss_and_gradients(m);
    test::check_logits(m);
  }
}

TEST_CASE_TEMPLATE("recompute changes no bit", Precision, precision::fp32, precision::bf16) {
  test::reference_model<cpu::device, Precision> kept{"llama"}, again{"llama", recompute::choice::every_block};
  test::check_recompute(kept, again);
}

}  // namespace
