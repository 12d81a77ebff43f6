// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The reports of --report_to follow the rules of a run's other files.
#include "examples/rejection.hpp"

#include <algorithm>
#include <iterator>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

struct place {
  scratch_directory root;
  fs::path output = root.path() / "output";
  fs::path reports = output / "reports";

  [[nodiscard]] words arguments(words const& more) const {
    return on_few_rows(output, joined({"--device", "cpu", "--max_steps", "4"}, more));
  }
  [[nodiscard]] outcome run(words const& more) const {
    return run_on_one_thread(finetune_llama, arguments(more));
  }
  void succeed(words const& more) const {
    auto const done = run(more);
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
  }
  void refused(words const& more, words const& says) const {
    auto const before = snapshot_of(root.path());
    check_rejected(run(more), exit_code::bad_input, says);
    CHECK(snapshot_of(root.path()) == before);
  }
  /// Leaves only what runs report, and say of themselves.
  void forget_results() const {
    for (auto const& entry : fs::directory_iterator{output}) {
      auto const name = entry.path().filename().string();
      if (name == "model" || name.starts_with("checkpoint-")) {
        fs::remove_all(entry.path());
      }
    }
  }
  [[nodiscard]] std::ptrdiff_t lines() const {
    auto const text = contents_of(reports / "metrics.jsonl");
    return std::ranges::count(text, '\n');
  }
  [[nodiscard]] std::ptrdiff_t event_files() const {
    return std::distance(fs::directory_iterator{reports / "tensorboard"}, fs::directory_iterator{});
  }
};

words const all{"--report_to", "tensorboard,wandb,jsonl,html"};

TEST_CASE(
    "reports of an earlier run are refused, or replaced with --overwrite_output_dir; other files stay") {
  place const p;
  p.succeed(all);
  CHECK(p.lines() == 4);
  CHECK(p.event_files() == 1);
  CHECK(contents_of(p.reports / "report.html").find("\"state\":\"finished\"") != std::string::npos);
  p.forget_results();
  p.refused(all,
            {"metrics.jsonl", "is a report of an earlier run", "--resume auto", "--overwrite_output_dir"});
  p.refused({}, {"metrics.jsonl", "is a report of an earlier run"});

  write_file(p.reports / "notes.txt", "mine");
  p.succeed(joined(all, {"--max_steps", "3", "--overwrite_output_dir"}));
  CHECK(p.lines() == 3);
  CHECK(p.event_files() == 1);
  CHECK(contents_of(p.reports / "notes.txt") == "mine");
}

TEST_CASE("a resumed run continues its reports, also after a kill that cut a line") {
  place const p;
  p.succeed(joined(all, {"--save_steps", "2"}));
  fs::remove_all(p.output / "checkpoint-4");
  std::ofstream{p.reports / "metrics.jsonl", std::ios::app} << R"({"step": 5, "lo)";
  p.succeed(joined(all, {"--save_steps", "2", "--resume", "auto"}));
  CHECK(p.lines() == 4);
  CHECK(p.event_files() == 2);
  CHECK(contents_of(p.reports / "report.html").find("\"points\":{\"step\":[1,2,3,4]") != std::string::npos);
}

TEST_CASE("a run that fails says so on its page, and its lines are there") {
  place const p;
  auto const done = p.run(joined(all, {"--lr", "1e30", "--on_nonfinite", "stop", "--max_grad_norm", "0"}));
  CHECK(done.status == static_cast<int>(exit_code::nonfinite));
  CHECK(contents_of(p.reports / "report.html").find("\"state\":\"failed: step ") != std::string::npos);
  CHECK(p.lines() >= 1);
}

TEST_CASE("reports are refused by name, over inputs, through links, and where another file is to be") {
  place const p;
  p.refused({"--report_to", "html,mlflow"}, {"--report_to has 'mlflow', expected none, or some of"});
  p.refused({"--metrics", p.reports / "metrics.jsonl"}, {"--metrics", "expected another name"});
  fs::create_directories(p.reports);
  fs::copy_file(some_rows, p.reports / "metrics.jsonl");
  p.refused(joined(all, {"--dataset", p.reports / "metrics.jsonl"}), {"--report_to", "--dataset reads"});
  fs::remove_all(p.reports);
  fs::create_directory_symlink(p.root.path(), p.reports);
  p.refused(all, {"reports: is no directory"});
}

TEST_CASE("ranks write one set of reports") {
  place const p;
  p.succeed(joined(all, {"--ranks", "2"}));
  CHECK(p.lines() == 4);
  CHECK(p.event_files() == 1);
}

}  // namespace
