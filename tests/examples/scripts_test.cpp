// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The launch scripts of examples/scripts, without a GPU: plan, command and DeepSpeed configuration.
#include "examples/finetune.hpp"

#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;

fs::path const configs = fs::path{SUPEROFFLOAD_TEST_DATA} / "configs";
fs::path const hardware = SUPEROFFLOAD_HARDWARE;

/// The scripts in a directory of their own: they write beside themselves.
struct scripts {
  scripts() {
    fs::create_directories(directory());
    for (auto const& file : fs::directory_iterator{fs::path{SUPEROFFLOAD_SCRIPTS}}) {
      if (file.path().extension() == ".sh") {
        fs::copy(file.path(), directory());
      }
    }
    fs::create_directories(place.path() / "examples/data");
    fs::copy(alpaca, place.path() / "examples/data");
  }
  [[nodiscard]] fs::path directory() const { return place.path() / "examples/scripts"; }

  [[nodiscard]] outcome run(std::string const& name, std::vector<std::string> const& arguments,
                            char const* model) const {
    return program{directory() / (name + ".sh"), arguments,
                   [&] {
                     ::setenv("PROGRAMS", finetune.parent_path().c_str(), 1);
                     model == nullptr ? ::unsetenv("MODEL_DIR")
                                      : ::setenv("MODEL_DIR", (configs / model).c_str(), 1);
                   }}
        .wait();
  }

  scratch_directory place;
};

TEST_CASE("scripts plan published models from config.json alone") {
  struct script {
    char const* name;
    char const* model;
    double ratio;
    std::int64_t max_length;
  };
  script const all[] = {{"finetune_llama-8b_1gpu", "llama-8b", 0.80, 4096},
                        {"finetune_phi-4_1gpu", "phi-4", 0.90, 4096},
                        {"finetune_qwen3-14b_1gpu", "qwen3-14b", 0.90, 4096},
                        {"finetune_gpt-oss-20b_1gpu", "gpt-oss-20b", 0.90, 8192},
                        {"finetune_seed-oss-36b_2gpu", "seed-oss-36b", 0.90, 4096},
                        {"finetune_qwen3-30b-a3b_2gpu", "qwen3-30b-a3b", 0.90, 4096},
                        {"finetune_llama-70b_4gpu", "llama-70b", 0.90, 4096}};
  scripts const s;
  for (auto const& of : all) {
    for (std::string const mode : {"superoffload", "zerooffload"}) {
      CAPTURE(of.name);
      CAPTURE(mode);
      auto const plan = s.place.path() / "plan.json";
      auto const done = s.run(
          of.name,
          {mode, "4", "--dry_run", "--hardware", (hardware / "gb200.json").string(), "--plan", plan.string()},
          of.model);
      CAPTURE(done.out);
      CAPTURE(done.err);
      REQUIRE(done.status == 0);
      CHECK(done.out.find("--max_length " + std::to_string(of.max_length)) != std::string::npos);
      CHECK(done.out.find("plan for ") != std::string::npos);
      CHECK(io::read_json(plan)["fits"] == true);
      auto const file = std::string{of.name} + "_" + mode;
      auto const config = io::read_json(s.directory() / (file + ".json"));
      CHECK(config["train_batch_size"] == 4);
      auto const& offload = config["zero_optimization"]["offload_optimizer"];
      CHECK(offload["device"] == "cpu");
      CHECK(offload.contains("super_offload") == (mode == "superoffload"));
      if (mode == "superoffload") {
        CHECK(offload["ratio"] == of.ratio);
        CHECK(io::read_json(plan)["places"]["resident"].get<double>() ==
              doctest::Approx(1.0 - of.ratio).epsilon(0.1));
      }
      CHECK(contents_of(s.directory() / (file + ".log")).find("plan for ") != std::string::npos);
    }
  }
}

TEST_CASE("scripts refuse what they cannot do in one line") {
  scripts const s;
  struct wrong {
    std::vector<std::string> arguments;
    char const* model;
    char const* says;
  };
  wrong const all[] = {{{}, "phi-4", "the mode is ''"},
                       {{"fast"}, "phi-4", "the mode is 'fast'"},
                       {{"superoffload", "0"}, "phi-4", "the batch is 0"},
                       {{"superoffload"}, nullptr, "MODEL_DIR is not set"}};
  for (auto const& w : all) {
    auto const done = s.run("finetune_phi-4_1gpu", w.arguments, w.model);
    CHECK(done.status == 2);
    CHECK(done.err.find("finetune_phi-4_1gpu.sh: error: ") != std::string::npos);
    CHECK(done.err.find(w.says) != std::string::npos);
  }
  auto const another =
      s.run("finetune_phi-4_1gpu",
            {"superoffload", "--dry_run", "--hardware", (hardware / "gb200.json").string()}, "qwen3-14b");
  CHECK(another.status == 2);
  CHECK((another.out + another.err).find("this program trains 'phi3'") != std::string::npos);
}

}  // namespace
