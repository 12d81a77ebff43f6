// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>

#include "examples/finetune.hpp"

namespace {

using namespace superoffload;

TEST_CASE("a run is planned for a machine that is not there, from config.json alone") {
  test::scratch_directory const root;
  auto const model = root.path() / "model";
  std::filesystem::create_directory(model);
  std::ofstream{model / "config.json"}
      << R"({"model_type": "llama", "vocab_size": 128256, "hidden_size": 4096, "intermediate_size": 14336,)"
      << R"( "num_attention_heads": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,)"
      << R"( "max_position_embeddings": 131072, "tie_word_embeddings": false, "num_hidden_layers": 32})";
  auto const plan_of = [&](std::filesystem::path const& program, char const* machine,
                           std::vector<std::string> const& more) {
    std::vector<std::string> arguments{"--dry_run",
                                       "--model",
                                       model.string(),
                                       "--max_length",
                                       "2048",
                                       "--batch_size",
                                       "4",
                                       "--hardware",
                                       (std::filesystem::path{SUPEROFFLOAD_HARDWARE} / machine).string(),
                                       "--plan",
                                       (root.path() / "plan.json").string(),
                                       "--timeline",
                                       (root.path() / "step.svg").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return test::run(program, arguments);
  };
  auto const written = [&] { return io::json::parse(test::contents_of(root.path() / "plan.json")); };

  auto const done = plan_of(test::finetune_llama, "gh200.json", {"--offload", "super"});
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  CHECK(done.err.empty());
  CHECK(done.out.find("plan for NVIDIA GH200") == 0);
  CHECK(done.out.find("optimizer state") != std::string::npos);
  auto const plan = written();
  CHECK(plan["fits"] == true);
  for (char const* number : {"step_time_ms", "bound_ms", "tokens_per_second", "model_tflops"}) {
    CAPTURE(number);
    CHECK(plan[number].get<double>() > 0.0);
  }
  CHECK(plan["recompute"].is_string());
  auto const& tiers = plan["tiers"];
  CHECK(tiers["resident"].get<double>() + tiers["host"].get<double>() +
            tiers["device_updated"].get<double>() ==
        doctest::Approx(1.0));
  CHECK(plan["device_bytes"]["total"] <= plan["device_bytes"]["available"]);
  CHECK(plan["host_bytes"]["state"] > 0);
  CHECK(test::contents_of(root.path() / "step.svg").rfind("<svg", 0) == 0);

  auto const ratio =
      plan_of(test::finetune, "h200_pcie5.json", {"--ratio", "1", "--device_updated_share", "0"});
  CHECK(ratio.status == 0);
  CHECK(written()["tiers"]["host"] == 1.0);

  // A budget leaves more of the state to the host, or refuses what it cannot hold.
  auto const within = plan_of(test::finetune, "h200_pcie5.json", {"--device_memory", "40"});
  CAPTURE(within.err);
  CHECK(within.status == 0);
  CHECK(written()["device_bytes"]["available"] == std::size_t{40} << 30);
  CHECK(written()["device_bytes"]["total"] <= std::size_t{40} << 30);
  CHECK(written()["tiers"]["resident"] < 0.5);
  CHECK(within.out.find("--device_memory 20") != std::string::npos);
  CHECK(within.out.find("(available: 40.00)") != std::string::npos);
  auto const too_small =
      plan_of(test::finetune, "h200_pcie5.json", {"--device_memory", "2", "--host_memory", "90"});
  CHECK(too_small.status == static_cast<int>(exit_code::cannot_fit));
  CHECK(written()["host_bytes"]["available"] == std::size_t{90} << 30);
  CHECK(too_small.err.find("2.0 GiB are allowed (--device_memory)") != std::string::npos);

  // Ranks need a machine whose description says how they exchange.
  auto const ranks = plan_of(test::finetune, "h200_pcie5.json", {"--gpus", "2"});
  CAPTURE(ranks.err);
  CHECK(ranks.status == 0);
  CHECK(ranks.out.find("  collectives: ") != std::string::npos);
  CHECK(written()["collectives"]["bytes"] > 0);
  auto const unknown = plan_of(test::finetune, "rtx4090.json", {"--gpus", "2"});
  CHECK(unknown.status == static_cast<int>(exit_code::bad_input));
  CHECK(unknown.err.find("field 'peers' is missing") != std::string::npos);

  // What does not fit is told before anything is drawn, and in the file.
  std::filesystem::remove(root.path() / "step.svg");
  auto const refused = plan_of(test::finetune_llama, "rtx4090.json", {"--host_memory", "58"});
  CHECK(refused.status == static_cast<int>(exit_code::cannot_fit));
  CHECK(refused.err.find("GiB") != std::string::npos);
  CHECK(written()["fits"] == false);
  CHECK(written()["step_time_ms"].is_null());
  CHECK_FALSE(std::filesystem::exists(root.path() / "step.svg"));
}

TEST_CASE("a run is planned for the machine that it is on, and obeys") {
  test::scratch_directory const output;
  auto const file = output.path() / "plan.json";
  test::finetune_run const run{
      "llama",
      {"--offload", "super", "--ratio", "0.6", "--bucket_mib", "1", "--max_steps", "4", "--max_length", "64",
       "--padding", "max_length", "--plan", file.string(), "--timeline", (output.path() / "s.svg").string()}};
  auto const done = run.run_in(output.path());
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  CHECK(done.out.find("CPU Adam: ") != std::string::npos);
  CHECK(done.out.find(" of the plan\n") != std::string::npos);
  CHECK(test::contents_of(output.path() / "s.svg").rfind("<svg", 0) == 0);
  auto const plan = io::json::parse(test::contents_of(file));
  CHECK(plan["fits"] == true);
  CHECK(plan["tiers"]["resident"].get<double>() < 0.9);
  CHECK(plan["step_time_ms"].get<double>() > 0.0);
  auto const bytes = test::series(output.path(), "device_bytes");
  REQUIRE(bytes.size() == 4);
  CHECK(bytes.back() == doctest::Approx(plan["device_bytes"]["total"].get<double>()).epsilon(0.03));
}

TEST_CASE("the rates of a described machine can stand in for those of the one that a run is on") {
  test::scratch_directory const output;
  auto const machine = std::filesystem::path{SUPEROFFLOAD_HARDWARE} / "h200_pcie5.json";
  test::finetune_run const run{"llama",
                               {"--hardware", machine.string(), "--max_steps", "1", "--max_length", "32",
                                "--plan", (output.path() / "plan.json").string()}};
  auto const done = run.run_in(output.path());
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  auto const plan = io::json::parse(test::contents_of(output.path() / "plan.json"));
  CHECK(plan["machine"].get<std::string>().find("H200") != std::string::npos);
  CHECK(plan["host_bytes"]["available"].get<double>() != 121.0 * 1024 * 1024 * 1024);
}

}  // namespace
