// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Power losses. The calls of real runs are recorded. After each of them a disk may hold many states, as
// crash_states.hpp says: in each all checkpoints are whole, the newest is not older than the last of which
// the program said that it is saved, and a run that goes on ends with the bits of one that was not disturbed.
#include "faults/crash_states.hpp"

#include "faults/watched_run.hpp"
#include "support/fault_case.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

/// The files of a directory of a state, by their names in it; nothing if there is no such directory.
using files = std::map<std::string, std::string>;
std::optional<files> directory_in(crash_disk::tree const& tree, std::string const& name) {
  if (!tree.contains(name + "/")) {
    return std::nullopt;
  }
  files found;
  for (auto at = tree.upper_bound(name + "/"); at != tree.end() && at->first.starts_with(name + "/"); ++at) {
    found[at->first.substr(name.size() + 1)] = at->second ? *at->second : "a directory";
  }
  return found;
}

std::optional<std::int64_t> step_in(std::string const& name) {
  constexpr std::string_view prefix = "checkpoint-";
  auto const at = name.rfind('/') + 1;
  return name.compare(at, prefix.size(), prefix) == 0
             ? std::optional{std::stoll(name.substr(at + prefix.size()))}
             : std::nullopt;
}

/// A recorded run, and what it has made.
class recorded_run {
public:
  recorded_run(fs::path const& output, fs::path const& begin, std::vector<io_event> events)
      : output_{output}, begin_{begin}, events_{std::move(events)} {
    materializer store{scratch_.path() / "store"};
    crash_disk disk{output_, begin_};
    note(disk.now(), store);
    for (auto const& event : events_) {
      disk.add(event);
      if (event.what == io_call::rename || event.what == io_call::exchange) {
        note(disk.now(), store);
      }
    }
  }

  /// Calls visit(tree, the last step that is said to be saved or -1, whether an export is said to be there)
  /// with distinct states.
  template <class Visit>
  void visit_states(std::size_t all_of, std::size_t some, Visit visit) const {
    std::mt19937 random{12};
    crash_disk disk{output_, begin_};
    std::int64_t saved = -1;
    for (auto const& [name, content] : disk.now()) {
      saved = std::max(saved, step_in(name.substr(0, name.find('/'))).value_or(-1));
    }
    bool exported = disk.now().contains("model/");
    state_set seen;
    for (auto const& event : events_) {
      disk.add(event);
      if (event.what == io_call::read || event.what == io_call::close || event.what == io_call::list) {
        continue;
      }
      if (event.what == io_call::say) {
        if (auto const step = step_said(event.data)) {
          saved = *step;
        }
        exported = exported || event.data.find("exported ") != std::string::npos;
        seen = {};  // more is promised from here on
      }
      for_each_crash_state(disk, random, all_of, some, [&](crash_disk::tree const& tree) {
        if (seen.insert(tree)) {
          visit(tree, saved, exported);
        }
      });
    }
  }

  /// What a checkpoint held when it was renamed.
  [[nodiscard]] std::string const& digest(std::int64_t step) const { return digests_.at(step); }
  [[nodiscard]] bool is_export(files const& found) const { return exports_.contains(found); }
  [[nodiscard]] bool is_record(std::string const& content) const { return records_.contains(content); }
  [[nodiscard]] std::size_t exports() const { return exports_.size(); }

private:
  /// The step of the last checkpoint that is said to be saved.
  [[nodiscard]] std::optional<std::int64_t> step_said(std::string const& text) const {
    auto const begin = concat("saved ", output_.string(), "/");
    auto const at = text.rfind(begin);
    return at == text.npos ? std::nullopt
                           : step_in(text.substr(at + begin.size(), text.find('\n', at) - at - begin.size()));
  }
  void note(crash_disk::tree const& tree, materializer& store) {
    if (auto found = directory_in(tree, "model")) {
      exports_.insert(*std::move(found));
    }
    if (tree.contains("run.json")) {
      records_.insert(*tree.at("run.json"));
    }
    auto const place = scratch_.path() / "now";
    store.links(tree, place);
    for (auto const& found : io::checkpoints_in(place)) {
      digests_.try_emplace(found.step, digest_of(io::checkpoint_reader::open(found.directory)));
    }
    fs::remove_all(place);
  }

  scratch_directory scratch_;
  fs::path output_, begin_;
  std::vector<io_event> events_;
  std::map<std::int64_t, std::string> digests_;
  std::set<files> exports_;
  std::set<std::string> records_;
};

/// What is promised of a state.
void check_state(recorded_run const& run, crash_disk::tree const& tree, fs::path const& place,
                 std::int64_t saved, bool exported) {
  std::int64_t newest = -1;
  for (auto const& found : io::checkpoints_in(place)) {  // none is in part, whether it is the newest or not
    CHECK(digest_of(io::checkpoint_reader::open(found.directory)) == run.digest(found.step));
    newest = found.step;
  }
  CHECK(newest >= saved);
  auto const model = directory_in(tree, "model"), aside = directory_in(tree, ".model.replaced");
  auto const& there = model ? model : aside;  // a run that goes on restores the latter
  CHECK((!exported || there));
  CHECK((!there || run.is_export(*there)));
  CHECK((!tree.contains("run.json") || run.is_record(*tree.at("run.json"))));
  CHECK((saved < 0 || tree.contains("run.json")));
}

