// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Full disks, kill -9 and gradients that are not finite: what was saved before stays, and a resumed run is
// the run that was not disturbed, bit for bit.
#include <superoffload/io/train_checkpoint.hpp>

#include "examples/rejection.hpp"
#include "support/fault_case.hpp"
#include "support/sanitizer.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <sys/mount.h>
#include <thread>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

words arguments(fs::path const& output, int steps, words const& more) {
  return on_few_rows(output, joined({"--lr", "1e-3", "--log_interval", "1", "--dtype", "bf16", "--packing",
                                     "on", "--max_steps", std::to_string(steps)},
                                    more));
}

outcome train(fs::path const& output, int steps, words const& more = {}) {
  return run_on_one_thread(finetune_llama, arguments(output, steps, more));
}

std::string weights_of(fs::path const& output) { return contents_of(output / "model" / "model.safetensors"); }

/// The weights of an undisturbed run.
std::string expected_weights(int steps) {
  scratch_directory const output;
  auto const done = train(output.path(), steps);
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  return weights_of(output.path());
}

/// The steps of all checkpoints, each of which must be valid.
std::vector<std::int64_t> valid_steps_in(fs::path const& output) {
  std::vector<std::int64_t> steps;
  for (auto const& entry : fs::directory_iterator{output}) {
    auto const name = entry.path().filename().string();
    if (name.starts_with("checkpoint-")) {
      auto const reader = io::checkpoint_reader::open(entry.path());
      reader.verify();
      CHECK(name == "checkpoint-" + std::to_string(reader.step()));
      steps.push_back(reader.step());
    }
  }
  std::ranges::sort(steps);
  return steps;
}

// Full disks ----------------------------------------------------------------------------------------------

/// No file may become larger than this.
outcome train_with_file_limit(fs::path const& output, int steps, words const& more, std::uint64_t bytes) {
  return program{finetune_llama, arguments(output, steps, more),
                 [bytes] {
                   rlimit const limit{bytes, bytes};
                   std::signal(SIGXFSZ, SIG_IGN);
                   ::setrlimit(RLIMIT_FSIZE, &limit);
                 }}
      .wait();
}

