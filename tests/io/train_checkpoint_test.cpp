// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/checksum.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/io/write_behind.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "faults.hpp"
#include "scratch_directory.hpp"
#include "support/fault_case.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

namespace fs = std::filesystem;
using names = std::vector<std::string>;

/// Byte `offset` of the state for `seed`.
std::byte state_byte(std::uint64_t seed, std::uint64_t offset) {
  return static_cast<std::byte>((offset * 0x9E3779B97F4A7C15U + seed * 0xD1B54A32D192ED03U) >> 56);
}

std::vector<std::byte> state_of(std::uint64_t seed, std::uint64_t bytes) {
  std::vector<std::byte> state(bytes);
  for (std::size_t i = 0; i < state.size(); ++i) { state[i] = state_byte(seed, i); }
  return state;
}

/// Small state, so that a test can save it hundreds of times.
constexpr std::uint64_t small_bytes = 5000;

void save(fs::path const& root, std::int64_t step, std::uint64_t seed, int keep_last = 0) {
  auto const state = state_of(seed, small_bytes);
  auto const reading = [&](std::uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), state.data() + offset, out.size());
  };
  std::vector<blob> const blobs{{"master", small_bytes, reading}, {"moments", small_bytes / 2, reading}};
  save_checkpoint(root, step, concat(R"({"seed":)", seed, "}"), blobs, keep_last);
}

/// Checks every byte. \returns the seed with which it was saved.
std::uint64_t seed_of(checkpoint_reader const& reader) {
  auto const& text = reader.state_json();
  REQUIRE(text.starts_with(R"({"seed":)"));
  auto const seed = std::stoull(text.substr(8));
  REQUIRE(reader.blob_bytes("master") == small_bytes);
  REQUIRE(reader.blob_bytes("moments") == small_bytes / 2);
  std::vector<std::byte> content(small_bytes);
  reader.read("master", 0, content);
  CHECK(content == state_of(seed, small_bytes));
  content.resize(small_bytes / 2);
  reader.read("moments", 0, content);
  CHECK(content == state_of(seed, small_bytes / 2));
  return seed;
}

/// The newest checkpoint, which must exist without any being rejected.
checkpoint_reader newest(fs::path const& root) {
  auto found = newest_checkpoint(root, [](std::string const& reason) { FAIL_CHECK(reason); });
  REQUIRE(found.has_value());
  return std::move(*found);
}

