// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

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
class checkpoint_writer {
public:
  /// In `root`, keeping the newest `keep_last` (0: all).
  checkpoint_writer(std::filesystem::path root, int keep_last)
      : root_{std::move(root)}, keep_last_{keep_last} {}
  checkpoint_writer(checkpoint_writer const&) = delete;
  checkpoint_writer& operator=(checkpoint_writer const&) = delete;
  /// Waits for the checkpoint that is being written; its failure is lost, so call wait() before.
  ~checkpoint_writer();

  /// Takes the state as it is now: blobs are not read after this returns. Waits for an earlier checkpoint
  /// first.
  /// \throws error as io::save_checkpoint, of the earlier one too.
  void save(std::int64_t step, std::string state_json, std::vector<io::blob> blobs);

  /// The checkpoint that has been completed since the last call, if any; does not wait. \throws its failure.
  std::optional<std::filesystem::path> completed();
  /// The same, after waiting for the one that is being written.
  std::optional<std::filesystem::path> wait();

private:
  std::filesystem::path root_;
  int keep_last_;
  std::filesystem::path writing_;
  std::future<void> done_;
};

}  // namespace superoffload::train
