// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What --device does on a machine without a usable GPU.
#include "examples/rejection.hpp"

namespace {

using namespace superoffload;
using namespace superoffload::test;
using words = std::vector<std::string>;

words plan_on(std::string const& device) {
  return {"--model", models / "llama", "--dry_run", "--max_length", "64", "--device", device};
}

#ifdef SUPEROFFLOAD_FAKE_DRIVER

/// A run with a driver that is for the given version of CUDA and refuses every call.
outcome with_driver(char const* version, char const* error, words const& arguments) {
  return program{finetune_llama, arguments,
                 [=] {
                   ::setenv("LD_LIBRARY_PATH", SUPEROFFLOAD_FAKE_DRIVER, 1);
                   ::setenv("FAKE_DRIVER_VERSION", version, 1);
                   ::setenv("FAKE_DRIVER_ERROR", error, 1);
                   ::alarm(60);
                 }}
      .wait();
}

TEST_CASE("a GPU that cannot be used is an error that says why: no driver, an old one, no device") {
  struct {
    char const* version;
    char const* error;  // a CUresult
    exit_code code;
    words says;
  } const cases[] = {
      {"0", "3", exit_code::driver, {"no NVIDIA driver is installed"}},
      {"12040", "100", exit_code::driver, {"the NVIDIA driver is for CUDA 12.4", "insufficient"}},
      {"13000", "803", exit_code::driver, {"the NVIDIA driver is for CUDA 13.0", "combination"}},
      {"13000", "100", exit_code::device, {"no usable CUDA device", "no CUDA-capable device is detected"}},
      {"13000", "999", exit_code::device, {"no usable CUDA device", "unknown error"}},
  };
  for (auto const& c : cases) {
    CAPTURE(c.version);
    CAPTURE(c.error);
    auto says = c.says;
    says.insert(says.end(), {"expected an NVIDIA GPU with a driver for CUDA ", "--device cpu"});
    check_rejected(with_driver(c.version, c.error, plan_on("cuda")), c.code, says);

    auto const automatic = with_driver(c.version, c.error, plan_on("auto"));
    CHECK(automatic.status == 0);
    CHECK(automatic.out.starts_with("--device auto is the cpu: " + c.says.front()));
    CHECK(automatic.out.find(" on cpu with ") != std::string::npos);
    CHECK(with_driver(c.version, c.error, plan_on("cpu")).out.starts_with("plan for "));
  }
}

#ifdef SUPEROFFLOAD_HAS_NCCL
TEST_CASE("GPUs that cannot be used are refused once, however many ranks there would be") {
  scratch_directory const output;
  auto const arguments = finetune_run{"llama", {"--device", "auto", "--gpus", "3"}}.arguments(output.path());
  check_rejected(with_driver("0", "3", arguments), exit_code::driver, {"no NVIDIA driver is installed"});
  check_rejected(with_driver("13000", "100", arguments), exit_code::device, {"no usable CUDA device"});
}
#endif

TEST_CASE("a GPU that CUDA_VISIBLE_DEVICES hides is missed by that name") {
  ::setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  auto const done = with_driver("13000", "100", plan_on("cuda"));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  check_rejected(done, exit_code::device, {"CUDA_VISIBLE_DEVICES is '7'"});
}

#else

TEST_CASE("GPUs that this program was built without are refused once, however many ranks there would be") {
  auto const refused = [](words const& flags, words const& says) {
    scratch_directory const output;
    check_rejected(finetune_run{"llama", flags}.run_in(output.path()), exit_code::device, says);
  };
  refused({"--device", "auto", "--gpus", "3"}, {"--gpus: this program was built without CUDA", "or --ranks"});
  refused({"--device", "cuda", "--ranks", "3"}, {"--device cuda: this program was built without CUDA"});

  words said;
  for (char const* const rank : {"0", "1"}) {  // of torchrun's
    scratch_directory const output;
    auto const done = program{
        finetune_llama, finetune_run{"llama", {"--device", "cuda"}}.arguments(output.path()), [rank] {
          ::setenv("RANK", rank, 1);
          ::setenv("LOCAL_RANK", rank, 1);
          ::setenv("WORLD_SIZE", "2", 1);
          ::setenv("LOCAL_WORLD_SIZE", "2", 1);
        }}.wait();
    CHECK(done.status == static_cast<int>(exit_code::device));
    said.push_back(done.err);
  }
  CHECK(said[0].find("built without CUDA") != std::string::npos);
  CHECK(said[1] == "");
}

TEST_CASE("a device that this program does not have is an error of its own") {
  check_rejected(run(finetune_llama, plan_on("cuda")), exit_code::device,
                 {"--device cuda", "built without CUDA", "--device cpu"});
  auto const automatic = run(finetune_llama, plan_on("auto"));
  CHECK(automatic.status == 0);
  CHECK(automatic.out.starts_with("--device auto is the cpu: this program was built without CUDA\n"));
}

#endif

}  // namespace