void run_and_exit_at(long operation, bool no_exchange, auto const& action) {
  auto const child = ::fork();
  if (child == 0) {
    injection const dies{{.at = operation, .exits = true, .no_exchange = no_exchange}};
    action();
    ::_exit(1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

/// The reasons for which operation `at` fails.
std::vector<int> reasons_at(long at) {
  return test::long_tests() ? std::vector{EIO, ENOSPC, EDQUOT, EACCES, EROFS, ENOMEM}
                            : std::vector{at % 2 == 0 ? ENOSPC : EIO};
}

void flip_bit(fs::path const& path, std::uint64_t offset) {
  std::fstream stream{path, std::ios::in | std::ios::out | std::ios::binary};
  stream.seekg(static_cast<std::streamoff>(offset));
  auto const byte = stream.get();
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.put(static_cast<char>(byte ^ 1));
}

}  // namespace

TEST_CASE("a checkpoint returns the state and every byte") {
  scratch_directory const directory;
  // More than one chunk, an empty blob, and sizes that are multiples of nothing.
  std::vector<std::pair<std::string, std::uint64_t>> const sizes{
      {"m/unit.0", 3 * checkpoint_chunk_bytes + 4097},
      {"empty", 0},
      {"v \"\xC3\xBC\n", 1},
      {"w", checkpoint_chunk_bytes}};
  std::vector<blob> blobs;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    blobs.push_back({sizes[i].first, sizes[i].second, [i](std::uint64_t offset, std::span<std::byte> out) {
                       CHECK(out.size() <= write_behind::buffer_bytes);
                       for (std::size_t k = 0; k < out.size(); ++k) { out[k] = state_byte(i, offset + k); }
                     }});
  }
  std::string const state = "{ \"step\" : 12,\n \"text\": \"\\u00fc,,,\" }";
  save_checkpoint(directory / "deep/out", 12, state, blobs);
  CHECK(list_directory(directory / "deep/out") == names{"checkpoint-12"});

  auto const reader = checkpoint_reader::open(directory / "deep/out/checkpoint-12");
  CHECK(reader.step() == 12);
  CHECK(reader.world_size() == 1);
  CHECK(reader.state_json() == state);
  CHECK(reader.names() == names{"empty", "m/unit.0", "v \"\xC3\xBC\n", "w"});
  CHECK(reader.has("empty"));
  CHECK(!reader.has("x"));
  reader.verify();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    REQUIRE(reader.blob_bytes(sizes[i].first) == sizes[i].second);
    std::vector<std::byte> content(sizes[i].second);
    reader.read(sizes[i].first, 0, content);
    CHECK(content == state_of(i, sizes[i].second));
  }
  auto const whole = state_of(0, sizes[0].second);
  for (std::uint64_t const offset :
       {std::uint64_t{0}, std::uint64_t{1}, checkpoint_chunk_bytes - 1, checkpoint_chunk_bytes,
        3 * checkpoint_chunk_bytes, sizes[0].second - 1}) {
    for (std::uint64_t size :
         {std::uint64_t{1}, std::uint64_t{100}, checkpoint_chunk_bytes, checkpoint_chunk_bytes + 2}) {
      size = std::min(size, sizes[0].second - offset);
      std::vector<std::byte> part(size);
      reader.read("m/unit.0", offset, part);
      CHECK(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)));
    }
  }
  std::vector<std::byte> two(2);
  check_failure(failure_of([&] { reader.read("w", checkpoint_chunk_bytes - 1, two); }), exit_code::internal,
                "beyond");
  check_failure(failure_of([&] { reader.read("x", 0, two); }), exit_code::bad_input, "manifest.json",
                "'x' is missing");
}

