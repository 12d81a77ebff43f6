// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Conversations through the programs; see "chat" in tests/data/README.md.
#include "examples/finetune.hpp"
#include "examples/reference_run.hpp"
#include "examples/rejection.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

fs::path const tokenize = SUPEROFFLOAD_TOKENIZE;
fs::path const data = SUPEROFFLOAD_TEST_DATA;

io::json cases_of(std::string const& name) {
  return io::read_json(data / "chat" / (name + ".json"), {.bytes = std::size_t{1} << 20});
}

io::json const& case_named(io::json const& file, std::string const& name) {
  return *std::ranges::find_if(file["cases"], [&](io::json const& one) { return one["name"] == name; });
}

/// What tokenize is to write for a case: the line, or another that is right, too; "" if it may be refused.
words accepted(io::json const& expected, std::string const& learn) {
  words lines;
  for (auto const* const one :
       {&expected, expected.contains("alternative") ? &expected["alternative"] : nullptr}) {
    if (one == nullptr || !one->contains("ids")) {
      continue;
    }
    std::vector<int> mask((*one)["ids"].size());
    for (auto const& range : (*one)["mask_" + learn]) {
      std::fill(mask.begin() + range[0].get<int>(), mask.begin() + range[1].get<int>(), 1);
    }
    lines.push_back("{\"ids\": " + (*one)["ids"].dump() + ", \"mask\": " + io::json(mask).dump() + "}\n");
  }
  if (expected.contains("error") || expected.contains("may_refuse")) {
    lines.emplace_back();
  }
  return lines;
}

TEST_CASE("tokenize writes the ids and the mask of every conversation, or refuses it by its line") {
  scratch_directory const root;
  auto const rows = root.path() / "rows.jsonl", ids = root.path() / "ids.jsonl";
  for (std::string const family :
       {"chatml", "gpt_oss", "llama3", "phi4", "qwen3", "qwen3_2507", "seed_oss", "smollm2"}) {
    auto const file = cases_of(family);
    std::string input;
    std::vector<words> expected;
    auto const flags = [&](std::string const& learn) {
      return words{"--model",         (data / "tokenizers" / file["tokenizer"].get<std::string>()).string(),
                   "--dataset",       rows.string(),
                   "--format",        "messages",
                   "--chat_template", family,
                   "--learn",         learn,
                   "--output",        ids.string()};
    };
    auto const run = [&](std::string const& learn) { return program{tokenize, flags(learn)}.wait(); };
    auto const single = case_named(file, "single")["row"].get<std::string>();
    for (auto const& one : file["cases"]) {
      CAPTURE(family);
      CAPTURE(one["name"]);
      auto const row = one["row"].get<std::string>();
      auto const all = accepted(one, "all"), last = accepted(one, "last");
      if (std::ranges::find(all, "") == all.end()) {
        input += row + "\n";
        expected.push_back({all.front(), last.front()});
        continue;
      }
      write_file(rows, single + "\n" + row + "\n");
      auto const done = run("all");
      if (done.status == 0) {
        auto const written = contents_of(ids);
        CHECK(std::ranges::find(all, written.substr(written.find('\n') + 1)) != all.end());
      } else {
        check_rejected(
            done, exit_code::bad_input,
            {rows.string() + ":2: ", one.value(io::json::json_pointer{"/error/template"}, std::string{})},
            "tokenize");
      }
    }
    write_file(rows, input);
    for (std::size_t i : {0U, 1U}) {
      auto const done = run(i == 0 ? "all" : "last");
      CAPTURE(done.err);
      CHECK(done.status == 0);
      std::string lines;
      for (auto const& one : expected) { lines += one[i]; }
      CHECK(contents_of(ids) == lines);
    }
  }
}

