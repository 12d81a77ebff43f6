// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/safetensors.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "faults.hpp"
#include "scratch_directory.hpp"

#include <array>
#include <bit>
#include <cstring>
#include <numeric>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

template <class T>
std::span<std::byte const> bytes_of(std::vector<T> const& values) {
  return std::as_bytes(std::span{values});
}

/// A file with this header and `data_bytes` bytes of data, 0, 1, 2, ...
std::filesystem::path file_with(scratch_directory const& directory, std::string_view header,
                                std::size_t data_bytes) {
  std::string content(8, '\0');
  std::uint64_t const length = header.size();
  std::memcpy(content.data(), &length, 8);
  content += header;
  for (std::size_t i = 0; i < data_bytes; ++i) { content += static_cast<char>(i); }
  auto const path = directory / "x.safetensors";
  write_text(path, content);
  return path;
}

}  // namespace

TEST_CASE("the reference checkpoints can be read") {
  for (auto const* name : {"llama", "llama_tied"}) {
    CAPTURE(name);
    auto const file = safetensors_file::open(std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "models" / name /
                                             "model.safetensors");
    CHECK(file.metadata().at("format") == "pt");
    CHECK(file.tensors().contains("lm_head.weight") == (std::string_view{name} == "llama"));
    auto const& norm = file.tensors().at("model.norm.weight");
    CHECK(norm.type == dtype::f32);
    REQUIRE(norm.shape.size() == 1);
    std::vector<float> values(norm.elements());
    file.read(norm, 0, values);
    // The weights of norms were drawn around 1.
    auto const mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
    CHECK(mean > 0.5);
    CHECK(mean < 1.5);
    std::vector<float> tail(3);
    file.read(norm, norm.elements() - 3, tail);
    CHECK(std::equal(tail.begin(), tail.end(), values.end() - 3));
  }
}

TEST_CASE("every element type survives a round trip, at odd offsets too") {
  scratch_directory const directory;
  auto const path = directory / "all.safetensors";
  // More than one buffer of the converting reads.
  constexpr std::int64_t many = 70'001;
  std::vector<float> singles(many);
  std::vector<double> doubles(many);
  std::vector<bfloat16> brains(many);
  std::vector<float16> halves(many);
  for (std::size_t i = 0; i < singles.size(); ++i) {
    singles[i] = 0.1F * static_cast<float>(i) - 1000.0F;
    doubles[i] = singles[i];
    brains[i] = bfloat16{singles[i]};
    halves[i].bits = static_cast<std::uint16_t>(i % 0x7C00);  // every finite half from 0 on
  }
  std::vector<std::uint8_t> const odd{1, 2, 3};
  std::vector<tensor_declaration> const declared{
      {"odd", dtype::u8, {3}},           {"single", dtype::f32, {many}},
      {"double", dtype::f64, {1, many}}, {"brain", dtype::bf16, {many}},
      {"half", dtype::f16, {many, 1}},   {"empty", dtype::f32, {4, 0}},
      {"scalar", dtype::f32, {}},        {"tensor \"\\\n\xC3\xBC", dtype::u8, {0}}};
  safetensors_writer writer{path, declared};
  writer.write(bytes_of(odd));
  writer.write(bytes_of(singles).first(5));
  writer.write(bytes_of(singles).subspan(5));
  writer.write(bytes_of(doubles));
  writer.write(bytes_of(brains));
  writer.write(bytes_of(halves));
  writer.write(bytes_of(std::vector<float>{2.5F}));
  writer.finish();

  auto const file = safetensors_file::open(path);
  CHECK(file.tensors().size() == declared.size());
  for (auto const& tensor : declared) {
    CHECK(file.tensors().at(tensor.name).type == tensor.type);
    CHECK(file.tensors().at(tensor.name).shape == tensor.shape);
  }
  std::vector<float> values(many);
  file.read(file.tensors().at("single"), 0, values);
  CHECK(values == singles);
  file.read(file.tensors().at("double"), 0, values);
  CHECK(values == singles);
  file.read(file.tensors().at("brain"), 0, values);
  CHECK(std::equal(values.begin(), values.end(), brains.begin()));
  file.read(file.tensors().at("half"), 0, values);
  CHECK(std::equal(values.begin(), values.end(), halves.begin()));
  CHECK(values[1] == 0x1p-24F);
  CHECK(values[0x3C00] == 1.0F);
  std::vector<float> part(1234);
  file.read(file.tensors().at("brain"), 777, part);
  CHECK(std::equal(part.begin(), part.end(), brains.begin() + 777));
  float scalar = 0;
  file.read(file.tensors().at("scalar"), 0, {&scalar, 1});
  CHECK(scalar == 2.5F);
  std::vector<std::byte> raw(2);
  file.read_raw(file.tensors().at("odd"), 1, raw);
  CHECK(raw[0] == std::byte{2});
  file.read(file.tensors().at("empty"), 0, {});

  check_failure(failure_of([&] { file.read(file.tensors().at("odd"), 0, part); }), exit_code::bad_input,
                "U8");
  check_failure(failure_of([&] { file.read(file.tensors().at("scalar"), 1, {&scalar, 1}); }),
                exit_code::internal, "all.safetensors", "beyond the end");
  check_failure(failure_of([&] { file.read_raw(file.tensors().at("odd"), 2, raw); }), exit_code::internal,
                "beyond");
}

