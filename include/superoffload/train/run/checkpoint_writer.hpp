// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/host_group.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/train/run/output_place.hpp>

#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// A checkpoint that is complete, and what its write took.
struct saved_checkpoint {
  std::filesystem::path directory;  ///< that holds it
  std::uint64_t bytes = 0;          ///< of the state, of all ranks
  double seconds = 0.0;             ///< of this rank's write
};

/// Saves checkpoints while training continues: the state is copied to host memory, and a separate thread
/// writes it. If the copy does not fit, save() writes piece by piece and returns when it is done. One
/// checkpoint is written at a time. All calls come from one thread.
///
/// Ranks write one checkpoint together, each its own blobs, and make the same calls. The checkpoint is
/// complete when all have written; all learn so at the same call. With a directory on each host, each of
/// these has an older one until all have this one.
class checkpoint_writer {
public:
  /// Writes to `root` at the rank's `place`, and keeps the newest `keep_last` checkpoints of this run (0:
  /// all). `run` is the run's identity; those of keepers count.
  checkpoint_writer(std::filesystem::path root, int keep_last, comm::host_group ranks = {},
                    std::string run = {}, output_place place = {})
      : root_{std::move(root)},
        keep_last_{keep_last},
        ranks_{std::move(ranks)},
        run_{std::move(run)},
        place_{std::move(place)} {}
  checkpoint_writer(checkpoint_writer const&) = delete;
  checkpoint_writer& operator=(checkpoint_writer const&) = delete;
  /// Waits for the running write. A failure of it is lost: call wait() before.
  ~checkpoint_writer();

  /// Saves the state as it is now; blobs are not read after this returns. The first rank's `state_json`
  /// counts. Waits for an earlier checkpoint first.
  /// \throws error as io::checkpoint_draft, also for the earlier checkpoint.
  void save(std::int64_t step, std::string state_json, std::vector<io::blob> blobs);

  /// The checkpoint that was completed since the last call, if any. Does not wait.
  /// \throws the failure of its write.
  std::optional<saved_checkpoint> completed();
  /// The same, after a wait for the running write.
  std::optional<saved_checkpoint> wait();

private:
  saved_checkpoint finish();

  std::filesystem::path root_;
  int keep_last_;
  comm::host_group ranks_;
  std::string run_;
  output_place place_;
  saved_checkpoint writing_;  ///< without a directory: nothing
  std::string state_json_;
  std::optional<io::checkpoint_draft> draft_;  ///< a keeper's
  std::future<std::string> part_;              ///< this rank's
};

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/checkpoint_writer_inl.hpp>
#endif
