// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Files that programs make have the permissions that the user's umask leaves, and are never writable for all.
#include "examples/rejection.hpp"

#include <sys/stat.h>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;

mode_t mode_of(fs::path const& path) {
  struct stat status{};
  REQUIRE(::lstat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

TEST_CASE("checkpoints, exports, metrics, reports and plans have the permissions of the umask") {
  for (mode_t const mask : {022U, 077U, 027U, 0U}) {
    CAPTURE(mask);
    scratch_directory const root;
    auto const at = [&](char const* name) { return (root.path() / "made" / name).string(); };
    program p{finetune_llama,
              {"--model",
               (models / "llama").string(),
               "--dataset",
               some_rows.string(),
               "--output_dir",
               at("output"),
               "--metrics",
               at("metrics/lines.jsonl"),
               "--plan",
               (root.path() / "plan.json").string(),
               "--timeline",
               (root.path() / "plan.svg").string(),
               "--trace",
               (root.path() / "trace.json").string(),
               "--report_to",
               "tensorboard,wandb,jsonl,html",
               "--device",
               "cpu",
               "--max_length",
               "64",
               "--batch_size",
               "2",
               "--label_mask",
               "none",
               "--max_steps",
               "2",
               "--save_steps",
               "1",
               "--export_every_save",
               "on"},
              [mask] {
                ::setenv("SUPEROFFLOAD_NUM_THREADS", "1", 1);
                ::umask(mask);
              }};
    auto const done = p.wait();
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    int files = 0;
    for (auto const& entry : fs::recursive_directory_iterator{root.path()}) {
      CAPTURE(entry.path().string());
      auto const most = entry.is_directory() ? 0775U : 0664U;
      CHECK(mode_of(entry.path()) == (most & ~mask));
      ++files;
    }
    CHECK(files > 20);
  }
}

TEST_CASE("ids that tokenize writes have the permissions of the umask") {
  for (mode_t const mask : {022U, 077U, 0U}) {
    scratch_directory const root;
    auto const ids = root.path() / "ids.jsonl";
    program p{SUPEROFFLOAD_TOKENIZE,
              {"--model", (models / "llama").string(), "--dataset", some_rows.string(), "--output", ids},
              [mask] { ::umask(mask); }};
    auto const done = p.wait();
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    CHECK(mode_of(ids) == (0664U & ~mask));
  }
}

}  // namespace
