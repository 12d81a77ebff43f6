// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/directory.hpp>
#include <superoffload/io/file.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::io {

// A training checkpoint is the directory <root>/checkpoint-<step>. A checkpoint that stands under its name is
// complete and on stable storage: it was written aside, synced, and renamed. One process per root may save at
// a time.
//
//   rank-00000.bin  the blobs of a rank one after the other, each from a multiple of 4096 bytes on; of what
//   ranks
//                   share each has a part under the same name
//   manifest.json   its own SHA-256, every file and blob with sizes, the CRC-32C of every chunk of 1 MiB, the
//   step, the
//                   number of ranks, the run that saved it, and the caller's state

/// The piece of a blob that is verified as a whole: reads of whole chunks need no copy.
inline constexpr std::uint64_t checkpoint_chunk_bytes = std::uint64_t{1} << 20;

/// State to be saved: `read` fills its argument with the bytes from `offset` on, each asked for once and in
/// order.
struct blob {
  std::string name;  ///< UTF-8, at most 512 bytes
  std::uint64_t bytes = 0;
  std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;
};

/// A checkpoint that is being written, by one process or by several ranks: one of them makes this, each
/// writes its part, and when all are there the first one finishes it. Until then it is a directory that is
/// removed with this.
class checkpoint_draft {
public:
  /// Of <root>/checkpoint-<step>. What killed saves left behind is removed. \throws error(io_failure).
  /// `run`: the identity of the run that saves it, UTF-8; checkpoints of other runs are let alone.
  checkpoint_draft(std::filesystem::path root, std::int64_t step, std::string run = {});

  /// Where the parts are to be written.
  [[nodiscard]] std::filesystem::path const& directory() const noexcept { return staged_.path(); }

  /// Puts the checkpoint in its place, of an older one of that name too, then removes all but the last
  /// `keep_last` checkpoints of its run (0: none is removed). Those of later steps count as older than this
  /// one: they were abandoned. `parts`: what write_checkpoint_part() gave, by rank.
  /// \throws error(io_failure) naming the path; every earlier checkpoint is then as it was, except that those
  /// to be
  ///         removed may be gone if the new one is in place.
  void finish(std::string const& state_json, std::span<std::string const> parts, int keep_last = 0);

private:
  std::filesystem::path root_;
  std::int64_t step_;
  std::string run_;
  staging_directory staged_;
};

/// Writes the blobs of a rank. Blobs of one name that several ranks have are parts of one, in the order of
/// the ranks.
/// \returns what the manifest says of them. \throws error(io_failure) naming the file.
std::string write_checkpoint_part(std::filesystem::path const& directory, int rank,
                                  std::span<blob const> blobs);

/// All of this by one process.
void save_checkpoint(std::filesystem::path const& root, std::int64_t step, std::string const& state_json,
                     std::span<blob const> blobs, int keep_last = 0, std::string run = {});

/// A checkpoint as it is found, without a look at its data.
struct found_checkpoint {
  std::int64_t step = 0;
  std::filesystem::path directory;
  std::optional<std::string> run;  ///< that saved it, empty: it does not say; none: its manifest is not valid
};

/// All checkpoints under `root`, by their steps. \throws error(io_failure).
std::vector<found_checkpoint> checkpoints_in(std::filesystem::path const& root);

/// Removes checkpoints; killed at any point, each is there as a whole or not at all.
/// \throws error(bad_input), before anything is removed, for one that holds what no checkpoint does,
/// error(io_failure).
void remove_checkpoints(std::span<found_checkpoint const> checkpoints);

/// A training checkpoint open for reading. Reading is safe from several threads.
class checkpoint_reader {
public:
  /// Verifies the manifest, and the sizes of the files against it, but not yet their content.
  /// \throws error(bad_input) naming file, field and expectation, error(io_failure) when reading fails.
  static checkpoint_reader open(std::filesystem::path const& directory);

  [[nodiscard]] std::filesystem::path const& directory() const noexcept { return directory_; }
  [[nodiscard]] std::int64_t step() const noexcept { return step_; }
  [[nodiscard]] int world_size() const noexcept { return static_cast<int>(files_.size()); }
  /// The run that saved it; empty: it does not say.
  [[nodiscard]] std::string const& run() const noexcept { return run_; }
  /// What the caller of save_checkpoint gave, byte for byte.
  [[nodiscard]] std::string const& state_json() const noexcept { return state_json_; }

  /// Of all blobs of `rank`, sorted.
  [[nodiscard]] std::vector<std::string> names(int rank = 0) const;
  [[nodiscard]] bool has(std::string_view name, int rank = 0) const;
  /// \throws error(bad_input) when there is no such blob.
  [[nodiscard]] std::uint64_t blob_bytes(std::string_view name, int rank = 0) const;

  /// Bytes [offset, offset + out.size()) of a blob.
  /// \throws error(bad_input) when a chunk they lie in, or the padding behind the last one, is not what was
  /// saved; `out` must not be used then.
  void read(std::string_view name, std::uint64_t offset, std::span<std::byte> out, int rank = 0) const;

  /// Of the blobs of that name of all ranks. \throws error(bad_input) when there is none.
  [[nodiscard]] std::uint64_t whole_bytes(std::string_view name) const;
  /// The same as read(), of all ranks' blobs of that name one after the other.
  void read_whole(std::string_view name, std::uint64_t offset, std::span<std::byte> out) const;

  /// Reads and verifies everything. \throws error(bad_input) naming the file and the blob.
  void verify() const;

private:
  struct placed_blob {
    std::uint64_t begin;
    std::uint64_t bytes;
    std::vector<std::uint32_t> checksums;
  };
  struct rank_file {
    file data;
    std::map<std::string, placed_blob, std::less<>> blobs;
  };

  checkpoint_reader() = default;
  [[nodiscard]] placed_blob const& at(std::string_view name, int rank) const;
  static void expect_zeros(file const& data, std::uint64_t end, std::string_view name);

  std::filesystem::path directory_;
  std::int64_t step_ = 0;
  std::string run_;
  std::string state_json_;
  std::vector<rank_file> files_;
};

/// The checkpoint of the highest step under `root` whose manifest verifies and which `take` accepts, or
/// nothing. `take` reads what it is for, once; bad_input rejects the checkpoint, other errors are passed on:
/// what cannot be read now (io_failure) may be whole. `on_rejected` is told, in one line with the path, why a
/// newer one was not taken: when nothing is returned although it was called, going on would be starting
/// afresh without saying so, and the caller reports an error.
std::optional<checkpoint_reader> newest_checkpoint(
    std::filesystem::path const& root, std::function<void(std::string const& reason)> const& on_rejected,
    std::function<void(checkpoint_reader const&)> const& take = &checkpoint_reader::verify);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/train_checkpoint_inl.hpp>
#endif