TEST_CASE("a checkpoint that cannot be written ends the run and leaves the one before, which resumes") {
  scratch_directory const output;
  REQUIRE(train(output.path(), 2, {"--save_steps", "2"}).status == 0);
  auto const earlier = snapshot_of(output.path() / "checkpoint-2");
  auto const model = weights_of(output.path());

  words const go_on{"--save_steps", "2", "--resume", "auto"};
  check_failure(train_with_file_limit(output.path(), 4, go_on, 400'000), exit_code::io_failure,
                {output.path().string(), "rank-00000.bin", "File too large"});
  CHECK(snapshot_of(output.path() / "checkpoint-2") == earlier);
  CHECK(valid_steps_in(output.path()) == std::vector<std::int64_t>{2});
  CHECK(weights_of(output.path()) == model);
  CHECK(leftovers_in(output.path()).empty());

  REQUIRE(train(output.path(), 4, go_on).status == 0);
  CHECK(weights_of(output.path()) == expected_weights(4));
}

TEST_CASE("an export that cannot be written leaves the earlier export and all checkpoints") {
  scratch_directory const output;
  REQUIRE(train(output.path(), 1).status == 0);
  auto const before = snapshot_of(output.path());
  check_failure(train_with_file_limit(output.path(), 1, {"--resume", "auto"}, 200'000), exit_code::io_failure,
                {(output.path() / "").string(), "model.safetensors", "File too large",
                 "a checkpoint could not be saved either", "rank-00000.bin", "there is no checkpoint"});
  CHECK(snapshot_of(output.path()) == before);
}

TEST_CASE("metrics that cannot be written end the run: they are not lost in silence") {
  scratch_directory const output;
  auto const metrics = output.path() / "metrics.jsonl";
  check_failure(train_with_file_limit(output.path(), 99, {"--metrics", metrics}, 9000), exit_code::io_failure,
                {metrics.string(), "File too large"});
}

class small_disk {
public:
  /// A file system of so many bytes; usable() is false where mounting is not allowed.
  explicit small_disk(std::size_t bytes) {
    usable_ = ::mount("tmpfs", path().c_str(), "tmpfs", 0, concat("size=", bytes).c_str()) == 0;
    if (!usable_) {
      MESSAGE("skipped: mounting a small disk: ", std::string{std::strerror(errno)});
    }
  }
  small_disk(small_disk const&) = delete;
  small_disk& operator=(small_disk const&) = delete;
  ~small_disk() {
    if (usable_) {
      ::umount2(path().c_str(), MNT_DETACH);
    }
  }
  [[nodiscard]] fs::path const& path() const { return directory_.path(); }
  [[nodiscard]] bool usable() const { return usable_; }

private:
  scratch_directory directory_;
  bool usable_ = false;
};

TEST_CASE(
    "a disk that fills up: exit code 4 with path and reason, and what was saved before resumes elsewhere") {
  // A checkpoint of this model takes 1.6 MB and an export 0.3 MB.
  for (std::size_t const size : {2'500'000, 4'000'000}) {
    small_disk const disk{size};
    if (!disk.usable()) {
      return;
    }
    auto const output = disk.path() / "output";
    check_failure(train(output, 9, {"--save_steps", "1"}), exit_code::io_failure,
                  {output.string(), "No space left on device"});
    auto const steps = valid_steps_in(output);
    REQUIRE_FALSE(steps.empty());
    CHECK(leftovers_in(output).empty());
    scratch_directory const elsewhere;
    auto const newest = output / ("checkpoint-" + std::to_string(steps.back()));
    REQUIRE(train(elsewhere.path(), 9, {"--resume", newest}).status == 0);
    CHECK(weights_of(elsewhere.path()) == expected_weights(9));
  }
}

TEST_CASE(
    "a disk that is too small for the export, or for a checkpoint beside it, is found before training") {
  small_disk const disk{1'000'000};
  if (!disk.usable()) {
    return;
  }
  auto const output = disk.path() / "output";
  auto const refused = [&](words const& more, words const& says) {
    auto const done = train(output, 9, more);
    check_failure(done, exit_code::io_failure, joined({output.string(), "free, but the export takes"}, says));
    CHECK(done.err.find("step 1") == std::string::npos);
  };
  refused({"--save_steps", "1"}, {"and a checkpoint 1."});
  write_file(disk.path() / "ballast", std::string(800'000, 'x'));
  refused({}, {"KiB free"});
  fs::remove(disk.path() / "ballast");
  REQUIRE(train(output, 1).status == 0);
}

TEST_CASE("only the newest checkpoints are kept") {
  scratch_directory const output;
  REQUIRE(train(output.path(), 6, {"--save_steps", "1", "--save_total_limit", "2"}).status == 0);
  CHECK(valid_steps_in(output.path()) == std::vector<std::int64_t>{5, 6});
  CHECK(leftovers_in(output.path()).empty());
  REQUIRE(
      train(output.path(), 9, {"--save_steps", "1", "--save_total_limit", "3", "--resume", "auto"}).status ==
      0);
  CHECK(valid_steps_in(output.path()) == std::vector<std::int64_t>{7, 8, 9});
}

// Kill -9 -------------------------------------------------------------------------------------------------

/// Runs until `line` is on standard error, waits for so long more, and kills the program.
/// \returns whether it did not end by itself before.
bool killed_after(fs::path const& output, int steps, std::string const& line,
                  std::chrono::microseconds more) {
  program p{finetune_llama,
            arguments(output, steps, {"--save_steps", "1", "--save_total_limit", "3", "--resume", "auto"}),
            [] { ::setenv("SUPEROFFLOAD_NUM_THREADS", "1", 1); }};
  while (p.running() && p.errors_so_far().find(line) == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::microseconds{500});
  }
  std::this_thread::sleep_for(more);
  if (p.running()) {
    p.send(SIGKILL);
  }
  auto const done = p.wait();
  bool const killed = done.status == 128 + SIGKILL;  // or it ended by itself just before
  CAPTURE(done.err);
  CHECK((killed || done.status == 0));
  CHECK(done.err.find("error:") == std::string::npos);
  CHECK(done.err.find("passed over") == std::string::npos);  // no checkpoint is ever half a checkpoint
  return killed;
}

TEST_CASE("kill -9 at any moment loses at most a step, and the end is the same bit for bit") {
  constexpr int steps = 60;
  auto const expected = expected_weights(steps);
  auto const seed = std::random_device{}();
  CAPTURE(seed);
  std::mt19937 random{seed};
  auto const some = [&](int most) {
    return std::chrono::microseconds{std::uniform_int_distribution<>{0, most}(random)};
  };
  int kills = 0, in_a_save = 0;
  int const all_kills = in_long_tests(1000, under_sanitizer ? 12 : 30);
  while (kills < all_kills) {
    scratch_directory const output;
    std::int64_t newest = 0;
    // Each run begins where the last one died: at the start, in a step, in a save, in the export.
    for (bool running = true; running && kills < all_kills; kills += running ? 1 : 0) {
      CAPTURE(kills);
      fault_case injected{"F6"};
      bool const at_start = kills % 4 == 0;
      bool const at_end = kills % 10 == 9;
      running = killed_after(output.path(), steps,
                             at_start ? ""
                             : at_end ? "saved " + (output.path() / "checkpoint-60").string()
                                      : "saved ",
                             some(at_start ? 40'000
                                  : at_end ? 10'000
                                           : 25'000));
      if (!running) {
        injected.did_not_happen();
      }
      in_a_save += running && !leftovers_in(output.path()).empty();
      auto const found =
          fs::exists(output.path()) ? valid_steps_in(output.path()) : std::vector<std::int64_t>{};
      CHECK((newest == 0 || !found.empty()));
      if (!found.empty()) {
        CHECK(found.back() >= newest);
        newest = found.back();
      }
    }
    auto const done =
        train(output.path(), steps, {"--save_steps", "1", "--save_total_limit", "3", "--resume", "auto"});
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    CHECK(weights_of(output.path()) == expected);
    CHECK(valid_steps_in(output.path()).back() == steps);
    CHECK(leftovers_in(output.path()).empty());
  }
  MESSAGE(kills, " kills, ", in_a_save, " of them in the middle of a save or an export");
}

// Gradients that are not finite ---------------------------------------------------------------------------

TEST_CASE("a gradient that is not finite stops the run or is skipped and counted, as asked") {
  for (std::string const dtype : {"float32", "bf16"}) {
    CAPTURE(dtype);
    words const explode{"--lr", "1e30", "--max_grad_norm", "0", "--dtype", dtype, "--save_steps", "1"};
    {
      scratch_directory const output;
      auto const metrics = output.path() / "metrics.jsonl";
      auto const done =
          train(output.path(), 5, joined(explode, {"--on_nonfinite", "stop", "--metrics", metrics}));
      check_failure(done, exit_code::nonfinite, {"step 2", "not finite", "checkpoint-1", "--lr"});
      CHECK(valid_steps_in(output.path()) == std::vector<std::int64_t>{1});
      CHECK_FALSE(fs::exists(output.path() / "model"));
    }
    {
      scratch_directory const output;
      auto const metrics = output.path() / "metrics.jsonl";
      auto const done =
          train(output.path(), 5, joined(explode, {"--on_nonfinite", "skip", "--metrics", metrics}));
      CAPTURE(done.err);
      CHECK(done.status == 0);
      auto const lines = metrics_in(output.path());
      REQUIRE(lines.size() == 5);
      for (std::size_t i = 0; i < lines.size(); ++i) { CHECK(lines[i]["skipped"] == (i > 0)); }
      CHECK(done.err.find("(skipped: gradient not finite)") != std::string::npos);
      scratch_directory const one_step;
      REQUIRE(train(one_step.path(), 1, explode).status == 0);
      CHECK(weights_of(output.path()) == weights_of(one_step.path()));
    }
    {
      scratch_directory const output;
      check_failure(train(output.path(), 50, joined(explode, {"--on_nonfinite", "skip"})),
                    exit_code::nonfinite, {"step 11", "10 steps in a row", "checkpoint-10"});
    }
  }
}

}  // namespace
