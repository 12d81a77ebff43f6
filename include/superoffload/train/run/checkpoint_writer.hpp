// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/host_group.hpp>
#include <superoffload/io/train_checkpoint.hpp>

#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// Saves checkpoints while training goes on: the state is copied to host memory where that fits, and written
/// from there by a thread of its own. Where it does not fit, save() writes it piece by piece and returns when
/// it is done. One checkpoint is written at a time. All calls from one thread.
///
/// Ranks write one checkpoint together, each its own blobs, and make the same calls: it is complete when all
/// of them have written, and then they are told so together.
class checkpoint_writer {
public:
  /// In `root`, which all ranks see, keeping the newest `keep_last` of this run (0: all). `run`, its
  /// identity, is the first rank's.
  checkpoint_writer(std::filesystem::path root, int keep_last, comm::host_group ranks = {},
                    std::string run = {})
      : root_{std::move(root)}, keep_last_{keep_last}, ranks_{std::move(ranks)}, run_{std::move(run)} {}
  checkpoint_writer(checkpoint_writer const&) = delete;
  checkpoint_writer& operator=(checkpoint_writer const&) = delete;
  /// Waits for what is being written here; its failure is lost, so call wait() before.
  ~checkpoint_writer();

  /// Takes the state as it is now: blobs are not read after this returns. `state_json` is the first rank's.
  /// Waits for an earlier checkpoint first.
  /// \throws error as io::checkpoint_draft, of the earlier one too.
  void save(std::int64_t step, std::string state_json, std::vector<io::blob> blobs);

  /// The checkpoint that has been completed since the last call, if any; does not wait for what is being
  /// written.
  /// \throws its failure.
  std::optional<std::filesystem::path> completed();
  /// The same, after waiting for the one that is being written.
  std::optional<std::filesystem::path> wait();

private:
  std::filesystem::path finish();

  std::filesystem::path root_;
  int keep_last_;
  comm::host_group ranks_;
  std::string run_;
  std::filesystem::path writing_;  ///< empty: nothing
  std::string state_json_;
  std::optional<io::checkpoint_draft> draft_;  ///< the first rank's
  std::future<std::string> part_;              ///< this rank's
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/checkpoint_writer_inl.hpp>
#endif
