// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/json.hpp>

#include <doctest/doctest.h>

#include "examples/program.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace superoffload::test {

inline std::filesystem::path const models = std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "models";
inline std::filesystem::path const alpaca = SUPEROFFLOAD_ALPACA;
/// Its first rows: to read all of it takes longer than most runs here take else, above all under a sanitizer.
inline std::filesystem::path const some_rows =
    std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "alpaca_64_rows.json";
inline std::filesystem::path const finetune_llama = SUPEROFFLOAD_FINETUNE_LLAMA;
inline std::filesystem::path const finetune = SUPEROFFLOAD_FINETUNE;

/// What runs are on: cpu, or what the environment variable SUPEROFFLOAD_TEST_DEVICE says.
inline std::string test_device() {
  char const* const device = std::getenv("SUPEROFFLOAD_TEST_DEVICE");
  return device == nullptr ? "cpu" : device;
}

/// How many GPUs runs may take: 1, or what the environment variable SUPEROFFLOAD_TEST_GPUS says.
inline int test_gpus() {
  char const* const gpus = std::getenv("SUPEROFFLOAD_TEST_GPUS");
  return gpus == nullptr ? 1 : std::atoi(gpus);
}

/// The arguments with each flag but --dataset and --freeze once, as it is given last: programs refuse two
/// values.
inline std::vector<std::string> last_of_each(std::vector<std::string> const& arguments) {
  std::vector<std::vector<std::string>> flags;
  for (auto const& argument : arguments) {
    if (argument.starts_with("--") || flags.empty()) {
      flags.emplace_back();
    }
    flags.back().push_back(argument);
  }
  auto const name_of = [](std::vector<std::string> const& flag) {
    auto name = flag.front().substr(0, flag.front().find('='));
    std::ranges::replace(name, '-', '_');
    return name;
  };
  std::vector<std::string> all;
  for (auto flag = flags.begin(); flag != flags.end(); ++flag) {
    auto const name = name_of(*flag);
    bool const is_list = name == "__dataset" || name == "__freeze";
    if (is_list ||
        std::none_of(flag + 1, flags.end(), [&](auto const& later) { return name_of(later) == name; })) {
      all.insert(all.end(), flag->begin(), flag->end());
    }
  }
  return all;
}

/// The arguments of a run on few rows, whose further flags replace these.
inline std::vector<std::string> on_few_rows(std::filesystem::path const& output,
                                            std::vector<std::string> const& more) {
  std::vector<std::string> all{"--model",
                               (models / "llama").string(),
                               "--dataset",
                               some_rows.string(),
                               "--dataset_percentage",
                               "30",
                               "--output_dir",
                               output.string(),
                               "--device",
                               test_device(),
                               "--max_length",
                               "64",
                               "--batch_size",
                               "2",
                               "--lr_scheduler",
                               "constant",
                               "--label_mask",
                               "none"};
  all.insert(all.end(), more.begin(), more.end());
  return last_of_each(all);
}

/// A short run on a reference checkpoint, to be changed by further flags: a later flag replaces an earlier
/// one.
struct finetune_run {
  std::string model = "llama";
  std::vector<std::string> flags;

  [[nodiscard]] std::vector<std::string> arguments(std::filesystem::path const& output) const {
    std::vector<std::string> all{"--model",        (models / model).string(),
                                 "--output_dir",   output.string(),
                                 "--metrics",      (output / "metrics.jsonl").string(),
                                 "--device",       test_device(),
                                 "--log_interval", "1",
                                 "--template",     "deepspeed",
                                 "--label_mask",   "none"};
    if (std::ranges::find(flags, "--dataset") == flags.end()) {  // several would be read one after the other
      all.insert(all.end(), {"--dataset", some_rows.string()});
    }
    all.insert(all.end(), flags.begin(), flags.end());
    return last_of_each(all);
  }
  [[nodiscard]] outcome run_in(std::filesystem::path const& output) const {
    return test::run(model.starts_with("llama") ? finetune_llama : finetune, arguments(output));
  }
};

/// The lines of a metrics file.
inline std::vector<io::json> metrics_in(std::filesystem::path const& output) {
  std::vector<io::json> lines;
  std::ifstream file{output / "metrics.jsonl"};
  for (std::string line; std::getline(file, line);) { lines.push_back(io::json::parse(line)); }
  return lines;
}

/// One member of every step's line.
inline std::vector<double> series(std::filesystem::path const& output, std::string const& name) {
  std::vector<double> values;
  for (auto const& line : metrics_in(output)) {
    if (line.contains(name)) {
      values.push_back(line[name].get<double>());
    }
  }
  return values;
}

/// The bytes that a run leaves in its exported weights.
inline std::string weights_of(std::filesystem::path const& output) {
  return contents_of(output / "model" / "model.safetensors");
}

/// What killed or failed saves and exports leave behind for the next one to remove.
inline std::vector<std::string> leftovers_in(std::filesystem::path const& output) {
  std::vector<std::string> names;
  for (auto const& entry : std::filesystem::directory_iterator{output}) {
    if (entry.path().filename().string().starts_with('.')) {
      names.push_back(entry.path().filename());
    }
  }
  return names;
}

}  // namespace superoffload::test