TEST_CASE("parts that ranks have written are read as one, for any sizes") {
  scratch_directory const root;
  auto const state = state_of(7, 10'000);
  std::vector<std::uint64_t> const ends{4096, 4096, 9000, 10'000};  // of each rank's part; one is empty
  {
    checkpoint_draft draft{root.path(), 5};
    std::vector<std::string> parts;
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      auto const begin = rank == 0 ? 0 : ends[rank - 1];
      std::vector<blob> blobs{{"state", ends[rank] - begin, [&, begin](auto offset, auto out) {
                                 std::memcpy(out.data(), state.data() + begin + offset, out.size());
                               }}};
      if (rank == 2) {
        blobs.push_back({"its own", 1, [](auto, auto out) { out[0] = std::byte{42}; }});
      }
      parts.push_back(write_checkpoint_part(draft.directory(), static_cast<int>(rank), blobs));
    }
    CHECK_FALSE(fs::exists(root.path() / "checkpoint-5"));
    draft.finish("{}", parts);
  }
  auto const reader = checkpoint_reader::open(root.path() / "checkpoint-5");
  reader.verify();
  CHECK(reader.world_size() == 4);
  CHECK(reader.whole_bytes("state") == state.size());
  CHECK(reader.whole_bytes("its own") == 1);
  CHECK_THROWS_AS((void)reader.whole_bytes("nothing"), error);
  for (std::uint64_t const first : {0, 4000, 4096, 8999, 9999, 10'000}) {
    CAPTURE(first);
    std::vector<std::byte> some(std::min<std::uint64_t>(3000, state.size() - first));
    reader.read_whole("state", first, some);
    CHECK(std::equal(some.begin(), some.end(), state.begin() + static_cast<std::ptrdiff_t>(first)));
  }
  std::vector<std::byte> beyond(2);
  CHECK_THROWS_AS(reader.read_whole("state", state.size() - 1, beyond), error);
}

TEST_CASE("chunks keep the bytes of their words that are not zero, each for itself") {
  scratch_directory const root;
  // Chunks of full precision, of 24 bits, of 16 and of zeros, and a part of one.
  std::uint32_t const masks[] = {0xFFFFFFFF, 0xFFFFFF00, 0xFFFF0000, 0, 0xFFFF0000};
  constexpr std::uint64_t part = 4000;
  std::vector<std::byte> state(4 * checkpoint_chunk_bytes + part);
  for (std::size_t i = 0; i < state.size(); i += 4) {
    auto const word = static_cast<std::uint32_t>(0x9E3779B9U * (i + 1)) & masks[i / checkpoint_chunk_bytes];
    std::memcpy(state.data() + i, &word, sizeof word);
  }
  auto const reading = [&](std::uint64_t offset, std::span<std::byte> out) {
    std::memcpy(out.data(), state.data() + offset, out.size());
  };
  auto const zeros = [](auto, auto out) { std::ranges::fill(out, std::byte{0}); };
  std::vector<blob> const blobs{
      {"nothing", 3 * checkpoint_chunk_bytes, zeros}, {"state", state.size(), reading}, {"empty", 8, zeros}};
  save_checkpoint(root.path(), 1, "{}", blobs);
  auto const kept = checkpoint_chunk_bytes / 4 * (4 + 3 + 2) + part / 4 * 2;
  CHECK(fs::file_size(root / "checkpoint-1/rank-00000.bin") == kept);

  auto const reader = newest(root.path());
  for (std::uint64_t const offset :
       {std::uint64_t{0}, checkpoint_chunk_bytes - 3, 2 * checkpoint_chunk_bytes + 5, state.size() - 4001}) {
    CAPTURE(offset);
    std::vector<std::byte> some(
        std::min<std::uint64_t>(2 * checkpoint_chunk_bytes + 1, state.size() - offset));
    reader.read("state", offset, some);
    CHECK(std::equal(some.begin(), some.end(), state.begin() + static_cast<std::ptrdiff_t>(offset)));
  }
  std::vector<std::byte> all(3 * checkpoint_chunk_bytes, std::byte{1});
  reader.read("nothing", 0, all);
  CHECK(std::ranges::count(all, std::byte{0}) == std::ssize(all));
  flip_bit(root / "checkpoint-1/rank-00000.bin", kept - 1);
  check_failure(failure_of([&] { reader.verify(); }), exit_code::bad_input, "rank-00000.bin", "'state'");
}

TEST_CASE("checkpoints of version 1, which keep all bytes, are read") {
  scratch_directory const root;
  auto const directory = root / "checkpoint-7";
  fs::create_directories(directory);
  write_text(directory / "rank-00000.bin", std::string("abcdefgh") + std::string(4088, '\0'));
  std::array<char, 9> crc{};
  std::snprintf(crc.data(), crc.size(), "%08x",
                crc32c(std::as_bytes(std::span{std::string_view{"abcdefgh"}})));
  auto const content = concat(
      "\",\n\"manifest\":", R"({"format":"superoffload checkpoint","version":1,"step":7,"world_size":1,)",
      R"("chunk_bytes":1048576,"state":"{}","files":[{"name":"rank-00000.bin","bytes":4096,"blobs":[)",
      R"({"name":"a","bytes":8,"crc32c":")", crc.data(),
      R"("},{"name":"of another rank","bytes":0,"crc32c":""}]}]}})", "\n");
  write_text(directory / "manifest.json",
             concat("{\"sha256\":\"", sha256_hex(std::as_bytes(std::span{content})), content));
  auto const reader = newest(root.path());
  std::array<std::byte, 8> read{};
  reader.read("a", 0, read);
  CHECK(read[7] == std::byte{'h'});
}

