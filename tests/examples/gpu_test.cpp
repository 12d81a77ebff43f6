// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What only a GPU can show; run where SUPEROFFLOAD_TEST_DEVICE is cuda.
#include "examples/gpu_run.hpp"

#include <regex>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

TEST_CASE("auto is the GPU, and the plan names it" * without_gpu) {
  auto const done = run(finetune_llama, {"--model", models / "llama", "--dry_run", "--max_length", "64"});
  CAPTURE(done.err);
  CHECK(done.status == 0);
  CHECK(std::regex_search(done.out, std::regex{"(^|\n)plan for .*, on cuda:0 \\(.+\\) in bf16\n"}));
}

TEST_CASE("the plan names whose attention is used, and cuDNN's is refused where it cannot be had" *
          without_gpu) {
  auto const plan = [](words const& flags) {
    return run(finetune_llama,
               joined({"--model", models / "llama", "--dry_run", "--max_length", "64"}, flags));
  };
  auto const flash = plan({"--attn_implementation", "flash"});
  CHECK(std::regex_search(flash.out, std::regex{"\n +attention +flash\n"}));
  auto const automatic = plan({});
  CHECK(std::regex_search(automatic.out, std::regex{"\n +attention +(cuDNN 9\\.|flash\n)"}));
  check_rejected(plan({"--attn_implementation", "cudnn", "--dtype", "float32"}), exit_code::device,
                 {"--attn_implementation cudnn", "--dtype bf16"});
}

TEST_CASE("a plan that does not fit the GPU's memory is refused with flags that make it fit" * without_gpu) {
  words const large{"--model",      models / "llama", "--dry_run",    "--device", "cuda",
                    "--max_length", "2048",           "--batch_size", "1000000"};
  auto const refused = run(finetune_llama, large);
  check_rejected(refused, exit_code::cannot_fit,
                 {"the plan needs", " of device memory", "are available on cuda:0 ("});
  std::smatch advice;
  REQUIRE(std::regex_search(refused.err, advice,
                            std::regex{"has (\\d+) sequences of 2048 tokens: use( .*)? "
                                       "--gradient_accumulation_steps (\\d+)"}));
  auto const with = [&](long steps) {
    return run(finetune_llama, joined(large, {"--gradient_accumulation_steps", std::to_string(steps)}))
        .status;
  };
  CHECK(with(std::stol(advice[3])) == 0);
  CHECK(with(std::stol(advice[3]) * 9 / 10) == static_cast<int>(exit_code::cannot_fit));
}

TEST_CASE("a checkpoint of one device is gone on from on the other" * without_gpu) {
  for (std::string const dtype : {"float32", "bf16"}) {
    CAPTURE(dtype);
    auto const tolerance = dtype == "bf16" ? 0.01 : 2e-5;
    for (std::string const first : {"cpu", "cuda"}) {
      CAPTURE(first);
      scratch_directory const whole, moved;
      std::string const second = first == "cpu" ? "cuda" : "cpu";
      words const flags{"--dtype", dtype};
      REQUIRE(train_on_gpu(whole.path(), joined(flags, {"--device", first})).status == 0);
      REQUIRE(train_on_gpu(moved.path(), joined(flags, {"--device", first, "--max_steps", "4"})).status == 0);
      auto const done = train_on_gpu(moved.path(), joined(flags, {"--device", second, "--resume", "auto"}));
      CAPTURE(done.err);
      REQUIRE(done.status == 0);
      CHECK(done.err.find("resumed at step 4") != std::string::npos);
      auto const expected = series(whole.path(), "loss");
      auto const losses = series(moved.path(), "loss");
      REQUIRE(losses.size() == expected.size());
      for (std::size_t i = 0; i < losses.size(); ++i) {
        CHECK(losses[i] == doctest::Approx(expected[i]).epsilon(tolerance));
      }
    }
  }
}

}  // namespace
