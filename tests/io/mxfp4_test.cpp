// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/hub.hpp>
#include <superoffload/io/mxfp4.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "scratch_directory.hpp"

#include <cmath>
#include <random>
#include <thread>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

constexpr std::int64_t experts = 3, out = 70, in = 64;
using shape = std::vector<std::int64_t>;

struct bytes_of_tensor {
  std::string name;
  dtype type;
  shape extents;
  std::vector<std::byte> bytes;
};

void write(std::filesystem::path const& directory, std::vector<bytes_of_tensor> const& tensors) {
  std::vector<tensor_declaration> declared;
  for (auto const& t : tensors) { declared.push_back({t.name, t.type, t.extents}); }
  safetensors_writer writer{directory / "model.safetensors", declared};
  for (auto const& t : tensors) { writer.write(t.bytes); }
  writer.finish();
}

std::vector<std::byte> random_bytes(std::int64_t count, int least, int most) {
  std::mt19937 random{static_cast<unsigned>(count)};
  std::uniform_int_distribution<int> numbers{least, most};
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  for (auto& b : bytes) { b = static_cast<std::byte>(numbers(random)); }
  return bytes;
}

/// One matrix for each of three experts.
std::vector<bytes_of_tensor> matrices() {
  return {{"w_blocks", dtype::u8, {experts, out, in / 32, 16}, random_bytes(experts * out * in / 2, 0, 255)},
          {"w_scales", dtype::u8, {experts, out, in / 32}, random_bytes(experts * out * in / 32, 0, 250)}};
}

/// By the formula of the published code.
float value(std::vector<bytes_of_tensor> const& tensors, std::int64_t e, std::int64_t i, std::int64_t o) {
  constexpr float values[] = {0, .5, 1, 1.5, 2, 3, 4, 6, -0.F, -.5, -1, -1.5, -2, -3, -4, -6};
  auto const group = (e * out + o) * (in / 32) + i / 32;
  auto const byte = std::to_integer<int>(tensors[0].bytes[static_cast<std::size_t>(group * 16 + i % 32 / 2)]);
  auto const scale = std::to_integer<int>(tensors[1].bytes[static_cast<std::size_t>(group)]);
  return std::ldexp(values[i % 2 == 0 ? byte & 15 : byte >> 4], scale - 127);
}

}  // namespace

TEST_CASE("experts in MXFP4 are read as one dequantised tensor, in any pieces and from several threads") {
  scratch_directory const directory;
  auto const tensors = matrices();
  write(directory.path(), tensors);
  auto const checkpoint = hub_checkpoint::open(directory.path());
  CHECK(checkpoint.quantised());
  CHECK(checkpoint.names() == std::vector<std::string>{"w"});
  REQUIRE(checkpoint.find("w") != nullptr);
  CHECK(checkpoint.find("w")->shape == shape{experts, in, out});
  CHECK(checkpoint.find("w")->type == dtype::bf16);
  CHECK(checkpoint.find("w")->elements() == experts * in * out);
  CHECK(checkpoint.find("w_blocks") == nullptr);
  std::vector<float> expected;
  for (std::int64_t i = 0; i < experts * in * out; ++i) {
    expected.push_back(value(tensors, i / (in * out), i / out % in, i % out));
  }
  for (std::size_t const piece : {std::size_t{1000}, std::size_t{4480}, expected.size()}) {
    std::vector<float> values(expected.size());
    std::vector<bfloat16> rounded(expected.size());
    for (std::size_t at = 0; at < values.size(); at += piece) {
      auto const size = std::min(piece, values.size() - at);
      checkpoint.read("w", at, std::span{values}.subspan(at, size));
      checkpoint.read_bf16("w", at, std::span{rounded}.subspan(at, size));
    }
    CHECK(values == expected);
    CHECK(std::equal(rounded.begin(), rounded.end(), expected.begin(),
                     [](bfloat16 a, float b) { return float{a} == b; }));
  }
  std::vector<std::vector<float>> of_threads(4, std::vector<float>(expected.size()));
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < of_threads.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t at = t * 100; at + 300 <= expected.size(); at += 300) {
        checkpoint.read("w", at, std::span{of_threads[t]}.subspan(at, 300));
      }
    });
  }
  for (auto& thread : threads) { thread.join(); }
  for (std::size_t t = 0; t < of_threads.size(); ++t) {
    auto const covered = (expected.size() - t * 100) / 300 * 300;
    CHECK(std::equal(of_threads[t].begin() + static_cast<std::ptrdiff_t>(t * 100),
                     of_threads[t].begin() + static_cast<std::ptrdiff_t>(t * 100 + covered),
                     expected.begin() + static_cast<std::ptrdiff_t>(t * 100)));
  }
}

TEST_CASE("MXFP4 tensors with wrong shapes or overflowing values are refused by name") {
  scratch_directory const directory;
  auto tensors = matrices();
  auto const opened = [&] {
    std::filesystem::remove(directory.path() / "model.safetensors");
    write(directory.path(), tensors);
    return hub_checkpoint::open(directory.path());
  };
  SUBCASE("no scales") {
    tensors.pop_back();
    check_failure(failure_of(opened), exit_code::bad_input, "'w_scales' of dtype U8 is missing");
  }
  SUBCASE("scales of another shape") {
    tensors[1].extents = {experts, out * (in / 32), 1};
    check_failure(failure_of(opened), exit_code::bad_input, "'w_scales': expected the shape of 'w_blocks'");
  }
  SUBCASE("blocks of another shape") {
    tensors[0].extents = {experts, out, in / 64, 32};
    check_failure(failure_of(opened), exit_code::bad_input, "[experts, outputs, inputs / 32, 16]");
  }
  SUBCASE("blocks and the dequantised tensor") {
    tensors.push_back({"w", dtype::u8, {1}, {std::byte{0}}});
    check_failure(failure_of(opened), exit_code::bad_input, "'w' exists, and so do its MXFP4 blocks");
  }
  SUBCASE("a value beyond bfloat16") {
    tensors[0].bytes[5] = std::byte{0x07};
    tensors[1].bytes[0] = std::byte{255};
    auto const checkpoint = opened();
    std::vector<float> values(in * out);
    check_failure(failure_of([&] { checkpoint.read("w", 0, values); }), exit_code::bad_input, "w: element");
    checkpoint.read("w", in * out, values);  // the next expert's values are valid
  }
}