/// Saves checkpoint-<step> of two hosts with two ranks each, in roots of their own. Four bytes of rank r are
/// r + 1.
void save_on_two_hosts(std::vector<fs::path> const& roots, std::int64_t step) {
  std::vector<std::unique_ptr<checkpoint_draft>> drafts;
  for (auto const& root : roots) { drafts.push_back(std::make_unique<checkpoint_draft>(root, step, "run")); }
  std::vector<std::string> parts;
  for (int rank = 0; rank < 4; ++rank) {
    auto const host = static_cast<std::size_t>(rank / 2);
    blob const state{"state", 4,
                     [rank](auto, auto out) { std::ranges::fill(out, static_cast<std::byte>(rank + 1)); }};
    parts.push_back(
        write_checkpoint_part(drafts[host]->directory(), rank, {&state, 1}, concat("host ", host)));
  }
  for (auto const& draft : drafts) { draft->write_manifest("{}", parts); }
  for (auto const& draft : drafts) { draft->commit(); }
}

TEST_CASE(
    "each of several roots has the parts of its host, and all files together are the whole checkpoint") {
  scratch_directory const north, south, gathered;
  save_on_two_hosts({north.path(), south.path()}, 7);
  auto const reader = open_checkpoint(south.path(), 7);
  CHECK(reader.digest() == open_checkpoint(north.path(), 7).digest());
  CHECK(reader.digest().size() == 64);
  CHECK(reader.world_size() == 4);
  CHECK(reader.whole_bytes("state") == 16);
  for (int rank = 0; rank < 4; ++rank) { CHECK(reader.is_here(rank) == (rank >= 2)); }
  std::array<std::byte, 8> own{};
  reader.read_whole("state", 8, own);
  CHECK(own.front() == std::byte{3});
  CHECK(own.back() == std::byte{4});
  for (auto const& failure :
       {failure_of([&] { reader.read_whole("state", 7, own); }), failure_of([&] { reader.verify(); })}) {
    check_failure(failure, exit_code::bad_input, "rank-0000", "on host 'host 0'");
  }
  names rejected;
  CHECK_FALSE(newest_checkpoint(south.path(), [&](std::string const& why) { rejected.push_back(why); }));
  CHECK(rejected.size() == 1);
  for (auto const* const root : {&north, &south}) {
    fs::copy(*root / "checkpoint-7", gathered / "checkpoint-7",
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  auto const whole = newest(gathered.path());
  std::array<std::byte, 16> all{};
  whole.read_whole("state", 0, all);
  CHECK(all[3] == std::byte{1});
  CHECK(all[4] == std::byte{2});
  CHECK(all[15] == std::byte{4});
}

TEST_CASE("a file of another size or kind is refused, also where it may be on another host") {
  scratch_directory const north, south;
  save_on_two_hosts({north.path(), south.path()}, 7);
  auto const part = south / "checkpoint-7/rank-00000.bin";
  write_text(part, "abc");
  check_failure(failure_of([&] { open_checkpoint(south.path(), 7); }), exit_code::bad_input, "rank-00000.bin",
                "3 bytes, expected 4");
  fs::remove(part);
  fs::create_symlink("nowhere", part);
  check_failure(failure_of([&] { open_checkpoint(south.path(), 7); }), exit_code::bad_input,
                "rank-00000.bin");
}

TEST_CASE("damage to any rank's part, and parts of other ranks and steps, are detected") {
  scratch_directory const root;
  constexpr int ranks = 3;
  constexpr std::uint64_t part_bytes = 6000;
  for (std::uint64_t const step : {1, 2}) {
    checkpoint_draft draft{root.path(), static_cast<std::int64_t>(step)};
    std::vector<std::string> parts;
    for (int rank = 0; rank < ranks; ++rank) {
      auto const state = state_of(10 * step + static_cast<std::uint64_t>(rank), part_bytes);
      parts.push_back(write_checkpoint_part(
          draft.directory(), rank, std::vector<blob>{{"state", part_bytes, [&](auto offset, auto out) {
                                                        std::memcpy(out.data(), state.data() + offset,
                                                                    out.size());
                                                      }}}));
    }
    draft.finish("{}", parts);
  }
  auto const whole = root / "checkpoint-2";
  CHECK(newest(root.path()).step() == 2);
  auto const rejected_for = [&](std::string const& file) {
    test::fault_case const injected{"F7"};
    check_failure(failure_of([&] { checkpoint_reader::open(whole).verify(); }), exit_code::bad_input, file);
    int rejected = 0;
    auto const found = newest_checkpoint(
        root.path(), [&](std::string const&) { ++rejected; }, [](auto const& taken) { taken.verify(); });
    REQUIRE(found.has_value());
    CHECK(found->step() == 1);
    CHECK(rejected == 1);
  };
  auto const name_of = [](int rank) { return concat("rank-0000", rank, ".bin"); };
  for (int rank = 0; rank < ranks; ++rank) {
    CAPTURE(rank);
    auto const file = name_of(rank);
    auto const path = whole / file;
    auto const content = contents_of(path);
    for (std::uint64_t offset = 0; offset < content.size(); offset += test::in_long_tests(5, 499)) {
      CAPTURE(offset);
      flip_bit(path, offset);
      rejected_for(file);
      flip_bit(path, offset);
    }
    for (auto const& other : {whole / name_of((rank + 1) % ranks), root / "checkpoint-1" / file}) {
      fs::copy_file(other, path, fs::copy_options::overwrite_existing);
      rejected_for(file);
    }
    fs::remove(path);
    rejected_for(file);
    write_text(path, content);
  }
  CHECK(newest(root.path()).step() == 2);
}

TEST_CASE("a draft that is not finished leaves no files") {
  scratch_directory const root;
  {
    checkpoint_draft const draft{root.path(), 5};
    write_checkpoint_part(draft.directory(), 3, {});
    CHECK(!fs::is_empty(root.path()));
  }
  CHECK(fs::is_empty(root.path()));
}

TEST_CASE("rotation does not touch checkpoints of other runs, or what may be one of them") {
  scratch_directory const root;
  auto const save_of = [&](std::int64_t step, std::string const& run) {
    save_checkpoint(root.path(), step, "{}", {}, 1, run);
  };
  save_of(4, "other");
  save_of(2, "");
  write_text(root / "checkpoint-7", "a file");
  for (std::int64_t const step : {1, 3, 5}) { save_of(step, "own"); }
  CHECK(list_directory(root.path()) == names{"checkpoint-2", "checkpoint-4", "checkpoint-5", "checkpoint-7"});
  auto const found = checkpoints_in(root.path());
  REQUIRE(found.size() == 4);
  CHECK(found[0].run == "");
  CHECK(found[1].run == "other");
  CHECK(found[2].run == "own");
  CHECK_FALSE(found[3].run);
  CHECK(checkpoint_reader::open(found[2].directory).run() == "own");

  check_failure(failure_of([&] { remove_checkpoints(found); }), exit_code::bad_input, "checkpoint-7");
  write_text(root / "checkpoint-4/notes.txt", "mine");
  check_failure(failure_of([&] { remove_checkpoints({found.data(), 3}); }), exit_code::bad_input,
                "notes.txt");
  CHECK(list_directory(root.path()).size() == 4);
  remove_checkpoints({found.data(), 1});
  CHECK(list_directory(root.path()) == names{"checkpoint-4", "checkpoint-5", "checkpoint-7"});
}

TEST_CASE("the last checkpoints are kept, but none of abandoned later steps") {
  scratch_directory const root;
  for (int step = 1; step <= 4; ++step) { save(root.path(), step, 1, 3); }
  CHECK(list_directory(root.path()) == names{"checkpoint-2", "checkpoint-3", "checkpoint-4"});
  save(root.path(), 10, 1);
  CHECK(list_directory(root.path()).size() == 4);
  save(root.path(), 3, 2, 2);
  CHECK(list_directory(root.path()) == names{"checkpoint-2", "checkpoint-3"});
  CHECK(seed_of(newest(root.path())) == 2);
  save(root.path(), 3, 3, 1);
  CHECK(list_directory(root.path()) == names{"checkpoint-3"});
  CHECK(seed_of(newest(root.path())) == 3);
}

TEST_CASE("only directories that a killed save left are removed") {
  scratch_directory const root;
  auto const suffix = random_suffix();
  names const others{
      ".replaced",    ".tmp-",       ".tmp-7-short",  ".tmp-" + suffix, ".x.replaced",
      "best",         "checkpoint-", "checkpoint-07", "checkpoint--1",  "checkpoint-99999999999999999999",
      "checkpoint-5x"};
  for (auto const& name : others) { fs::create_directory(root / name); }
  for (auto const& name : {".tmp-7-" + suffix, ".trash-3-" + suffix}) {
    fs::create_directory(root / name);
    write_text(root / name / "rank-00000.bin", "x");
  }
  save(root.path(), 8, 1, 1);
  auto expected = others;
  expected.push_back("checkpoint-8");
  std::ranges::sort(expected);
  CHECK(list_directory(root.path()) == expected);
}

TEST_CASE("a save that fails at any operation names the path and loses no checkpoint") {
  for (bool const same_step : {false, true}) {
    for (bool const no_exchange : {false, true}) {
      if (no_exchange && !same_step) {
        continue;  // this operation chooses no name
      }
      for (bool const persistent : {false, true}) {
        CAPTURE(same_step);
        CAPTURE(no_exchange);
        CAPTURE(persistent);
        std::int64_t const step = same_step ? 2 : 3;
        long operations = 1;
        for (long at = 0; at < operations; ++at) {
          CAPTURE(at);
          for (int const reason : reasons_at(at)) {
            CAPTURE(reason);
            test::fault_case const injected{"F1"};
            scratch_directory const root;
            save(root.path(), 1, 1);
            save(root.path(), 2, 2);
            auto const failure = failure_of([&] {
              injection const fails{
                  {.at = at, .with = reason, .persistent = persistent, .no_exchange = no_exchange}};
              save(root.path(), step, 3, 2);
            });
            // To list a directory takes memory of the program, which is refused with this reason.
            bool const no_memory = reason == ENOMEM &&
                                   std::string_view{failure.what()}.find("listing") != std::string_view::npos;
            check_failure(failure, no_memory ? exit_code::cannot_fit : exit_code::io_failure,
                          root.path().native());
            auto const seed = seed_of(newest(root.path()));
            CHECK((seed == 3 || seed == 2 || (persistent && no_exchange && seed == 1)));
            if (!same_step) {
              CHECK(seed_of(checkpoint_reader::open(root / "checkpoint-2")) == 2);
            }
          }
          if (at == 0) {
            scratch_directory const other;
            save(other.path(), 1, 1);
            save(other.path(), 2, 2);
            injection const counts{{.no_exchange = no_exchange}};
            save(other.path(), step, 3, 2);
            operations = injection::seen();
            CHECK(operations > 15);
          }
        }
      }
    }
  }
}

TEST_CASE("a save killed at any operation loses no checkpoint, and the next save cleans up") {
  for (bool const same_step : {false, true}) {
    for (bool const no_exchange : {false, true}) {
      if (no_exchange && !same_step) {
        continue;
      }
      CAPTURE(same_step);
      CAPTURE(no_exchange);
      std::int64_t const step = same_step ? 2 : 3;
      long operations = 1;
      for (long at = 0; at < operations; ++at) {
        CAPTURE(at);
        test::fault_case const injected{"F2"};
        scratch_directory const root;
        save(root.path(), 1, 1);
        save(root.path(), 2, 2);
        run_and_exit_at(at, no_exchange, [&] { save(root.path(), step, 3, 2); });
        auto const seed = seed_of(newest(root.path()));
        CHECK((seed == 3 || seed == 2 || (no_exchange && seed == 1)));
        if (at == 0) {
          CHECK(seed == 2);
          scratch_directory const other;
          save(other.path(), 1, 1);
          save(other.path(), 2, 2);
          injection const counts{{.no_exchange = no_exchange}};
          save(other.path(), step, 3, 2);
          operations = injection::seen();
        }
        save(root.path(), 4, 4, 2);
        // The checkpoint that was newest before is kept, under whatever name the kill left it.
        CHECK(list_directory(root.path()) ==
              names{concat("checkpoint-", seed == 3 ? step : 2), "checkpoint-4"});
        auto const before = seed_of(
            checkpoint_reader::open(root / (seed == 3 ? concat("checkpoint-", step) : "checkpoint-2")));
        CHECK((before == 3 || before == 2));
        CHECK(seed_of(newest(root.path())) == 4);
      }
      CHECK(operations > 15);
    }
  }
}

TEST_CASE("a read failure is reported with path and reason") {
  scratch_directory const root;
  save(root.path(), 1, 1);
  for (long at = 0; at < 5; ++at) {
    test::fault_case const injected{"F1"};
    injection const fails{{.at = at, .with = EIO}};
    check_failure(failure_of([&] { checkpoint_reader::open(root / "checkpoint-1").verify(); }),
                  exit_code::io_failure, "checkpoint-1/", "Input/output error");
  }
}

// A checkpoint that could not be read may be intact. If an older one were used instead, rotation would soon
// remove the newest.
TEST_CASE("a newest checkpoint that cannot be read is not skipped") {
  scratch_directory const root;
  save(root.path(), 1, 1);
  save(root.path(), 2, 2);
  for (long at = 0; at < 6; ++at) {
    CAPTURE(at);
    test::fault_case const injected{"F1"};
    auto const concerns = at == 0 ? root.path() : root / "checkpoint-2/";  // 0 lists the checkpoints
    check_failure(failure_of([&] {
                    injection const fails{{.at = at, .with = EIO}};
                    newest_checkpoint(root.path(), [](std::string const& reason) { FAIL_CHECK(reason); });
                  }),
                  exit_code::io_failure, concerns.native(), "Input/output error");
  }
}

TEST_CASE("any changed or missing byte is detected, and the older checkpoint is used") {
  scratch_directory const root;
  save(root.path(), 1, 1);
  save(root.path(), 2, 2);
  auto const rejected_for = [&](std::string_view file) {
    test::fault_case const injected{"F7"};
    names reasons;
    auto const found =
        newest_checkpoint(root.path(), [&](std::string const& reason) { reasons.push_back(reason); });
    REQUIRE(found.has_value());
    CHECK(found->step() == 1);
    REQUIRE(reasons.size() == 1);
    CAPTURE(reasons[0]);
    CHECK(reasons[0].find("checkpoint-2") != std::string::npos);
    CHECK(reasons[0].find(file) != std::string::npos);
    CHECK(reasons[0].find('\n') == std::string::npos);
  };
  for (std::string_view const file : {"manifest.json", "rank-00000.bin"}) {
    auto const path = root / "checkpoint-2" / file;
    auto const bytes = fs::file_size(path);
    auto const content = contents_of(path);
    auto const stride = [&](std::uint64_t few, std::uint64_t many) {
      return test::in_long_tests(std::uint64_t{1}, file == "manifest.json" ? few : many);
    };
    for (std::uint64_t offset = 0; offset < bytes; offset += stride(1, 97)) {
      CAPTURE(offset);
      flip_bit(path, offset);
      rejected_for(file);
      flip_bit(path, offset);
    }
    for (std::uint64_t size = 0; size < bytes; size += test::in_long_tests(7, 61)) {
      CAPTURE(size);
      write_text(path, std::string_view{content}.substr(0, size));
      rejected_for(file);
    }
    for (auto const& more : {std::string{"x"}, std::string(5000, '\0')}) {
      write_text(path, content + more);
      rejected_for(file);
    }
    fs::remove(path);
    rejected_for(file);
    fs::create_directory(path);
    rejected_for(file);
    fs::remove(path);
    write_text(path, content);
    CHECK(newest(root.path()).step() == 2);
  }

  SUBCASE("data of another step") {
    fs::copy_file(root / "checkpoint-1/rank-00000.bin", root / "checkpoint-2/rank-00000.bin",
                  fs::copy_options::overwrite_existing);
    rejected_for("rank-00000.bin");
  }
  SUBCASE("a whole checkpoint under the name of another step") {
    fs::remove_all(root / "checkpoint-2");
    fs::copy(root / "checkpoint-1", root / "checkpoint-2");
    rejected_for("manifest.json: manifest.step: 1, expected 2");
  }
  SUBCASE("a file where a directory is expected") {
    fs::remove_all(root / "checkpoint-2");
    write_text(root / "checkpoint-2", "");
    rejected_for("manifest.json");
  }
  SUBCASE("none is valid") {
    fs::remove(root / "checkpoint-1/manifest.json");
    fs::remove(root / "checkpoint-2/manifest.json");
    int rejected = 0;
    CHECK(!newest_checkpoint(root.path(), [&](std::string const&) { ++rejected; }).has_value());
    CHECK(rejected == 2);
  }
}

TEST_CASE("a checkpoint that its reader rejects is skipped, and other errors are passed on") {
  scratch_directory const root;
  for (int const step : {1, 2, 3}) { save(root.path(), step, step); }
  names reasons;
  auto const rejected = [&](std::string const& reason) { reasons.push_back(reason); };
  auto const found = newest_checkpoint(root.path(), rejected, [](checkpoint_reader const& checkpoint) {
    expect(checkpoint.step() < 3, exit_code::bad_input, "not three");
    expect(checkpoint.step() < 2, exit_code::bad_input, "not two");
  });
  REQUIRE(found.has_value());
  CHECK(found->step() == 1);
  CHECK(reasons == names{"not three", "not two"});
  check_failure(failure_of([&] {
                  newest_checkpoint(root.path(), rejected, [](checkpoint_reader const&) {
                    fail(exit_code::device_lost, "the device is lost");
                  });
                }),
                exit_code::device_lost, "the device is lost");
}

TEST_CASE("having no checkpoint is no error") {
  scratch_directory const root;
  auto const never = [](std::string const& reason) { FAIL_CHECK(reason); };
  CHECK(!newest_checkpoint(root.path(), never).has_value());
  CHECK(!newest_checkpoint(root / "absent", never).has_value());
}

TEST_CASE("a save refuses wrong steps, texts and blobs") {
  scratch_directory const root;
  auto const saving = [&](std::int64_t step, std::string const& state, std::vector<blob> const& blobs) {
    return failure_of([&] { save_checkpoint(root.path(), step, state, blobs); });
  };
  check_failure(saving(-1, "{}", {}), exit_code::internal, "step");
  check_failure(saving(1, "\xFF", {}), exit_code::internal, "UTF-8");
  check_failure(saving(1, "{}", {{"a", 0, {}}, {"a", 0, {}}}), exit_code::internal, "'a'");
  check_failure(saving(1, std::string(500'000, ','), {}), exit_code::bad_input, "commas");
  check_failure(failure_of([&] {
                  std::vector<blob> const fails{
                      {"a", 1, [](std::uint64_t, std::span<std::byte>) { fail(exit_code::device, "lost"); }}};
                  save_checkpoint(root.path(), 1, "{}", fails);
                }),
                exit_code::device, "lost");
  CHECK(list_directory(root.path()).empty());
}
