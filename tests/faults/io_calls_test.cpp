// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The real program reads a model and data, goes on from a checkpoint, saves, rotates and exports. Each call
// that it makes on a file fails once, or it and all later ones, for each reason that the call may have; and
// the program is killed before and after it. What was saved before is whole, the error names a file and the
// reason, and a run that goes on from there ends with the bits of one that was not disturbed.
#include "faults/watched_run.hpp"
#include "support/fault_case.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

constexpr int begun = 2, last = 4;

/// A directory with a model, data, and the output of a run of `begun` steps; and the weights of a whole run.
class place {
public:
  explicit place(int ranks) : ranks_{ranks} {
    fs::create_directory(root());
    fs::copy(models / "llama", root() / "model");
    fs::copy_file(some_rows, root() / "rows.json");
    run(last);
    whole_ = weights_of(output());
    fs::remove_all(output());
    run(begun);
    fs::rename(output(), kept());
  }

  [[nodiscard]] std::string const& weights_of_whole_run() const { return whole_; }

  [[nodiscard]] fs::path root() const { return scratch_.path() / "root"; }
  [[nodiscard]] fs::path output() const { return root() / "output"; }
  [[nodiscard]] words arguments(int steps) const {
    words all{"--lr", "1e-3", "--dtype", "bf16", "--max_steps", std::to_string(steps)};
    words const more{
        "--model",   root() / "model",          "--dataset", root() / "rows.json", "--save_steps",
        "1",         "--save_total_limit",      "2",         "--resume",           "auto",
        "--metrics", output() / "metrics.jsonl"};
    all = joined(all, more);
    return on_few_rows(output(), ranks_ == 1 ? all : joined(all, {"--ranks", std::to_string(ranks_)}));
  }
  void reset() const {
    fs::remove_all(output());
    fs::copy(kept(), output(), fs::copy_options::recursive);
  }
  [[nodiscard]] fs::path scratch(char const* name) const { return scratch_.path() / name; }

private:
  [[nodiscard]] fs::path kept() const { return scratch_.path() / "kept"; }
  void run(int steps) const {
    auto const done = run_on_one_thread(finetune_llama, arguments(steps));
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
  }

  int ranks_;
  std::string whole_;
  scratch_directory scratch_;
};

/// The steps of the checkpoints, each of which must be whole.
std::vector<std::int64_t> whole_steps_in(fs::path const& output) {
  std::vector<std::int64_t> steps;
  for (auto const& found : io::checkpoints_in(output)) {
    auto const reader = io::checkpoint_reader::open(found.directory);
    reader.verify();
    CHECK(reader.step() == found.step);
    steps.push_back(found.step);
  }
  return steps;
}

struct strike {
  long at;
  int with;
  bool lasting;
};

/// \returns whether the fault happened.
bool check_strike(place const& p, strike const& s, int rank, std::string const& expected) {
  p.reset();
  auto const fired = p.scratch("fired");
  fs::remove(fired);
  auto const done = run_watched(
      p.arguments(last),
      {.root = p.root(), .at = s.at, .with = s.with, .lasting = s.lasting, .rank = rank, .fired = fired});
  if (!fs::exists(fired)) {
    CHECK(done.status == 0);
    return false;
  }
  CAPTURE(done.err);
  CAPTURE(done.status);
  if (s.with == shortened || s.with == EINTR) {
    CHECK(done.status == 0);
  } else if (s.with == killed_before || s.with == killed_after) {
    CHECK((done.status == 128 + SIGKILL ||
           (rank >= 0 && done.status == static_cast<int>(exit_code::rank_failed))));
  } else if (done.status != 0) {
    auto const is_io = done.status == static_cast<int>(exit_code::io_failure);
    CHECK((is_io || done.status == static_cast<int>(exit_code::bad_input)));
    auto const begin = done.err.find("error: ");
    REQUIRE(begin != std::string::npos);
    CHECK(done.err.find(p.root().string(), begin) != std::string::npos);
    CHECK(done.err.find(std::strerror(s.with), begin) != std::string::npos);
  }
  if (done.status == 0) {
    CHECK(weights_of(p.output()) == expected);
  }
  auto const steps = whole_steps_in(p.output());
  CHECK(std::ranges::find_if(steps, [](auto step) { return step >= begun; }) != steps.end());

  auto const resumed = run_on_one_thread(finetune_llama, p.arguments(last));
  CAPTURE(resumed.err);
  CHECK(resumed.status == 0);
  CHECK(resumed.err.find("passed over") == std::string::npos);
  CHECK(weights_of(p.output()) == expected);
  CHECK(whole_steps_in(p.output()).back() == last);
  if (std::ranges::find(steps, last) == steps.end()) {  // else nothing is left to be saved
    CHECK(leftovers_in(p.output()).empty());
  }
  return true;
}

