// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The launch scripts of examples/scripts, without a GPU: plan, command and DeepSpeed configuration; and whole
// runs on CPUs, with small models of the same architectures.
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

  /// `model`: empty: none is named. The hub's cache is empty.
  [[nodiscard]] outcome run(std::string const& name, std::vector<std::string> const& arguments,
                            fs::path const& model, fs::path const& data = {}) const {
    return program{directory() / (name + ".sh"), arguments,
                   [&] {
                     ::setenv("PROGRAMS", finetune.parent_path().c_str(), 1);
                     ::setenv("HF_HUB_CACHE", place.path().c_str(), 1);
                     for (auto const& [variable, value] :
                          {std::pair{"MODEL_DIR", model}, {"DATASET", data}, {"EVAL_DATASET", data}}) {
                       value.empty() ? ::unsetenv(variable) : ::setenv(variable, value.c_str(), 1);
                     }
                   }}
        .wait();
  }

  scratch_directory place;
};

struct script {
  char const* name;
  char const* model;
  double ratio;
  std::int64_t max_length;
  int ranks;
  char const* small;  ///< a checkpoint of its architecture
};
script const all_scripts[] = {{"finetune_llama-8b_1gpu", "llama-8b", 0.80, 4096, 1, "llama"},
                              {"finetune_phi-4_1gpu", "phi-4", 0.90, 4096, 1, "phi3"},
                              {"finetune_qwen3-14b_1gpu", "qwen3-14b", 0.90, 4096, 1, "qwen3"},
                              {"finetune_gpt-oss-20b_1gpu", "gpt-oss-20b", 0.90, 8192, 1, "gpt_oss"},
                              {"finetune_seed-oss-36b_2gpu", "seed-oss-36b", 0.90, 4096, 2, "seed_oss"},
                              {"finetune_qwen3-30b-a3b_2gpu", "qwen3-30b-a3b", 0.90, 4096, 2, "qwen3_moe"},
                              {"finetune_llama-70b_4gpu", "llama-70b", 0.90, 4096, 4, "llama"}};

bool contains(std::string const& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST_CASE("scripts plan published models from config.json alone") {
  scripts const s;
  for (auto const& of : all_scripts) {
    for (std::string const mode : {"superoffload", "zerooffload"}) {
      CAPTURE(of.name);
      CAPTURE(mode);
      auto const plan = s.place.path() / "plan.json";
      auto const done = s.run(
          of.name,
          {mode, "4", "--dry_run", "--hardware", (hardware / "gb200.json").string(), "--plan", plan.string()},
          configs / of.model);
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
        CHECK(io::read_json(plan)["tiers"]["resident"].get<double>() ==
              doctest::Approx(1.0 - of.ratio).epsilon(0.1));
      }
      CHECK(contents_of(s.directory() / (file + ".log")).find("plan for ") != std::string::npos);
    }
  }
}

TEST_CASE("scripts run as they stand: an epoch with evaluation and export, or with --bench some steps") {
  scripts const s;
  for (auto const& of : all_scripts) {
    CAPTURE(of.name);
    auto const model = s.place.path() / of.name;  // a small one, with as many positions as the script wants
    fs::copy(models / of.small, model);
    auto config = io::read_json(model / "config.json");
    config["max_position_embeddings"] = std::int64_t{1} << 17;
    fs::permissions(model / "config.json", fs::perms::owner_all);
    write_file(model / "config.json", config.dump());
    for (std::string const mode : {"superoffload", "zerooffload"}) {
      CAPTURE(mode);
      auto const done = s.run(of.name, {mode, "--device", "cpu"}, model, some_rows);
      CAPTURE(done.out);
      CAPTURE(done.err);
      REQUIRE(done.status == 0);
      auto const file = std::string{of.name} + "_" + mode;
      CHECK(contains(done.out, "step 16/16"));  // 64 rows, 4 a step
      CHECK(contains(done.out, "held-out loss"));
      CHECK(contains(done.out, " before, "));
      CHECK(contains(done.out, "micro-batch on each of ") == (of.ranks > 1));
      CHECK(fs::exists(s.directory() / (file + "_output") / "model"));
      CHECK(fs::exists(s.directory() / (file + "_output") / "checkpoint-16"));
      CHECK(io::read_json(s.directory() / (file + ".json"))["gradient_clipping"] == 1.0);

      auto const bench =
          s.run(of.name, {mode, "8", "--bench", "--device=cpu", "--max-length", "64", "--max_steps", "2"},
                model, some_rows);
      CAPTURE(bench.out);
      REQUIRE(bench.status == 0);
      CHECK(contains(bench.out, "step 2/2"));
      CHECK(contains(bench.out, "8 sequences of up to 64 tokens a step"));
      CHECK(contains(bench.out, "data               6 examples"));
      CHECK(contains(bench.out, "exported and saved nothing"));
      auto const measured = io::read_json(s.directory() / (file + "_bench.json"));
      CHECK(measured["gradient_clipping"] == 0.0);
      CHECK(measured["wall_clock_breakdown"] == true);
    }
  }
  // The same command goes on where the one before has ended, further with more epochs; a second benchmark
  // starts again.
  auto const again =
      s.run("finetune_phi-4_1gpu", {"superoffload", "--device", "cpu", "--num-train-epochs", "1.25"},
            s.place.path() / "finetune_phi-4_1gpu", some_rows);
  CHECK(again.status == 0);
  CHECK(contains(again.out, "resumed at step 16"));
  CHECK(contains(again.out, "step 20/20"));
  auto const second =
      s.run("finetune_phi-4_1gpu",
            {"superoffload", "--bench", "--device", "cpu", "--max_length", "64", "--max_steps", "1"},
            s.place.path() / "finetune_phi-4_1gpu", some_rows);
  CHECK(second.status == 0);
  CHECK(contains(second.out, "step 1/1"));
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
                       {{"superoffload", "0"}, "phi-4", "the batch is 0"}};
  for (auto const& w : all) {
    auto const done = s.run("finetune_phi-4_1gpu", w.arguments, configs / w.model);
    CHECK(done.status == 2);
    CHECK(done.err.find("finetune_phi-4_1gpu.sh: error: ") != std::string::npos);
    CHECK(done.err.find(w.says) != std::string::npos);
  }
  auto const another = s.run("finetune_phi-4_1gpu",
                             {"superoffload", "--dry_run", "--hardware", (hardware / "gb200.json").string()},
                             configs / "qwen3-14b");
  auto const nowhere = s.run("finetune_phi-4_1gpu", {"superoffload", "--device", "cpu"}, {});
  CHECK(nowhere.status == 2);
  CHECK(contains(nowhere.out,
                 "--model is microsoft/phi-4, which is no directory here and not in the hub's cache, " +
                     s.place.path().string()));
  CHECK(another.status == 2);
  CHECK((another.out + another.err).find("this program trains 'phi3'") != std::string::npos);
}

}  // namespace
