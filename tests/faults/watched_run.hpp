// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/train_checkpoint.hpp>

#include "examples/rejection.hpp"
#include "faults/io_calls.hpp"

#include <cstddef>
#include <functional>
#include <string_view>

namespace superoffload::test {

/// What io_shim.cpp does to a program.
struct watch {
  std::filesystem::path root = {};   ///< calls on what is below count
  std::filesystem::path trace = {};  ///< empty: none
  long at = -1;                      ///< the call that fails, from 0; -1: none
  int with = 0;                      ///< an errno, or as in io_calls.hpp
  bool lasting = false;              ///< all later calls fail as well
  int rank = -1;                     ///< the rank with the fault; -1: each process
  bool plain = false;                ///< names cannot be exchanged
  std::filesystem::path fired = {};  ///< made when the fault happens

  /// For the child, before the program.
  void prepare() const {
    ::setenv("SUPEROFFLOAD_NUM_THREADS", "1", 1);
    ::setenv("LD_PRELOAD", SUPEROFFLOAD_IO_SHIM, 1);
    ::setenv("SUPEROFFLOAD_IO_ROOT", root.c_str(), 1);
    if (!trace.empty()) {
      ::setenv("SUPEROFFLOAD_IO_TRACE", trace.c_str(), 1);
    }
    if (at >= 0) {
      ::setenv("SUPEROFFLOAD_IO_FAULT", concat(at, ',', with, ',', lasting ? 1 : 0).c_str(), 1);
    }
    if (rank >= 0) {
      ::setenv("SUPEROFFLOAD_IO_RANK", std::to_string(rank).c_str(), 1);
    }
    if (plain) {
      ::setenv("SUPEROFFLOAD_IO_PLAIN", "1", 1);
    }
    if (!fired.empty()) {
      ::setenv("SUPEROFFLOAD_IO_FIRED", fired.c_str(), 1);
    }
    ::alarm(60);
  }
};

inline outcome run_watched(std::vector<std::string> const& arguments, watch const& watched) {
  return program{finetune_llama, last_of_each(arguments), [&] { watched.prepare(); }}.wait();
}

/// The calls of a run.
inline std::vector<io_event> calls_of(std::vector<std::string> const& arguments, watch watched) {
  scratch_directory const scratch;
  watched.trace = scratch.path() / "trace";
  auto const done = run_watched(arguments, watched);
  CAPTURE(done.err);
  REQUIRE(done.status == 0);
  return decoded(contents_of(watched.trace));
}

/// A digest of all that a checkpoint says and holds; every checksum is checked.
inline std::string digest_of(io::checkpoint_reader const& reader) {
  std::string text = concat(reader.step(), ' ', reader.run(), ' ', reader.state_json());
  for (int rank = 0; rank < reader.world_size(); ++rank) {
    for (auto const& name : reader.names(rank)) {
      std::vector<std::byte> content(reader.blob_bytes(name, rank));
      reader.read(name, 0, content, rank);
      std::string_view const bytes{reinterpret_cast<char const*>(content.data()), content.size()};
      text += concat('\n', rank, ' ', name, ' ', std::hash<std::string_view>{}(bytes));
    }
  }
  return text;
}

/// A run that goes on where one before has ended, saves every step and rotates.
inline std::vector<std::string> saving_run(std::filesystem::path const& output, int steps) {
  return on_few_rows(
      output, {"--lr", "1e-3", "--dtype", "bf16", "--max_steps", std::to_string(steps), "--save_steps", "1",
               "--save_total_limit", "2", "--resume", "auto", "--metrics", output / "metrics.jsonl"});
}

}  // namespace superoffload::test
