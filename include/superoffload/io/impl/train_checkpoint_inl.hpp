// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/checksum.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/io/narrow_words.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/io/write_behind.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <system_error>
#include <utility>

namespace superoffload::io {
namespace detail {

namespace fs = std::filesystem;

inline constexpr auto manifest_name = "manifest.json";
inline constexpr std::string_view format_name = "superoffload checkpoint";
inline constexpr std::int64_t format_version = 2;  // version 1 keeps all bytes
inline constexpr std::uint64_t blob_alignment = 4096;
static_assert(write_behind::buffer_bytes % checkpoint_chunk_bytes == 0);  // pieces are whole chunks
inline constexpr std::size_t most_blobs = 100'000;
inline constexpr std::size_t blob_name_bytes = 512;
inline constexpr std::int64_t most_ranks = 65'536;
inline constexpr json_limits manifest_limits{
    .bytes = std::size_t{64} << 20, .depth = 8, .commas = 4 * most_blobs};

// A manifest begins with these; between them is the digest of everything behind it, up to the end of the
// file.
inline constexpr std::string_view before_digest = "{\"sha256\":\"";
inline constexpr std::size_t digest_characters = 64;
inline constexpr std::string_view after_digest = "\",\n\"manifest\":";

inline constexpr std::string_view checkpoint_prefix = "checkpoint-";
inline constexpr std::string_view staging_prefix = ".tmp-";
inline constexpr std::string_view trash_prefix = ".trash-";

SUPEROFFLOAD_INLINE std::uint64_t aligned(std::uint64_t offset) {
  return (offset + blob_alignment - 1) / blob_alignment * blob_alignment;
}

SUPEROFFLOAD_INLINE std::uint64_t chunks_in(std::uint64_t bytes) {
  return bytes / checkpoint_chunk_bytes + (bytes % checkpoint_chunk_bytes != 0 ? 1 : 0);
}

/// The size of chunk `number` of a blob of `bytes` bytes.
SUPEROFFLOAD_INLINE std::uint64_t chunk_bytes(std::uint64_t bytes, std::uint64_t number) {
  return std::min(checkpoint_chunk_bytes, bytes - number * checkpoint_chunk_bytes);
}

SUPEROFFLOAD_INLINE std::string rank_file_name(std::size_t rank) {
  auto const digits = std::to_string(rank);
  return concat("rank-", std::string(digits.size() < 5 ? 5 - digits.size() : 0, '0'), digits, ".bin");
}

/// The step in "checkpoint-<step>"; nothing for any other name.
SUPEROFFLOAD_INLINE std::optional<std::int64_t> step_in(std::string_view name) {
  if (!name.starts_with(checkpoint_prefix)) {
    return std::nullopt;
  }
  name.remove_prefix(checkpoint_prefix.size());
  std::int64_t step = 0;
  auto const [end, failure] = std::from_chars(name.data(), name.data() + name.size(), step);
  bool const canonical = !name.empty() && name.front() != '-' && (name.front() != '0' || name.size() == 1);
  return canonical && failure == std::errc{} && end == name.data() + name.size() ? std::optional{step}
                                                                                 : std::nullopt;
}

SUPEROFFLOAD_INLINE fs::path checkpoint_path(fs::path const& root, std::int64_t step) {
  return root / concat(checkpoint_prefix, step);
}

SUPEROFFLOAD_INLINE std::string quoted(std::string_view text, std::string_view what) {
  try {
    return json(text).dump();
  } catch (json::type_error const&) { fail(exit_code::internal, what, " of a checkpoint: expected UTF-8"); }
}

SUPEROFFLOAD_INLINE void append_hex(std::string& text, std::uint32_t number) {
  for (int shift = 28; shift >= 0; shift -= 4) { text += "0123456789abcdef"[(number >> shift) & 15U]; }
}

/// Where the chunks of a blob of `bytes` bytes are in a file, from `position` on, which becomes their end.
SUPEROFFLOAD_INLINE std::vector<placed_chunk> parse_chunks(json_field const& entry, std::uint64_t bytes,
                                                           std::uint64_t& position) {
  auto const count = chunks_in(bytes);
  auto const checksums = entry["crc32c"];
  auto const& digits = checksums.text();
  expect(digits.size() / 8 == count && digits.size() % 8 == 0, exit_code::bad_input, checksums.where(), ": ",
         digits.size(), " digits, expected 8 for each of ", count, " chunks");
  auto const kept = entry.has("kept") ? entry["kept"].text() : std::string(count, '4');
  expect(kept.size() == count && kept.find_first_not_of("0234") == kept.npos, exit_code::bad_input,
         entry.where(), ".kept: expected 0, 2, 3 or 4 for each of ", count, " chunks");
  std::vector<placed_chunk> chunks(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto const* const text = digits.data() + 8 * i;
    auto const [end, failure] = std::from_chars(text, text + 8, chunks[i].checksum, 16);
    expect(failure == std::errc{} && end == text + 8, exit_code::bad_input, checksums.where(), ": checksum ",
           i, ": expected 8 hexadecimal digits");
    chunks[i].begin = position;
    chunks[i].kept = kept[i] - '0';
    auto const whole = chunk_bytes(bytes, i);
    expect(chunks[i].kept == 4 || whole % 4 == 0, exit_code::bad_input, entry.where(), ".kept: ", kept[i],
           " for a chunk of ", whole, " bytes, expected 4");
    position += narrow_bytes(whole, chunks[i].kept);
  }
  return chunks;
}

/// The first bytes of `piece`, whole chunks of a blob, become what is kept of them. \returns their number.
SUPEROFFLOAD_INLINE std::size_t narrow_chunks(std::span<std::byte> piece, std::vector<std::byte>& memory,
                                              std::string& checksums, std::string& kept) {
  memory.resize(checkpoint_chunk_bytes);
  std::size_t bytes = 0;
  for (auto rest = piece; !rest.empty();) {
    auto const chunk = rest.first(std::min<std::size_t>(checkpoint_chunk_bytes, rest.size()));
    rest = rest.subspan(chunk.size());
    int const of_word = kept_bytes_of_words(chunk);
    auto narrow = std::span{memory}.first(narrow_bytes(chunk.size(), of_word));
    if (of_word < 4 || bytes < static_cast<std::size_t>(chunk.data() - piece.data())) {
      narrow_words(chunk, of_word, narrow);
      std::ranges::copy(narrow, piece.begin() + static_cast<std::ptrdiff_t>(bytes));
    } else {
      narrow = chunk;
    }
    append_hex(checksums, crc32c(narrow));
    kept += static_cast<char>('0' + of_word);
    bytes += narrow.size();
  }
  return bytes;
}

/// Writes the blobs to a new file. \returns its entry for the manifest.
SUPEROFFLOAD_INLINE std::string write_blobs(fs::path const& path, std::span<blob const> blobs,
                                            std::string_view host) {
  std::set<std::string_view> names;
  for (auto const& entry : blobs) {
    expect(names.insert(entry.name).second && entry.name.size() <= blob_name_bytes, exit_code::internal,
           shown(path), ": blob '", printable(entry.name), "': expected a name of its own of at most ",
           blob_name_bytes, " bytes");
  }
  write_behind output{file::create_new(path)};
  std::uint64_t end = 0;
  std::vector<std::byte> memory;
  std::string entries;
  for (auto const& entry : blobs) {
    auto begin = aligned(end);
    std::string checksums, kept;
    for (std::uint64_t done = 0; done < entry.bytes;) {
      auto const piece =
          output.next(begin, std::min<std::uint64_t>(write_behind::buffer_bytes, entry.bytes - done));
      entry.read(done, piece);
      auto const bytes = narrow_chunks(piece, memory, checksums, kept);
      output.commit(bytes);
      done += piece.size();
      begin += bytes;
      end = bytes > 0 ? begin : end;
    }
    entries +=
        concat(entries.empty() ? "" : ",\n  ", R"({"name":)", quoted(entry.name, "name of a blob"),
               R"(,"bytes":)", entry.bytes, R"(,"kept":")", kept, R"(","crc32c":")", checksums, R"("})");
  }
  output.finish();
  return concat(R"({"name":)", json(path.filename().native()).dump(),
                host.empty() ? std::string{} : concat(R"(,"host":)", quoted(host, "host")), R"(,"bytes":)",
                end, ",\"blobs\":[\n  ", entries, "]}");
}

/// The document of a manifest with a correct digest, which it has as "sha256". Its fields are not checked.
SUPEROFFLOAD_INLINE json read_manifest(fs::path const& path) {
  auto const origin = shown(path);
  auto const text = read_file(path, manifest_limits.bytes);
  std::string_view rest = text;
  expect(rest.starts_with(before_digest) && rest.size() > before_digest.size() + digest_characters,
         exit_code::bad_input, origin, ": expected the manifest of a training checkpoint, starting with ",
         before_digest);
  auto const digest = rest.substr(before_digest.size(), digest_characters);
  rest.remove_prefix(before_digest.size() + digest_characters);
  expect(sha256_hex(std::as_bytes(std::span{rest})) == digest, exit_code::bad_input, origin,
         ": sha256: the content is not what was saved; use another checkpoint");
  return parse_json(text, origin, manifest_limits);
}

/// The run of a checkpoint; checkpoints of earlier versions name none.
SUPEROFFLOAD_INLINE std::string run_in(json_field const& manifest) {
  return manifest.has("run") ? manifest["run"].text() : std::string{};
}

/// The run that saved a checkpoint; none when its manifest is not valid.
SUPEROFFLOAD_INLINE std::optional<std::string> run_of(fs::path const& directory) {
  auto const path = directory / manifest_name;
  try {
    auto const document = read_manifest(path);
    return run_in(json_field{document, shown(path)}["manifest"]);
  } catch (error const& e) {
    if (e.code() != exit_code::bad_input) {
      throw;
    }
    return std::nullopt;
  }
}

SUPEROFFLOAD_INLINE bool is_of_a_checkpoint(std::string_view name) {
  return name == manifest_name || (name.starts_with("rank-") && name.ends_with(".bin"));
}

/// Renames checkpoints, then removes them: a kill leaves no checkpoint in part.
SUPEROFFLOAD_INLINE void remove_whole(fs::path const& root, std::span<std::int64_t const> steps) {
  std::vector<fs::path> trash;
  for (auto const old : steps) {
    trash.push_back(root / concat(trash_prefix, old, "-", random_suffix()));
    rename_path(checkpoint_path(root, old), trash.back());
  }
  sync_directory(root);
  for (auto const& path : trash) { remove_tree(path); }
}

SUPEROFFLOAD_INLINE void remove_leftovers(fs::path const& root) {
  for (auto const& name : list_directory(root)) {
    for (auto const prefix : {staging_prefix, trash_prefix}) {
      auto const dash = name.rfind('-');
      if (name.starts_with(prefix) && dash >= prefix.size() && dash != name.npos &&
          is_suffixed(name, name.substr(0, dash + 1))) {
        remove_tree(root / name);
      }
    }
    static constexpr std::string_view ending = ".replaced";
    if (name.starts_with('.') && name.ends_with(ending)) {
      auto const replaced = name.substr(1, name.size() - 1 - ending.size());
      if (step_in(replaced)) {
        restore_replaced(root / replaced);
      }
    }
  }
}

/// Opens the file of a rank, and checks its size.
SUPEROFFLOAD_INLINE std::optional<file> open_rank_file(fs::path const& path, std::uint64_t bytes,
                                                       bool may_be_absent) {
  std::error_code failure;
  if (may_be_absent && !fs::exists(fs::symlink_status(path, failure))) {
    return std::nullopt;
  }
  auto data = file::open_read(path);
  expect(data.size() == bytes, exit_code::bad_input, shown(path), ": ", data.size(), " bytes, expected ",
         bytes, " as the manifest says; use another checkpoint");
  return data;
}

/// Removes all checkpoints of the run but `keep_last`; the one of `step` is always kept.
SUPEROFFLOAD_INLINE void retire(fs::path const& root, std::int64_t step, std::string const& run,
                                int keep_last) {
  auto steps = checkpoint_steps(root);
  if (steps.size() <= static_cast<std::size_t>(keep_last)) {
    return;
  }
  std::erase_if(steps,
                [&](auto other) { return other != step && run_of(checkpoint_path(root, other)) != run; });
  // In the order of removal: abandoned later steps first, then the oldest, never this one.
  std::stable_partition(steps.begin(), steps.end(), [&](auto other) { return other > step; });
  std::erase(steps, step);
  auto const kept = static_cast<std::size_t>(keep_last - 1);
  if (steps.size() <= kept) {
    return;
  }
  steps.resize(steps.size() - kept);
  remove_whole(root, steps);
}

}  // namespace detail

SUPEROFFLOAD_INLINE checkpoint_draft::checkpoint_draft(std::filesystem::path root, std::int64_t step,
                                                       std::string run)
    : root_{std::move(root)}, step_{step}, run_{std::move(run)}, staged_{[&] {
        expect(step >= 0, exit_code::internal, shown(root_), ": expected a step from 0 on");
        make_directories(root_);
        detail::remove_leftovers(root_);
        return root_ / concat(detail::staging_prefix, step, "-", random_suffix());
      }()} {}

SUPEROFFLOAD_INLINE void checkpoint_draft::write_manifest(std::string const& state_json,
                                                          std::span<std::string const> parts) {
  std::string files;
  for (auto const& part : parts) { files += concat(files.empty() ? "" : ",\n ", part); }
  auto const content =
      concat(detail::after_digest, R"({"format":")", detail::format_name, R"(","version":)",
             detail::format_version, R"(,"step":)", step_, R"(,"world_size":)", parts.size(),
             R"(,"chunk_bytes":)", checkpoint_chunk_bytes, R"(,"run":)", detail::quoted(run_, "run"),
             ",\n \"state\":", detail::quoted(state_json, "state"), ",\n \"files\":[", files, "]}}\n");
  auto const digest = sha256_hex(std::as_bytes(std::span{content}));
  auto const whole = concat(detail::before_digest, digest, content);
  parse_json(whole, shown(root_ / detail::manifest_name),
             detail::manifest_limits);  // a saved checkpoint must be readable
  write_new_file(directory() / detail::manifest_name, whole);
  sync_directory(directory());
}

SUPEROFFLOAD_INLINE void checkpoint_draft::commit() {
  replace_directory(directory(), detail::checkpoint_path(root_, step_));
}

SUPEROFFLOAD_INLINE void checkpoint_draft::retire(int keep_last) {
  expect(keep_last >= 0, exit_code::internal, shown(root_), ": expected a number of checkpoints from 0 on");
  if (keep_last > 0) {
    detail::retire(root_, step_, run_, keep_last);
  }
}

SUPEROFFLOAD_INLINE void checkpoint_draft::finish(std::string const& state_json,
                                                  std::span<std::string const> parts, int keep_last) {
  write_manifest(state_json, parts);
  commit();
  retire(keep_last);
}

SUPEROFFLOAD_INLINE std::string write_checkpoint_part(std::filesystem::path const& directory, int rank,
                                                      std::span<blob const> blobs, std::string_view host) {
  expect(blobs.size() <= detail::most_blobs, exit_code::internal, shown(directory), ": expected at most ",
         detail::most_blobs, " blobs");
  return detail::write_blobs(directory / detail::rank_file_name(static_cast<std::size_t>(rank)), blobs, host);
}

SUPEROFFLOAD_INLINE void save_checkpoint(std::filesystem::path const& root, std::int64_t step,
                                         std::string const& state_json, std::span<blob const> blobs,
                                         int keep_last, std::string run) {
  checkpoint_draft draft{root, step, std::move(run)};
  std::string const part = write_checkpoint_part(draft.directory(), 0, blobs);
  draft.finish(state_json, {&part, 1}, keep_last);
}

SUPEROFFLOAD_INLINE std::vector<std::int64_t> checkpoint_steps(std::filesystem::path const& root) {
  std::vector<std::int64_t> steps;
  for (auto const& name : list_directory(root)) {
    if (auto const step = detail::step_in(name)) {
      steps.push_back(*step);
    }
  }
  std::ranges::sort(steps);
  return steps;
}

SUPEROFFLOAD_INLINE std::vector<found_checkpoint> checkpoints_in(std::filesystem::path const& root) {
  std::vector<found_checkpoint> found;
  for (auto const step : checkpoint_steps(root)) {
    auto const directory = detail::checkpoint_path(root, step);
    found.push_back({step, directory, detail::run_of(directory)});
  }
  return found;
}

SUPEROFFLOAD_INLINE void remove_checkpoints(std::span<found_checkpoint const> checkpoints) {
  for (auto const& checkpoint : checkpoints) {
    std::error_code failure;
    expect(std::filesystem::is_directory(std::filesystem::symlink_status(checkpoint.directory, failure)),
           exit_code::bad_input, shown(checkpoint.directory),
           ": is no training checkpoint, so it is not removed; move it away");
    for (auto const& name : list_directory(checkpoint.directory)) {
      expect(detail::is_of_a_checkpoint(name), exit_code::bad_input, shown(checkpoint.directory / name),
             ": is nothing that a training checkpoint has, so it is not removed; move it away");
    }
  }
  for (auto const& checkpoint : checkpoints) {
    detail::remove_whole(checkpoint.directory.parent_path(), {&checkpoint.step, 1});
  }
}

SUPEROFFLOAD_INLINE checkpoint_reader checkpoint_reader::open(std::filesystem::path const& directory) {
  auto const path = directory / detail::manifest_name;
  auto const origin = shown(path);
  auto const document = detail::read_manifest(path);
  json_field const root{document, origin};
  auto const manifest = root["manifest"];

  expect(manifest["format"].text() == detail::format_name, exit_code::bad_input, manifest["format"].where(),
         ": expected '", detail::format_name, "', found ", manifest["format"].shown());
  auto const version = manifest["version"].integer(0, INT64_MAX);
  expect(1 <= version && version <= detail::format_version, exit_code::bad_input, manifest["version"].where(),
         ": ", version, ", expected 1 to ", detail::format_version, ": this program is of another version");
  expect(manifest["chunk_bytes"].integer(0, INT64_MAX) == std::int64_t{checkpoint_chunk_bytes},
         exit_code::bad_input, manifest["chunk_bytes"].where(), ": expected ", checkpoint_chunk_bytes);

  checkpoint_reader opened;
  opened.directory_ = directory;
  opened.digest_ = root["sha256"].text();
  opened.step_ = manifest["step"].integer(0, INT64_MAX);
  opened.run_ = detail::run_in(manifest);
  opened.state_json_ = manifest["state"].text();
  auto const ranks = static_cast<std::size_t>(manifest["world_size"].integer(1, detail::most_ranks));
  auto const files = manifest["files"];
  files.require_array();
  expect(files.raw().size() == ranks, exit_code::bad_input, files.where(), ": ", files.raw().size(),
         " files, expected one for each of ", ranks, " ranks");
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    auto const entry = files[rank];
    expect(entry["name"].text() == detail::rank_file_name(rank), exit_code::bad_input, entry["name"].where(),
           ": expected '", detail::rank_file_name(rank), "', found ", entry["name"].shown());
    std::map<std::string, placed_blob, std::less<>> blobs;
    auto const list = entry["blobs"];
    list.require_array();
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < list.raw().size(); ++i) {
      auto const name = list[i]["name"].text();
      expect(name.size() <= detail::blob_name_bytes, exit_code::bad_input, list[i]["name"].where(), ": ",
             name.size(), " bytes, expected at most ", detail::blob_name_bytes);
      // 2^48: sums of that many cannot overflow.
      auto const bytes = static_cast<std::uint64_t>(list[i]["bytes"].integer(0, std::int64_t{1} << 48));
      auto const begin = detail::aligned(end);
      auto blob_end = begin;
      auto chunks = detail::parse_chunks(list[i], bytes, blob_end);
      end = blob_end > begin || version == 1 ? blob_end : end;
      expect(blobs.try_emplace(name, placed_blob{bytes, blob_end, std::move(chunks)}).second,
             exit_code::bad_input, list[i]["name"].where(), ": ", list[i]["name"].shown(),
             " appears twice; expected each name once");
    }
    auto const stated = static_cast<std::uint64_t>(entry["bytes"].integer(0, INT64_MAX));
    expect(stated == end, exit_code::bad_input, entry["bytes"].where(), ": ", stated, ", expected ", end,
           " as the blobs say");
    auto host = entry.has("host") ? entry["host"].text() : std::string{};
    auto data = detail::open_rank_file(directory / detail::rank_file_name(rank), end, !host.empty());
    opened.files_.push_back({std::move(data), std::move(host), std::move(blobs)});
  }
  return opened;
}

