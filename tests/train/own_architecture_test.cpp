// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// An architecture with a model_type that the library does not know, from its config.json to a run and a plan.
#include <superoffload/io/hub.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/planning/described_run.hpp>
#include <superoffload/train/planning/machine_file.hpp>
#include <superoffload/train/trainer.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"
#include "support/scratch_directory.hpp"
#include "support/short_run.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
namespace fs = std::filesystem;

/// A Llama under another name.
struct own_block : model::llama_block {
  static constexpr model::family config_family{.model_type = "own", .name = "OwnForCausalLM"};
  static std::string model_type() { return config_family.model_type; }
  static own_block lay_out(model::config const& c, model::layer_layout& layer) {
    return {llama_block::lay_out(c, layer)};
  }
};
using own = model::decoder<own_block>;

/// The weights of all tensors after two steps.
template <class Architecture>
std::vector<float> trained(fs::path const& model, fs::path const& output) {
  auto o = test::short_run(output, 2);
  o.model = model;
  cpu::device device{2};
  auto const checkpoint =
      io::hub_checkpoint::open(train::trainer<train::engine<Architecture>>{device, o}.run().exported);
  std::vector<float> all;
  for (auto const& name : checkpoint.names()) {
    std::vector<float> values(checkpoint.find(name)->elements());
    checkpoint.read(name, 0, values);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_CASE("a user's own architecture is planned and trained by the family that it declares") {
  test::scratch_directory const scratch;
  auto const llama = fs::path{SUPEROFFLOAD_TEST_DATA} / "models" / "llama", model = scratch.path() / "own";
  fs::copy(llama, model);
  auto config = io::read_json(llama / "config.json");
  config["model_type"] = "own";
  config["architectures"] = {"OwnForCausalLM"};
  std::ofstream{model / "config.json"} << config;
  CHECK(trained<own>(model, scratch.path() / "a") == trained<model::llama>(llama, scratch.path() / "b"));
  CHECK_THROWS_WITH_AS(trained<model::llama>(model, scratch.path() / "c"),
                       doctest::Contains("'own' is not supported"), error);

  auto o = test::short_run(scratch.path() / "d", 2);
  o.model = model;
  auto const machine = train::read_machine(fs::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json");
  CHECK(train::plan_on<own, float>(machine, {}, o).fits);
}

}  // namespace
