// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include "examples/finetune.hpp"

#include <algorithm>
#include <map>

namespace superoffload::test {

/// A file's bytes by its path below `root`; directories with an empty text.
inline std::map<std::string, std::string> snapshot_of(std::filesystem::path const& root) {
  std::map<std::string, std::string> files;
  if (!std::filesystem::exists(root)) {
    return files;
  }
  for (auto const& entry : std::filesystem::recursive_directory_iterator{root}) {
    files[entry.path().lexically_relative(root)] = entry.is_regular_file() ? contents_of(entry.path()) : "";
  }
  return files;
}

/// The last line on standard error says what is wrong, is the only one that does, and contains all of `says`.
inline void check_failure(outcome const& done, exit_code code, std::vector<std::string> const& says,
                          std::string const& program_name = "finetune_llama") {
  CAPTURE(done.err);
  CHECK(done.status == static_cast<int>(code));
  auto const prefix = program_name + ": error: ";
  auto const begin = done.err.find(prefix);
  REQUIRE(begin != std::string::npos);
  CHECK((begin == 0 || done.err[begin - 1] == '\n'));
  CHECK(done.err.find('\n', begin) == done.err.size() - 1);
  for (auto const& text : says) {
    CAPTURE(text);
    CHECK(done.err.find(text, begin) != std::string::npos);
  }
}

/// As check_failure, with nothing else on standard error.
inline void check_rejected(outcome const& done, exit_code code, std::vector<std::string> const& says,
                           std::string const& program_name = "finetune_llama") {
  check_failure(done, code, says, program_name);
  CAPTURE(done.err);
  CHECK(std::ranges::count(done.err, '\n') == 1);
  CHECK(std::ranges::none_of(done.err,
                             [](char c) { return static_cast<unsigned char>(c) < 0x20 && c != '\n'; }));
}

/// Many short runs: starting threads would take longer than their work, and one that hangs is ended by the
/// alarm. Later flags replace earlier ones.
inline outcome run_on_one_thread(std::filesystem::path const& file,
                                 std::vector<std::string> const& arguments) {
  return program{file, last_of_each(arguments),
                 [] {
                   ::setenv("SUPEROFFLOAD_NUM_THREADS", "1", 1);
                   ::alarm(60);
                 }}
      .wait();
}

inline std::vector<std::string> joined(std::vector<std::string> flags, std::vector<std::string> const& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

/// Two rows, for runs whose data do not matter.
inline char const* const two_rows = R"([{"instruction": "Add 1 and 2.", "input": "", "output": "3"},
 {"instruction": "Say it.", "input": "yes", "output": "Yes, said."}])";

}  // namespace superoffload::test