SUPEROFFLOAD_INLINE bool checkpoint_reader::is_here(int rank) const {
  return files_.at(static_cast<std::size_t>(rank)).data.has_value();
}

SUPEROFFLOAD_INLINE file const& checkpoint_reader::data_of(int rank) const {
  auto const number = static_cast<std::size_t>(rank);
  auto const& found = files_.at(number);
  expect(found.data.has_value(), exit_code::bad_input, shown(directory_ / detail::rank_file_name(number)),
         ": is not here, but where it was saved, on host '", printable(found.host, 64),
         "'; copy the rank-*.bin of all hosts into one directory, or start as many ranks on the same hosts");
  return *found.data;
}

SUPEROFFLOAD_INLINE std::vector<std::string> checkpoint_reader::names(int rank) const {
  std::vector<std::string> sorted;
  for (auto const& [name, placed] : files_.at(static_cast<std::size_t>(rank)).blobs) {
    sorted.push_back(name);
  }
  return sorted;
}

SUPEROFFLOAD_INLINE bool checkpoint_reader::has(std::string_view name, int rank) const {
  return files_.at(static_cast<std::size_t>(rank)).blobs.contains(name);
}

SUPEROFFLOAD_INLINE std::uint64_t checkpoint_reader::blob_bytes(std::string_view name, int rank) const {
  return at(name, rank).bytes;
}