TEST_CASE("the header is padded to 8 bytes and says that PyTorch wrote the tensors") {
  scratch_directory const directory;
  std::vector<tensor_declaration> const declared{{"a", dtype::f32, {1}}};
  safetensors_writer writer{directory / "one", declared};
  writer.write(bytes_of(std::vector{1.0F}));
  writer.finish();
  std::string const header =
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  auto padded = header;
  padded.append((8 - header.size() % 8) % 8, ' ');
  auto const content = contents_of(directory / "one");
  REQUIRE(content.size() == 8 + padded.size() + 4);
  CHECK(content.substr(8, padded.size()) == padded);
  CHECK(content[0] == static_cast<char>(padded.size()));
}

TEST_CASE("a writer refuses wrong declarations and wrong amounts of data") {
  scratch_directory const directory;
  using declarations = std::vector<tensor_declaration>;
  auto const declare = [&](declarations const& tensors) {
    return failure_of([&] { safetensors_writer{directory / concat("f", tensors.size()), tensors}; });
  };
  check_failure(declare({{"a", dtype::f32, {1}}, {"a", dtype::f32, {1}}}), exit_code::bad_input, "'a'",
                "twice");
  check_failure(declare({{"a", dtype::f32, {-1}}}), exit_code::bad_input, "'a'", "dimensions");
  check_failure(
      declare({{"a", dtype::f32, {1LL << 31, 1LL << 31}}, {"b", dtype::u8, {1}}, {"c", dtype::u8, {1}}}),
      exit_code::bad_input, "2^63");

  declarations const one{{"a", dtype::f32, {2}}};
  safetensors_writer writer{directory / "short", one};
  writer.write(bytes_of(std::vector{1.0F}));
  check_failure(failure_of([&] { writer.finish(); }), exit_code::internal, "4 bytes", "not written");
  check_failure(failure_of([&] { writer.write(bytes_of(std::vector{1.0, 2.0})); }), exit_code::internal,
                "more data");
  check_failure(failure_of([&] { safetensors_writer{directory / "short", one}; }), exit_code::io_failure,
                "short", "File exists");
}

TEST_CASE("unusual but valid headers are read") {
  scratch_directory const directory;
  auto const opens = [&](std::string_view header, std::size_t data) {
    return safetensors_file::open(file_with(directory, header, data)).tensors().size();
  };
  CHECK(opens("{}", 0) == 0);
  CHECK(opens(R"({"a":{"shape":[2],"data_offsets":[0,2],"dtype":"U8"}}   )", 2) == 1);
  CHECK(
      opens(
          R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          3) == 2);
  CHECK(
      opens(
          R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]}})",
          0) == 2);
}

TEST_CASE("limits are checked before the header is read") {
  scratch_directory const directory;
  std::string const one = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})";
  auto const path = file_with(directory, one, 1);
  check_failure(failure_of([&] { safetensors_file::open(path, {.header_bytes = one.size() - 1}); }),
                exit_code::bad_input, "x.safetensors", "header of 53 bytes", "at most 52");
  check_failure(failure_of([&] { safetensors_file::open(path, {.tensors = 0}); }), exit_code::bad_input,
                "x.safetensors");
  CHECK(safetensors_file::open(path, {.header_bytes = one.size(), .tensors = 1}).tensors().size() == 1);
}

TEST_CASE("a read failure names the file") {
  scratch_directory const directory;
  auto const path = file_with(directory, R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", 9);
  for (long at = 0; at < 3; ++at) {
    injection const fails{{.at = at, .with = EIO}};
    check_failure(failure_of([&] { safetensors_file::open(path); }), exit_code::io_failure, "x.safetensors",
                  "Input/output error");
  }
  injection const shortened{{.at = 0, .with = short_transfer, .persistent = true}};
  auto const file = safetensors_file::open(path);
  std::array<std::byte, 9> data{};
  file.read_raw(file.tensors().at("a"), 0, data);
  CHECK(data[8] == std::byte{8});
  std::filesystem::resize_file(path, 65);
  check_failure(failure_of([&] { file.read_raw(file.tensors().at("a"), 0, data); }), exit_code::io_failure,
                "x.safetensors", "shorter");
}
