// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// One forward and backward against the numbers of Hugging Face transformers; see tests/data/README.md.
#include <superoffload/model/gpt_oss.hpp>
#include <superoffload/model/mistral.hpp>
#include <superoffload/model/phi3.hpp>
#include <superoffload/model/qwen2.hpp>
#include <superoffload/model/qwen3.hpp>
#include <superoffload/model/qwen3_moe.hpp>
#include <superoffload/model/seed_oss.hpp>
#include <superoffload/train/engine/weights.hpp>

#include <doctest/doctest.h>

#include "support/reference_model.hpp"
#include "support/scratch_directory.hpp"

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
  check<Precision, model::mistral>("mistral");
  check<Precision, model::phi3>("phi3");
  check<Precision, model::phi3>("phi3_longrope");
  check<Precision, model::qwen2>("qwen2");
  check<Precision, model::qwen3>("qwen3");
  check<Precision, model::qwen3>("qwen3_tied");
  check<Precision, model::seed_oss>("seed_oss");
  check<Precision, model::qwen3_moe>("qwen3_moe");
  check<Precision, model::gpt_oss>("gpt_oss");
  check<Precision, model::gpt_oss>("gpt_oss_mxfp4");
}

TEST_CASE("an export of MXFP4 has the dequantised weights and no quantization_config") {
  test::scratch_directory const output;
  test::reference_model<cpu::device, precision::fp32, model::gpt_oss> m{"gpt_oss_mxfp4"};
  auto const to = output.path() / "model";
  train::export_model(m.trained, m.directory, to);
  CHECK(model::read_config(m.directory).mxfp4_experts);
  CHECK_FALSE(model::read_config(to).mxfp4_experts);
  auto const before = io::hub_checkpoint::open(m.directory), after = io::hub_checkpoint::open(to);
  CHECK(before.quantised());
  CHECK_FALSE(after.quantised());
  REQUIRE(before.names() == after.names());
  train::expect_quantisation(model::read_config(m.directory), before);
  train::expect_quantisation(model::read_config(to), after);
  CHECK_THROWS_WITH_AS(train::expect_quantisation(model::read_config(m.directory), after),
                       doctest::Contains("'quantization_config' says mxfp4, but"), error);
  CHECK_THROWS_WITH_AS(train::expect_quantisation(model::read_config(to), before),
                       doctest::Contains("config.json has no field 'quantization_config'"), error);
  for (auto const& name : before.names()) {
    CAPTURE(name);
    REQUIRE(before.find(name)->shape == after.find(name)->shape);
    std::vector<float> was(before.find(name)->elements()), is(was.size());
    before.read(name, 0, was);
    after.read(name, 0, is);
    CHECK(was == is);
  }
}

TEST_CASE_TEMPLATE("recompute changes no bit", Precision, precision::fp32, precision::bf16) {
  test::reference_model<cpu::device, Precision> kept{"llama"},
      recomputed{"llama", recompute::choice::every_block};
  test::check_recompute(kept, recomputed);
}

}  // namespace
