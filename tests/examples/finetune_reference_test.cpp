// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Whole training runs of the real program against those of Hugging Face transformers; see
// tests/data/README.md.
#include <superoffload/io/hub.hpp>

#include "examples/finetune.hpp"
#include "examples/reference_run.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>

namespace {

using namespace superoffload;
using namespace superoffload::test;

constexpr char const* checkpoints[] = {"llama",         "llama_tied", "mistral", "phi3",
                                       "phi3_longrope", "qwen2",      "qwen3",   "qwen3_tied",
                                       "qwen3_moe",     "seed_oss",   "gpt_oss", "gpt_oss_mxfp4"};

void check_final_weights(io::json const& final, std::filesystem::path const& exported) {
  auto const checkpoint = io::hub_checkpoint::open(exported);
  CHECK(checkpoint.names().size() == final.size());
  for (auto const& item : final.items()) {
    auto const& name = item.key();
    auto const& truth = item.value();
    CAPTURE(name);
    auto const* const tensor = checkpoint.find(name);
    REQUIRE(tensor != nullptr);
    std::uint64_t count = 1;
    for (auto const extent : tensor->shape) { count *= static_cast<std::uint64_t>(extent); }
    std::vector<float> values(count);
    checkpoint.read(name, 0, values);
    double sum = 0.0, squares = 0.0;
    for (double const value : values) {
      sum += value;
      squares += value * value;
    }
    double const l2 = truth["l2"].get<double>();
    CHECK(std::sqrt(squares) == doctest::Approx(l2).epsilon(1e-4));
    CHECK(std::abs(sum - truth["sum"].get<double>()) <= 1e-3 * l2);
  }
}

void check_run(std::string const& model, io::json const& truth, std::string const& dtype) {
  auto const& args = truth["args"];
  bool const bf16 = dtype == "bf16";
  scratch_directory const output;
  auto flags = flags_of(args);
  flags.insert(flags.end(), {"--dtype", dtype});
  if (model == "llama") {
    flags.insert(flags.end(), {"--dataset", alpaca.string()});  // all of it, as the reference had it
  }
  auto const done = finetune_run{model, flags}.run_in(output.path());
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  auto const steps = metrics_in(output.path());
  REQUIRE(steps.size() == args["steps"].get<std::size_t>());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CAPTURE(i);
    CHECK(steps[i]["loss"].get<double>() ==
          doctest::Approx(truth["loss"][i].get<double>()).epsilon(bf16 ? 0.01 : 2e-5));
    CHECK(steps[i]["grad_norm"].get<double>() ==
          doctest::Approx(truth["grad_norm"][i].get<double>()).epsilon(bf16 ? 0.03 : 1e-4));
    CHECK(steps[i]["lr"].get<double>() == doctest::Approx(truth["lr"][i].get<double>()).epsilon(1e-6));
    CHECK(steps[i]["label_tokens"] == truth["label_tokens"][i]);
  }
  if (!bf16) {
    check_final_weights(truth["final"], output.path() / "model");
  }
}

/// Also in bf16 where the reference is float32, and held to the same as one in bf16.
TEST_CASE("every reference run is reproduced step by step") {
  std::set<std::string> seen;
  for (std::string const model : checkpoints) {
    auto const expected = io::read_json(models / model / "expected.json", {.bytes = std::size_t{4} << 20});
    for (auto const& truth : expected["train"]) {
      auto const name = truth["args"]["name"].get<std::string>();
      CAPTURE(model);
      CAPTURE(name);
      bool const each_once = superoffload::test::under_sanitizer && !model.starts_with("llama");
      if (truth["args"]["dtype"] != "bfloat16" && !(each_once && name == "schedule")) {
        check_run(model, truth, "float32");
      }
      if (!(each_once && name == "plain")) {
        check_run(model, truth, "bf16");
      }
      seen.insert(model + "/" + name);
    }
  }
  CHECK(seen ==
        std::set<std::string>{
            "llama/plain",         "llama/schedule",        "llama/packing",       "llama/bf16",
            "llama_tied/plain",    "llama_tied/schedule",   "mistral/plain",       "mistral/schedule",
            "phi3/plain",          "phi3/schedule",         "phi3_longrope/plain", "phi3_longrope/schedule",
            "qwen2/plain",         "qwen2/schedule",        "qwen3/plain",         "qwen3/schedule",
            "qwen3_tied/plain",    "qwen3_tied/schedule",   "qwen3_moe/plain",     "qwen3_moe/schedule",
            "seed_oss/plain",      "seed_oss/schedule",     "gpt_oss/plain",       "gpt_oss/schedule",
            "gpt_oss_mxfp4/plain", "gpt_oss_mxfp4/schedule"});
}

/// A step with the rate 0 changes no weight but the sign of a zero, which MXFP4 has: what is exported must be
/// what was read.
TEST_CASE("what is read is exported bit for bit, under the names and in the shapes of the hub") {
  for (std::string const model : checkpoints) {
    CAPTURE(model);
    scratch_directory const output;
    finetune_run const r{model,
                         {"--dtype", "float32", "--lr", "0", "--weight_decay", "0", "--max_steps", "1",
                          "--max_length", "32", "--batch_size", "1"}};
    auto const done = r.run_in(output.path());
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    auto const read = io::hub_checkpoint::open(models / model);
    auto const written = io::hub_checkpoint::open(output.path() / "model");
    REQUIRE(written.names() == read.names());  // and in float32 what was MXFP4
    for (auto const& name : read.names()) {
      CAPTURE(name);
      auto const& shape = read.find(name)->shape;
      REQUIRE(written.find(name)->shape == shape);
      std::uint64_t count = 1;
      for (auto const extent : shape) { count *= static_cast<std::uint64_t>(extent); }
      std::vector<float> before(count), after(count);
      read.read(name, 0, before);
      written.read(name, 0, after);
      CHECK(std::ranges::equal(before, after, [](float x, float y) {
        return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y) || (x == 0 && y == 0);
      }));
    }
  }
}

}  // namespace