/// The rows of a reference run as a data set.
fs::path conversations(fs::path const& root, io::json const& run) {
  auto const file = cases_of(run["template"].get<std::string>());
  std::string rows;
  for (auto const& name : run["rows"]) {
    rows += case_named(file, name.get<std::string>())["row"].get<std::string>() + "\n";
  }
  return write_file(root / "rows.jsonl", rows);
}

words flags_of_conversations(io::json const& run, fs::path const& rows) {
  auto flags = flags_of(run["args"]);
  flags.insert(flags.end(),
               {"--dataset", rows.string(), "--dtype", "float32", "--format", "messages", "--chat_template",
                run["template"].get<std::string>(), "--learn", run["learn"].get<std::string>()});
  return flags;
}

TEST_CASE("training on conversations has the losses of transformers on the same ids and mask") {
  auto const expected = io::read_json(data / "chat" / "training.json");
  REQUIRE(expected["runs"].size() == 3);
  for (auto const& truth : expected["runs"]) {
    CAPTURE(truth["model"]);
    scratch_directory const root;
    auto const rows = conversations(root.path(), truth);
    finetune_run const run{truth["model"].get<std::string>(), flags_of_conversations(truth, rows)};
    auto const done = run.run_in(root.path());
    CAPTURE(done.err);
    REQUIRE(done.status == 0);
    auto const steps = metrics_in(root.path());
    REQUIRE(steps.size() == truth["loss"].size());
    for (std::size_t i = 0; i < steps.size(); ++i) {
      CAPTURE(i);
      CHECK(steps[i]["loss"].get<double>() == doctest::Approx(truth["loss"][i].get<double>()).epsilon(2e-5));
      CHECK(steps[i]["grad_norm"].get<double>() ==
            doctest::Approx(truth["grad_norm"][i].get<double>()).epsilon(1e-4));
      CHECK(steps[i]["label_tokens"] == truth["label_tokens"][i]);
    }
  }
}

TEST_CASE("another template, or other turns, are other data for a run that is resumed") {
  scratch_directory const root;
  auto const truth = io::read_json(data / "chat" / "training.json")["runs"][1];
  REQUIRE(truth["model"] == "qwen3");
  auto const rows = conversations(root.path(), truth);
  auto flags = flags_of_conversations(truth, rows);
  flags.insert(flags.end(), {"--max_steps", "1", "--save_steps", "1"});
  auto const first = finetune_run{"qwen3", flags}.run_in(root.path());
  CAPTURE(first.err);
  REQUIRE(first.status == 0);
  auto const resumed = [&](words const& more) {
    auto all = flags;
    all.insert(all.end(), {"--max_steps", "2", "--resume", "auto"});
    all.insert(all.end(), more.begin(), more.end());
    return finetune_run{"qwen3", all}.run_in(root.path());
  };
  check_rejected(resumed({"--learn", "all"}), exit_code::bad_input, {"dataset", "learn last", "learn all"},
                 "finetune_qwen3");
  check_rejected(resumed({"--chat_template", "chatml"}), exit_code::bad_input,
                 {"dataset", "chat template qwen3,", "chat template chatml,"}, "finetune_qwen3");
  CHECK(resumed({}).status == 0);
}

TEST_CASE("a model without a known template is refused with the names to choose from") {
  scratch_directory const root;
  auto const truth = io::read_json(data / "chat" / "training.json")["runs"][0];
  auto const rows = conversations(root.path(), truth);
  auto flags = flags_of_conversations(truth, rows);
  flags.insert(flags.end(), {"--chat_template", "auto"});
  check_rejected(
      finetune_run{"llama", flags}.run_in(root.path()), exit_code::bad_input,
      {(models / "llama").string(), "no chat template", "--chat_template: chatml, gpt_oss, llama3"});
  flags.insert(flags.end(), {"--chat_template", "zephyr"});
  check_rejected(finetune_run{"llama", flags}.run_in(root.path()), exit_code::bad_input,
                 {"--chat_template is 'zephyr', expected auto|chatml"});
}

}  // namespace
