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

// A training checkpoint is the directory <root>/checkpoint-<step>. A directory with such a name is complete
// and on stable storage: it was written under another name, synced, and renamed. One process per root may
// save at a time.
//
//   rank-00000.bin  the blobs of a rank one after the other, each at a multiple of 4096 bytes; of state that
//                   ranks share, each rank has a part under the same name. Chunks of 1 MiB are without the
//                   low bytes that are zero in all of their words (narrow_words.hpp)
//   manifest.json   its own SHA-256, every file and blob with sizes, of every chunk the CRC-32C and the bytes
//                   that are kept of each word, the step, the number of ranks, the run that saved it, and the
//                   caller's state
//
// Where each host has a root of its own, every one of these has the files of its ranks and the same manifest,
// which names the host of each file. The files of all hosts in one directory are the whole checkpoint.

/// The unit of verification of a blob: reads of whole chunks need no copy.
inline constexpr std::uint64_t checkpoint_chunk_bytes = std::uint64_t{1} << 20;

/// State to be saved: `read` fills its argument with the bytes from `offset` on, each requested once and in
/// order.
struct blob {
  std::string name;                                                          ///< UTF-8, at most 512 bytes
  std::uint64_t bytes = 0;                                                   ///< the size of its data
  std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;  ///< see above
};

/// A checkpoint that is being written by one process or by several ranks. One rank creates the draft, each
/// rank writes its part, and when all parts are written the first one finishes it. Until then it is a
/// temporary directory, which the destructor removes.
class checkpoint_draft {
public:
  /// A draft of `<root>/checkpoint-<step>`. Leftovers of killed saves are removed. \throws error(io_failure).
  /// `run`: the identity of the run that saves it, UTF-8; checkpoints of other runs are not touched.
  checkpoint_draft(std::filesystem::path root, std::int64_t step, std::string run = {});

  /// The directory for the parts.
  [[nodiscard]] std::filesystem::path const& directory() const noexcept { return staged_.path(); }

  // What finishes a draft, in this order. Drafts of one checkpoint in several roots take each step together,
  // so that all roots have an earlier checkpoint until all have this one. All throw error(io_failure) naming
  // the path; every earlier checkpoint is then unchanged, except that those due for removal may be gone.

  /// Completes the draft: writes its manifest. `parts`: the results of write_checkpoint_part(), by rank.
  void write_manifest(std::string const& state_json, std::span<std::string const> parts);
  /// Renames the draft to its final name, replacing an older checkpoint of that name.
  void commit();
  /// Removes all but the last `keep_last` checkpoints of its run (0: removes none). Those of later steps
  /// count as older than this one: they were abandoned.
  void retire(int keep_last);
  /// All of these, for a draft in one root.
  void finish(std::string const& state_json, std::span<std::string const> parts, int keep_last = 0);

private:
  std::filesystem::path root_;
  std::int64_t step_;
  std::string run_;
  staging_directory staged_;
};

/// Writes the blobs of a rank. Blobs with the same name on several ranks are parts of one, in the order of
/// the ranks. `host`: the name of this host where each has a root of its own, else empty.
/// \returns the part's entry for the manifest. \throws error(io_failure) naming the file.
std::string write_checkpoint_part(std::filesystem::path const& directory, int rank,
                                  std::span<blob const> blobs, std::string_view host = {});

/// Saves a checkpoint from one process.
void save_checkpoint(std::filesystem::path const& root, std::int64_t step, std::string const& state_json,
                     std::span<blob const> blobs, int keep_last = 0, std::string run = {});

/// A checkpoint on disk; its data were not checked.
struct found_checkpoint {
  std::int64_t step = 0;            ///< the number in its name
  std::filesystem::path directory;  ///< below the root
  std::optional<std::string> run;   ///< that saved it; empty: not named; none: its manifest is not valid
};

/// All checkpoints under `root`, by step. \throws error(io_failure).
std::vector<found_checkpoint> checkpoints_in(std::filesystem::path const& root);

/// Removes checkpoints. If the process is killed, each of them is complete or gone.
/// \throws error(bad_input), before anything is removed, when one contains files that no checkpoint has;
/// error(io_failure).
void remove_checkpoints(std::span<found_checkpoint const> checkpoints);

namespace detail {
/// A chunk of a blob in the file of a rank.
struct placed_chunk {
  std::uint64_t begin;     ///< in the file
  std::uint32_t checksum;  ///< of what is there
  int kept;                ///< bytes of each word
};
}  // namespace detail

