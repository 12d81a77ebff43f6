// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/io/protobuf.hpp>
#include <superoffload/io/wandb_log.hpp>

#include <doctest/doctest.h>

#include "support/contents_of.hpp"
#include "support/scratch_directory.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace superoffload;
using test::contents_of;
namespace fs = std::filesystem;

std::string from_hex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string{hex.substr(i, 2)}, nullptr, 16));
  }
  return out;
}

/// The records that a log of `file` finds.
std::vector<std::string> records_of(fs::path const& file) {
  std::vector<std::string> records;
  io::wandb_log const log{file, [&](std::string_view record) {
                            records.emplace_back(record);
                            return true;
                          }};
  return records;
}

bool all(std::string_view) { return true; }

struct place {
  test::scratch_directory directory;
  fs::path file = directory.path() / "run" / "run-1.wandb";
};

TEST_CASE("a record has the bytes that wandb 0.31 writes") {
  place const p;
  auto const fields = from_hex(
      "c20c0a0a0862766973677a6533aa013b0a390a2f302e33312e302b313566386362633538316431633563666336653331663638"
      "62"
      "34386264643133636563326464326312"
      "06302e37302e30");
  io::wandb_log{p.file, all}.append(fields);
  CHECK(contents_of(p.file) == from_hex("3a572642e1be005ba5228f4d0001") + from_hex("0801") + fields);
}

TEST_CASE("records of any size go over the ends of blocks, and are found again") {
  place const p;
  std::vector<std::string> written;
  {
    io::wandb_log log{p.file, all};
    for (std::size_t const size : {32730U, 1U, 7U, 100'000U, 32'750U, 3U, 0U, 32'768U, 32'761U}) {
      auto const fields = io::protobuf::bytes_field(2, std::string(size, 'x'));
      log.append(fields);
      written.push_back(io::protobuf::integer_field(1, std::ssize(written) + 1) + fields);
    }
  }
  CHECK(records_of(p.file) == written);
  // Every place at which a kill may have cut the file.
  auto const whole = contents_of(p.file);
  for (std::size_t size = whole.size() - 10; size < whole.size(); ++size) {
    fs::resize_file(p.file, size);
    CHECK(records_of(p.file).size() == written.size() - 1);
    std::ofstream{p.file, std::ios::binary} << whole;
  }
}

TEST_CASE("the end of every block is where a record may begin") {
  for (std::size_t left = 0; left < 16; ++left) {
    CAPTURE(left);
    place const p;
    {
      io::wandb_log log{p.file, all};
      // magic 7, head 7, number 2, key 1, length 3
      log.append(io::protobuf::bytes_field(2, std::string(32768 - left - 20, 'x')));
      CHECK(fs::file_size(p.file) == 32768 - left);
      log.append(io::protobuf::bytes_field(2, "second"));
    }
    REQUIRE(records_of(p.file).size() == 2);
    CHECK(records_of(p.file)[1].ends_with("second"));
  }
}

TEST_CASE("a log continues behind what is kept") {
  place const p;
  auto const text = [](char const* s) { return io::protobuf::bytes_field(2, s); };
  {
    io::wandb_log log{p.file, all};
    for (char const* const s : {"one", "two", "three"}) { log.append(text(s)); }
  }
  auto const before = contents_of(p.file);
  {
    io::wandb_log log{p.file, [](std::string_view record) { return !record.ends_with("two"); }};
    CHECK(log.records() == 1);
    log.append(text("two"));
    log.append(text("three"));
  }
  CHECK(contents_of(p.file) == before);
}

TEST_CASE("what is no log is refused, and damage ends a log") {
  place const p;
  fs::create_directories(p.file.parent_path());
  std::ofstream{p.file} << "something else entirely";
  CHECK_THROWS_WITH_AS(records_of(p.file), doctest::Contains("is no log of Weights & Biases"), error);
  fs::remove(p.file);
  {
    io::wandb_log log{p.file, all};
    for (int i = 0; i < 3; ++i) { log.append(io::protobuf::bytes_field(2, "text")); }
  }
  auto damaged = contents_of(p.file);
  damaged[7 + 15 + 10] ^= 1;  // in the second record
  std::ofstream{p.file, std::ios::binary} << damaged;
  CHECK(records_of(p.file).size() == 1);
}

TEST_CASE("messages that are cut or lie about their length are read to there") {
  using io::protobuf::reader;
  auto const whole = io::protobuf::integer_field(1, 300) + io::protobuf::bytes_field(2, "abc") +
                     io::protobuf::double_field(3, 1.0) + io::protobuf::float_field(4, 1.0F);
  reader all_of{whole};
  CHECK(all_of.next()->integer == 300);
  CHECK(all_of.next()->bytes == "abc");
  CHECK(all_of.next()->number == 3);
  CHECK(all_of.next()->number == 4);
  CHECK_FALSE(all_of.next());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string const cut = whole.substr(0, size);
    reader r{cut};
    int fields = 0;
    while (r.next()) { ++fields; }
    CHECK(fields < 4);
  }
  CHECK_FALSE(reader{from_hex("12ffffffffffffffffff01")}.next());
  CHECK_FALSE(reader{from_hex("0bffff")}.next());
}

}  // namespace