/// Of all calls of the run, or of its rank.
std::vector<strike> strikes_on(std::vector<io_event> const& calls, std::vector<int> const& reasons,
                               bool lasting_too) {
  std::vector<strike> all;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    for (int const with : reasons) {
      if (!can_fail(calls[at].what, with)) {
        continue;
      }
      all.push_back({static_cast<long>(at), with, false});
      if (lasting_too && with != EINTR) {  // a call that is interrupted for ever is repeated for ever
        all.push_back({static_cast<long>(at), with, true});
      }
    }
  }
  return all;
}

/// Some of `all`, spread evenly.
std::vector<strike> some_of(std::vector<strike> const& all, std::size_t most) {
  std::vector<strike> some;
  auto const count = std::min(all.size(), most);
  for (std::size_t i = 0; i < count; ++i) { some.push_back(all[(2 * i + 1) * all.size() / (2 * count)]); }
  return some;
}

struct kind {
  std::string fault;
  std::vector<int> reasons;
  bool lasting_too;
  std::size_t few, few_on_ranks;  // in short tests
};

void check_kind(kind const& k) {
  for (int const ranks : {1, 2}) {
    CAPTURE(ranks);
    place const p{ranks};
    p.reset();
    auto const calls = calls_of(p.arguments(last), {.root = p.root()});
    auto const& expected = p.weights_of_whole_run();
    REQUIRE(weights_of(p.output()) == expected);
    REQUIRE(calls.size() > 200);
    constexpr std::size_t on_ranks_in_long_tests = 400;
    std::size_t const most = ranks == 1 ? in_long_tests(std::size_t{1} << 20, k.few)
                                        : in_long_tests(on_ranks_in_long_tests, k.few_on_ranks);
    std::size_t happened = 0;
    auto const strikes = some_of(strikes_on(calls, k.reasons, k.lasting_too), most);
    for (std::size_t i = 0; i < strikes.size(); ++i) {
      auto const& s = strikes[i];
      std::string const what = name_of(calls[static_cast<std::size_t>(s.at)].what);
      std::string const path = calls[static_cast<std::size_t>(s.at)].path;
      CAPTURE(what);
      CAPTURE(path);
      CAPTURE(s.at);
      CAPTURE(s.with);
      CAPTURE(s.lasting);
      fault_case injected{k.fault};
      // A rank makes fewer calls than all together: those behind its last one do not happen.
      if (check_strike(p, s, ranks == 1 ? -1 : static_cast<int>(i % 2), expected)) {
        ++happened;
      } else {
        injected.did_not_happen();
      }
    }
    MESSAGE(k.fault, ", ranks: ", ranks, "; calls: ", calls.size(), "; faults: ", strikes.size(),
            "; happened: ", happened);
    // Those at the last calls find none that can fail.
    CHECK(happened >= (ranks == 1 ? strikes.size() * 9 / 10 : strikes.size() / 4));
  }
}

TEST_CASE("a call on a file that fails, once or for good, loses nothing and is named") {
  check_kind({"F1", {EIO, ENOSPC, EDQUOT, EMFILE, EACCES, EINTR, shortened}, true, 48, 8});
}

TEST_CASE("a program that is killed before or after any call on a file loses nothing") {
  check_kind({"F2", {killed_before, killed_after}, false, 24, 6});
}

}  // namespace