SUPEROFFLOAD_INLINE checkpoint_reader::placed_blob const& checkpoint_reader::at(std::string_view name,
                                                                                int rank) const {
  auto const& blobs = files_.at(static_cast<std::size_t>(rank)).blobs;
  auto const found = blobs.find(name);
  expect(found != blobs.end(), exit_code::bad_input, shown(directory_ / detail::manifest_name), ": blob '",
         printable(name), "' is missing; it was not saved by this kind of run");
  return found->second;
}

SUPEROFFLOAD_INLINE void checkpoint_reader::read(std::string_view name, std::uint64_t offset,
                                                 std::span<std::byte> out, int rank) const {
  auto const& placed = at(name, rank);
  auto const& data = data_of(rank);
  expect(offset <= placed.bytes && out.size() <= placed.bytes - offset, exit_code::internal,
         shown(data.path()), ": bytes beyond the end of blob '", printable(name), "' were asked for");
  std::vector<std::byte> stored, whole;
  while (!out.empty()) {
    auto const number = offset / checkpoint_chunk_bytes;
    auto const& place = placed.chunks[number];
    auto const begin = number * checkpoint_chunk_bytes;
    auto const bytes = detail::chunk_bytes(placed.bytes, number);
    auto const skipped = offset - begin;
    auto const wanted = std::min<std::uint64_t>(out.size(), bytes - skipped);
    auto chunk = out.first(wanted);
    if (wanted < bytes) {
      whole.resize(bytes);
      chunk = whole;
    }
    auto narrow = chunk;
    if (place.kept < 4) {
      stored.resize(narrow_bytes(bytes, place.kept));
      narrow = stored;
    }
    data.pread_exact(place.begin, narrow);
    expect(crc32c(narrow) == place.checksum, exit_code::bad_input, shown(data.path()), ": blob '",
           printable(name), "', bytes ", begin, " to ", begin + bytes,
           ": the checksum is not that of what was saved; use another checkpoint");
    if (place.kept < 4) {
      widen_words(narrow, place.kept, chunk);
    }
    if (wanted < bytes) {
      std::ranges::copy(chunk.subspan(skipped, wanted), out.begin());
    }
    out = out.subspan(wanted);
    offset += wanted;
  }
  if (offset == placed.bytes) {
    expect_zeros(data, placed.end, name);
  }
}

