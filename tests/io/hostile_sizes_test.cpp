// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Small files that announce much. They are refused within an address space that has no room for what they
// announce: an allocation of it would be another error.
#include <superoffload/io/checksum.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/io/safetensors.hpp>
#include <superoffload/io/train_checkpoint.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "scratch_directory.hpp"
#include "support/sanitizer.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

constexpr std::uint64_t headroom = std::uint64_t{256} << 20;

std::uint64_t address_space() {
  std::uint64_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

/// In a process with little memory: is it bad input, in the words `says`?
void check_refused(std::function<void()> const& read, std::string const& says) {
  CAPTURE(says);
  auto const child = ::fork();
  if (child == 0) {
    if (!test::under_address_sanitizer) {  // its shadow is most of the address space
      rlimit const limit{address_space() + headroom, address_space() + headroom};
      ::setrlimit(RLIMIT_AS, &limit);
    }
    int end = 1;
    try {
      auto const failure = failure_of(read);
      bool const as_expected = failure.code() == exit_code::bad_input &&
                               std::string_view{failure.what()}.find(says) != std::string_view::npos;
      if (!as_expected) {
        std::fprintf(stderr, "%s\n", failure.what());
      }
      end = as_expected ? 0 : 2;
    } catch (std::exception const& e) { std::fprintf(stderr, "%s\n", e.what()); }
    ::_exit(end);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

void write_header(std::filesystem::path const& file, std::uint64_t length, std::string const& header,
                  std::string const& data = {}) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  write_text(file, text + header + data);
}

}  // namespace

TEST_CASE("a safetensors header that names 2^60 bytes is refused before memory is allocated") {
  scratch_directory const directory;
  auto const file = directory / "model.safetensors";
  auto const opening = [&] { safetensors_file::open(file); };
  for (std::uint64_t const length : {std::uint64_t{1} << 60, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    write_header(file, length, "{}");
    check_refused(opening, concat("header of ", length, " bytes, expected at most 100000000"));
  }
  write_header(file, 30'000'000, "{}");
  check_refused(opening, "header of 30000000 bytes in a file of 10");
}

TEST_CASE("tensors, shards and checkpoints that announce 2^60 bytes are refused before memory is allocated") {
  scratch_directory const directory;
  auto const weights = directory / "model.safetensors";
  auto const opening = [&] { hub_checkpoint::open(directory.path()); };
  std::string const huge =
      R"({"w":{"dtype":"F32","shape":[288230376151711744],"data_offsets":[0,1152921504606846976]}})";
  write_header(weights, huge.size(), huge);
  check_refused(opening, "0 bytes of data, expected 1152921504606846976");
  std::string const product = R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})";
  write_header(weights, product.size(), product, "12345678");
  check_refused(opening, "expected a product below 2^63");
  // Commas are values: as many as would take gigabytes are not parsed.
  std::filesystem::remove(weights);
  write_text(directory / "model.safetensors.index.json",
             R"({"weight_map":[)" + std::string(std::size_t{8} << 20, ',') + "]}");
  check_refused(opening, "commas, expected at most");
  auto const content =
      std::string{"\",\n\"manifest\":"} +
      R"({"format":"superoffload checkpoint","version":1,"step":1,"world_size":65536,"chunk_bytes":1048576,)"
      R"("state":"{}","files":[]})" +
      "}\n";
  write_text(directory / "manifest.json",
             concat("{\"sha256\":\"", sha256_hex(std::as_bytes(std::span{content})), content));
  check_refused([&] { checkpoint_reader::open(directory.path()); }, "manifest");
}

TEST_CASE("JSON that is nested a million times is refused, not followed") {
  for (char const* const open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 1'000'000; ++i) { text += open; }
    check_refused([&] { parse_json(text, "input", {.bytes = text.size()}); }, "nested deeper than 32");
  }
}