/// A training checkpoint open for reading. Several threads may read at once.
class checkpoint_reader {
public:
  /// Verifies the manifest, and the sizes of the files against it, but not yet their content. Files that were
  /// saved in roots of several hosts need not all be here.
  /// \throws error(bad_input) naming file, field and expectation, error(io_failure) when reading fails.
  static checkpoint_reader open(std::filesystem::path const& directory);

  /// As it was opened.
  [[nodiscard]] std::filesystem::path const& directory() const noexcept { return directory_; }
  /// As passed to save_checkpoint().
  [[nodiscard]] std::int64_t step() const noexcept { return step_; }
  /// The number of ranks that saved it.
  [[nodiscard]] int world_size() const noexcept { return static_cast<int>(files_.size()); }
  /// The run that saved it; empty when it names none.
  [[nodiscard]] std::string const& run() const noexcept { return run_; }
  /// The caller's state, byte for byte as passed to save_checkpoint.
  [[nodiscard]] std::string const& state_json() const noexcept { return state_json_; }
  /// The SHA-256 of the manifest: parts in several roots with the same are of one checkpoint.
  [[nodiscard]] std::string const& digest() const noexcept { return digest_; }

  /// Is the file of `rank`, below world_size(), here? All that is asked of the others is how much they have.
  [[nodiscard]] bool is_here(int rank) const;
  /// The names of all blobs of `rank`, sorted.
  [[nodiscard]] std::vector<std::string> names(int rank = 0) const;
  /// Did `rank`, below world_size(), save such a blob?
  [[nodiscard]] bool has(std::string_view name, int rank = 0) const;
  /// \throws error(bad_input) when there is no such blob.
  [[nodiscard]] std::uint64_t blob_bytes(std::string_view name, int rank = 0) const;

  /// Reads bytes [offset, offset + out.size()) of a blob.
  /// \throws error(bad_input) when one of their chunks, or the padding after the last one, is not what was
  /// saved, or the file is not here; `out` must not be used then.
  void read(std::string_view name, std::uint64_t offset, std::span<std::byte> out, int rank = 0) const;

  /// The size of all ranks' blobs of that name together. \throws error(bad_input) when there is none.
  [[nodiscard]] std::uint64_t whole_bytes(std::string_view name) const;
  /// The same as read(), for all ranks' blobs of that name one after the other.
  void read_whole(std::string_view name, std::uint64_t offset, std::span<std::byte> out) const;

  /// Reads and verifies everything. \throws error(bad_input) naming the file and the blob.
  void verify() const;

private:
  struct placed_blob {
    std::uint64_t bytes;  ///< of its data
    std::uint64_t end;    ///< in the file
    std::vector<detail::placed_chunk> chunks;
  };
  struct rank_file {
    std::optional<file> data;  ///< none: it is on another host
    std::string host;
    std::map<std::string, placed_blob, std::less<>> blobs;
  };

  checkpoint_reader() = default;
  [[nodiscard]] placed_blob const& at(std::string_view name, int rank) const;
  [[nodiscard]] file const& data_of(int rank) const;
  static void expect_zeros(file const& data, std::uint64_t end, std::string_view name);

  std::filesystem::path directory_;
  std::int64_t step_ = 0;
  std::string digest_;
  std::string run_;
  std::string state_json_;
  std::vector<rank_file> files_;
};

/// The steps of all checkpoints under `root`, ascending; they are not validated. \throws error(io_failure).
std::vector<std::int64_t> checkpoint_steps(std::filesystem::path const& root);
/// The same as checkpoint_reader::open(), for one of those. \throws error(bad_input) also if its manifest
/// names another step.
checkpoint_reader open_checkpoint(std::filesystem::path const& root, std::int64_t step);

/// The checkpoint of the highest step that `open` can open, because its manifest is valid, and `take` can
/// read, or nothing. `steps` ascend. `take` reads it, once. If one of them throws bad_input, the checkpoint
/// is rejected. Other errors are passed on: a checkpoint that cannot be read now (io_failure) may be intact.
/// `on_rejected` is told, in one line with the path, why a newer one was rejected. When it was called and
/// nothing is returned, the caller must report an error: otherwise a run would silently start afresh.
std::optional<checkpoint_reader> newest_checkpoint(
    std::span<std::int64_t const> steps, std::function<checkpoint_reader(std::int64_t step)> const& open,
    std::function<void(std::string const& reason)> const& on_rejected,
    std::function<void(checkpoint_reader const&)> const& take);

/// The same for all checkpoints under `root`.
std::optional<checkpoint_reader> newest_checkpoint(
    std::filesystem::path const& root, std::function<void(std::string const& reason)> const& on_rejected,
    std::function<void(checkpoint_reader const&)> const& take = &checkpoint_reader::verify);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/train_checkpoint_inl.hpp>
#endif