/// The bytes between the blob that ends at `end` and the next one have no checksum, but are always 0.
SUPEROFFLOAD_INLINE void checkpoint_reader::expect_zeros(file const& data, std::uint64_t end,
                                                         std::string_view name) {
  std::array<std::byte, detail::blob_alignment> memory;
  auto const padding = std::span{memory}.first(std::clamp(data.size(), end, detail::aligned(end)) - end);
  data.pread_exact(end, padding);
  expect(std::ranges::all_of(padding, [](std::byte b) { return b == std::byte{0}; }), exit_code::bad_input,
         shown(data.path()), ": the bytes behind blob '", printable(name),
         "' are not those that were saved; use another checkpoint");
}

SUPEROFFLOAD_INLINE std::uint64_t checkpoint_reader::whole_bytes(std::string_view name) const {
  std::uint64_t bytes = 0;
  bool found = false;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (has(name, rank)) {
      found = true;
      bytes += blob_bytes(name, rank);
    }
  }
  return found ? bytes : blob_bytes(name);  // it reports that the blob is missing
}

SUPEROFFLOAD_INLINE void checkpoint_reader::read_whole(std::string_view name, std::uint64_t offset,
                                                       std::span<std::byte> out) const {
  auto const bytes = whole_bytes(name);
  expect(offset <= bytes && out.size() <= bytes - offset, exit_code::internal, shown(directory_),
         ": bytes beyond the end of '", printable(name), "' were asked for");
  for (int rank = 0; rank < world_size() && !out.empty(); ++rank) {
    auto const here = has(name, rank) ? blob_bytes(name, rank) : 0;
    if (offset >= here) {
      offset -= here;
      continue;
    }
    auto const part = out.first(std::min<std::uint64_t>(out.size(), here - offset));
    read(name, offset, part, rank);
    out = out.subspan(part.size());
    offset = 0;
  }
}