TEST_CASE("a power loss at any moment leaves a whole checkpoint, and a run that goes on to the same bits") {
  constexpr int first = 3, last = 6;
  scratch_directory const whole;
  REQUIRE(run_on_one_thread(finetune_llama, saving_run(whole.path(), last)).status == 0);
  auto const expected = weights_of(whole.path());

  std::size_t const all_of = in_long_tests(10, 3), some = in_long_tests(40, 1);
  std::size_t const resumed_of = in_long_tests(60, 400);  // of so many states, one is resumed by the program
  std::size_t states = 0, resumed = 0;
  for (int const scenario :
       {0, 1, 2}) {  // the first run; one that goes on; the same without exchanges of names
    CAPTURE(scenario);
    scratch_directory const scratch;
    auto const output = scratch.path() / "output", begin = scratch.path() / "begin";
    fs::create_directory(output);
    if (scenario > 0) {
      REQUIRE(run_on_one_thread(finetune_llama, saving_run(output, first)).status == 0);
    }
    fs::copy(output, begin, fs::copy_options::recursive);
    recorded_run const run{
        output, begin,
        calls_of(saving_run(output, scenario == 0 ? first : last), {.root = output, .plain = scenario == 2})};
    CHECK(run.exports() == (scenario == 0 ? 1U : 2U));
    fs::remove_all(output);

    materializer store{scratch.path() / "store"};
    run.visit_states(all_of, some, [&](crash_disk::tree const& tree, std::int64_t saved, bool exported) {
      CAPTURE(states);
      CAPTURE(saved);
      fault_case const lost{"F3"};
      store.links(tree, output);
      check_state(run, tree, output, saved, exported);
      fs::remove_all(output);
      if (++states % resumed_of == 0) {
        materializer::copies(tree, output);
        bool const saves =
            !fs::exists(output / concat("checkpoint-", last));  // and removes what is left over
        auto const done = run_on_one_thread(finetune_llama, saving_run(output, last));
        CAPTURE(done.err);
        CHECK(done.status == 0);
        CHECK(done.err.find("passed over") == std::string::npos);
        CHECK(weights_of(output) == expected);
        CHECK((!saves || leftovers_in(output).empty()));
        fs::remove_all(output);
        ++resumed;
      }
    });
  }
  MESSAGE(states, " states, ", resumed, " of them resumed");
  CHECK(states >= in_long_tests(10'000U, 1'000U));
  CHECK(resumed >= 3);
}

// Of the model itself: it finds what other ways to write a file lose.

/// The contents under `name` that a power loss after these calls may leave; "-": there is no such file.
std::set<std::string> contents_after(std::vector<io_event> const& events, std::string const& name) {
  scratch_directory const empty;
  crash_disk disk{"/d", empty.path()};
  std::mt19937 random{1};
  std::set<std::string> contents;
  for (auto const& event : events) { disk.add(event); }
  for_each_crash_state(disk, random, 10, 200, [&](crash_disk::tree const& tree) {
    contents.insert(tree.contains(name) ? *tree.at(name) : "-");
  });
  return contents;
}

io_event made(std::uint64_t number, std::string const& path) {
  return {.what = io_call::open, .file = number, .size = 1, .path = path};
}
io_event opened(std::uint64_t number, std::string const& path) {
  return {.what = io_call::open, .file = number, .path = path};
}
io_event written(std::uint64_t number, std::uint64_t offset, std::string const& data) {
  return {.what = io_call::write, .file = number, .offset = offset, .data = data};
}
io_event synced(std::uint64_t number) { return {.what = io_call::sync, .file = number}; }
io_event renamed(std::string const& from, std::string const& to, io_call what = io_call::rename) {
  return {.what = what, .path = from, .to = to};
}

TEST_CASE("the model of a power loss: data that were not synced, names that were not, and what is atomic") {
  using texts = std::set<std::string>;
  std::vector<io_event> const old{made(1, "/d/f"), written(1, 0, "old"), synced(1), opened(2, "/d"),
                                  synced(2)};
  auto const after = [&](std::vector<io_event> more) {
    auto all = old;
    all.insert(all.end(), more.begin(), more.end());
    return contents_after(all, "f");
  };
  CHECK(after({}) == texts{"old"});
  CHECK(after({made(3, "/d/g"), written(3, 0, "new"), synced(3), renamed("/d/g", "/d/f")}) ==
        texts{"old", "new"});
  CHECK(after({made(3, "/d/g"), written(3, 0, "new"), synced(3), renamed("/d/g", "/d/f"), synced(2)}) ==
        texts{"new"});
  // Without a sync of the data: an empty file, zeros. In place: everything.
  auto const lost = after({made(3, "/d/g"), written(3, 0, "new"), renamed("/d/g", "/d/f"), synced(2)});
  CHECK(lost == texts{"", "new", std::string(3, '\0')});
  auto const in_place =
      after({{.what = io_call::open, .file = 3, .size = 2, .path = "/d/f"}, written(3, 0, "newer")});
  CHECK(in_place.contains(""));
  CHECK(in_place.contains("newer"));
  CHECK(in_place.contains("old"));
  // A sync of a file is none of its name.
  CHECK(contents_after({made(1, "/d/f"), written(1, 0, "x"), synced(1)}, "f") == texts{"-", "x"});
  // Later writes may last, and earlier ones be lost.
  auto const two = contents_after(
      {made(1, "/d/f"), opened(2, "/d"), synced(2), written(1, 0, "a"), written(1, 1, "b")}, "f");
  for (auto const& text : {std::string{}, std::string{"a"}, std::string{"\0b", 2}, std::string{"ab"}}) {
    CHECK(two.contains(text));
  }
  auto const removed = after({{.what = io_call::remove, .path = "/d/f"}});
  CHECK(removed == texts{"old", "-"});
  auto const exchanged = after({made(3, "/d/g"), written(3, 0, "new"), synced(3), synced(2),
                                renamed("/d/g", "/d/f", io_call::exchange)});
  CHECK(exchanged == texts{"old", "new"});
}

}  // namespace
