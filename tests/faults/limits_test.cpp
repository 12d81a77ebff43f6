// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Limits of the system that the real program meets while it goes on from a checkpoint, saves and exports: the
// size of a file, the number of descriptors, a full disk.
#include <superoffload/io/train_checkpoint.hpp>

#include "faults/watched_run.hpp"
#include "support/fault_case.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <sys/mount.h>
#include <sys/resource.h>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;

constexpr int begun = 2, last = 4;

/// Runs under a limit in a copy of `kept`: what was saved is whole, the error is one line with a code for it,
/// and without the limit the run ends with the same bits. \returns whether the limit was met.
bool check_limited(fs::path const& kept, fs::path const& output, std::function<void()> const& limit,
                   std::string const& expected) {
  fault_case injected{"F5"};
  fs::remove_all(output);
  fs::copy(kept, output, fs::copy_options::recursive);
  auto const done = program{
      finetune_llama, last_of_each(saving_run(output, last)), [&] {
        ::setenv("SUPEROFFLOAD_NUM_THREADS", "1", 1);
        ::alarm(60);
        limit();
      }}.wait();
  CAPTURE(done.err);
  CAPTURE(done.status);
  if (done.status == 127 && done.err.find("error while loading shared libraries") != std::string::npos) {
    injected.did_not_happen();  // the program was not begun
    return false;
  }
  bool const met = done.status != 0;
  if (met) {
    CHECK((done.status == static_cast<int>(exit_code::io_failure) ||
           done.status == static_cast<int>(exit_code::bad_input) ||
           done.status == static_cast<int>(exit_code::cannot_fit)));
    auto const begin = done.err.find("finetune_llama: error: ");
    REQUIRE(begin != std::string::npos);
    CHECK(done.err.find('\n', begin) == done.err.size() - 1);
  } else {
    injected.did_not_happen();
  }
  auto const found = io::checkpoints_in(output);
  REQUIRE_FALSE(found.empty());
  for (auto const& one : found) { CHECK_NOTHROW(io::checkpoint_reader::open(one.directory).verify()); }
  CHECK(found.back().step >= begun);
  auto const elsewhere = kept.parent_path() / "elsewhere";  // where there is space
  fs::copy(output, elsewhere, fs::copy_options::recursive);
  fs::remove_all(output);
  auto const resumed = run_on_one_thread(finetune_llama, saving_run(elsewhere, last));
  CAPTURE(resumed.err);
  CHECK(resumed.status == 0);
  CHECK(weights_of(elsewhere) == expected);
  fs::remove_all(elsewhere);
  return met;
}

TEST_CASE("a limit of file sizes or of descriptors, or a full disk, loses nothing") {
  scratch_directory const scratch, whole;
  auto const output = scratch.path() / "output", kept = scratch.path() / "kept";
  REQUIRE(run_on_one_thread(finetune_llama, saving_run(whole.path(), last)).status == 0);
  auto const expected = weights_of(whole.path());
  REQUIRE(run_on_one_thread(finetune_llama, saving_run(output, begun)).status == 0);
  fs::rename(output, kept);

  int met = 0, tried = 0;
  auto const limited = [&](int what, rlim_t to) {
    ++tried;
    met += check_limited(
        kept, output,
        [=] {
          std::signal(SIGXFSZ, SIG_IGN);
          rlimit const limit{to, to};
          ::setrlimit(what, &limit);
        },
        expected);
  };
  auto const largest = fs::file_size(kept / "checkpoint-2/rank-00000.bin");
  rlim_t const sizes = in_long_tests(200, 6);
  for (rlim_t i = 0; i < sizes; ++i) {
    CAPTURE(i);
    constexpr rlim_t for_messages = 10'000;
    limited(RLIMIT_FSIZE, for_messages + i * largest / sizes);
  }
  for (rlim_t descriptors = 3; descriptors < 20; descriptors += in_long_tests(1, 5)) {
    CAPTURE(descriptors);
    limited(RLIMIT_NOFILE, descriptors);
  }

  auto const disk = scratch.path() / "disk";
  fs::create_directory(disk);
  auto const needed = 4 * largest;  // two checkpoints, and more than an export and a third one
  std::uint64_t const disks = in_long_tests(100, 4);
  for (std::uint64_t i = 0; i < disks; ++i) {
    CAPTURE(i);
    auto const bytes = 2 * largest + 1'000'000 + i * (needed - 2 * largest) / disks;
    if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, concat("size=", bytes).c_str()) != 0) {
      MESSAGE("skipped: mounting a small disk: ", std::string{std::strerror(errno)});
      break;
    }
    ++tried;
    met += check_limited(kept, disk / "output", [] {}, expected);
    REQUIRE(::umount2(disk.c_str(), MNT_DETACH) == 0);
  }
  MESSAGE(tried, " limits, ", met, " of them met");
  CHECK(met >= tried / 3);
}

}  // namespace