SUPEROFFLOAD_INLINE void checkpoint_reader::verify() const {
  std::vector<std::byte> buffer(checkpoint_chunk_bytes);
  for (int rank = 0; rank < world_size(); ++rank) {
    for (auto const& [name, placed] : files_[static_cast<std::size_t>(rank)].blobs) {
      for (std::uint64_t done = 0; done < placed.bytes;) {
        auto const chunk = std::span{buffer}.first(std::min(checkpoint_chunk_bytes, placed.bytes - done));
        read(name, done, chunk, rank);
        done += chunk.size();
      }
    }
  }
}

SUPEROFFLOAD_INLINE checkpoint_reader open_checkpoint(std::filesystem::path const& root, std::int64_t step) {
  auto const path = detail::checkpoint_path(root, step);
  auto reader = checkpoint_reader::open(path);
  expect(reader.step() == step, exit_code::bad_input, shown(path / detail::manifest_name),
         ": manifest.step: ", reader.step(), ", expected ", step, " as the directory's name says");
  return reader;
}

SUPEROFFLOAD_INLINE std::optional<checkpoint_reader> newest_checkpoint(
    std::span<std::int64_t const> steps, std::function<checkpoint_reader(std::int64_t step)> const& open,
    std::function<void(std::string const& reason)> const& on_rejected,
    std::function<void(checkpoint_reader const&)> const& take) {
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    try {
      auto reader = open(*step);
      take(reader);
      return reader;
    } catch (error const& reason) {
      if (reason.code() != exit_code::bad_input) {
        throw;  // an unreadable checkpoint may be intact
      }
      on_rejected(reason.what());
    }
  }
  return std::nullopt;
}

SUPEROFFLOAD_INLINE std::optional<checkpoint_reader> newest_checkpoint(
    std::filesystem::path const& root, std::function<void(std::string const& reason)> const& on_rejected,
    std::function<void(checkpoint_reader const&)> const& take) {
  return newest_checkpoint(
      checkpoint_steps(root), [&](std::int64_t step) { return open_checkpoint(root, step); }, on_rejected,
      take);
}

}  // namespace superoffload::io
