// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "examples/rejection.hpp"

namespace {

using namespace superoffload;
using namespace superoffload::test;
namespace fs = std::filesystem;
using words = std::vector<std::string>;

/// Two data sets of 20 and 40 rows: a directory of Alpaca shards, and lines of text.
struct two_sets {
  scratch_directory root;
  std::string alpaca_set = root.path() / "alpaca", text_set = root.path() / "text.jsonl";

  two_sets() {
    auto const rows = io::json::parse(contents_of(some_rows));
    fs::create_directory(alpaca_set);
    std::string first, second, lines;
    for (std::size_t i = 0; i < 60; ++i) {
      if (i < 20) {
        (i < 7 ? first : second) += rows[i].dump() + "\n";
      } else {
        lines += io::json{{"text", rows[i]["output"]}}.dump() + "\n";
      }
    }
    write_file(fs::path{alpaca_set} / "a.jsonl", first);
    write_file(fs::path{alpaca_set} / "b.jsonl", second);
    write_file(text_set, lines);
  }

  [[nodiscard]] outcome run(std::string const& output, std::string const& weights_of_alpaca,
                            words const& more) const {
    words flags{"--dataset",    alpaca_set + weights_of_alpaca,
                "--dataset",    text_set + (weights_of_alpaca.empty() ? "" : ":0.3"),
                "--max_length", "48",
                "--batch_size", "16",
                "--dtype",      "float32",
                "--max_steps",  "9"};
    flags.insert(flags.end(), more.begin(), more.end());
    return finetune_run{"llama", flags}.run_in(root.path() / output);
  }
  [[nodiscard]] std::string model_of(std::string const& output) const {
    return contents_of(root.path() / output / "model" / "model.safetensors");
  }
};

TEST_CASE("a run on weighted data sets that is resumed in mid-epoch follows the same order") {
  two_sets const c;
  auto const whole = c.run("whole", ":0.7", {"--save_steps", "5"});  // an epoch has 4 steps
  CAPTURE(whole.err);
  REQUIRE(whole.status == 0);
  CHECK(whole.out.find("60 examples of format alpaca, text") != std::string::npos);
  auto const saved = (c.root.path() / "whole" / "checkpoint-5").string();
  REQUIRE(c.run("resumed", ":0.7", {"--resume", saved}).status == 0);
  CHECK(c.model_of("resumed") == c.model_of("whole"));
  REQUIRE(c.run("unweighted", "", {}).status == 0);
  CHECK(c.model_of("unweighted") != c.model_of("whole"));
  check_rejected(c.run("other", ":0.6", {"--resume", saved}), exit_code::bad_input,
                 {"weight 0.7", "weight 0.6", "format text"});
  write_file(fs::path{c.alpaca_set} / "c.jsonl", "{\"instruction\": \"a\", \"output\": \"b\"}\n");
  check_rejected(c.run("other", ":0.7", {"--resume", saved}), exit_code::bad_input,
                 {"was saved with dataset"});
}

TEST_CASE("weights that contradict each other or the other flags are rejected") {
  two_sets const c;
  check_rejected(c.run("none", ":0", {}), exit_code::bad_input, {"the weight of '", "expected above 0"});
  check_rejected(c.run("none", ":0.7", {"--shuffle", "off"}), exit_code::bad_input, {"--shuffle is off"});
  check_rejected(c.run("none", ":0.7", {"--dataset", c.text_set}), exit_code::bad_input,
                 {"2 of 3 data sets have a weight"});
  check_rejected(c.run("none", ":0.0001", {}), exit_code::bad_input, {"leaves no row of", c.alpaca_set});
}

}  // namespace
