// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/hub.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "scratch_directory.hpp"

#include <cmath>
#include <limits>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

std::filesystem::path model(std::string_view name) {
  return std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "models" / name;
}

/// A file with the tensors `names` of two floats each: 1.5 and 2.5 for the first, 3.5 and 4.5 for the next,
/// and so on.
void write_shard(std::filesystem::path const& path, std::vector<std::string> const& names,
                 dtype type = dtype::f32) {
  std::vector<tensor_declaration> declared;
  for (auto const& name : names) { declared.push_back({name, type, {2}}); }
  safetensors_writer writer{path, declared};
  for (std::size_t i = 0; i < 2 * names.size(); ++i) {
    float const value = static_cast<float>(i) + 1.5F;
    bfloat16 const rounded{value};
    writer.write(type == dtype::f32 ? std::as_bytes(std::span{&value, 1})
                                    : std::as_bytes(std::span{&rounded, 1}));
  }
  writer.finish();
}

constexpr auto index_name = "model.safetensors.index.json";

}  // namespace

TEST_CASE("the reference checkpoints are opened by their directory") {
  auto const untied = hub_checkpoint::open(model("llama"));
  auto const tied = hub_checkpoint::open(model("llama_tied"));
  CHECK(untied.warnings().empty());
  REQUIRE(untied.find("lm_head.weight") != nullptr);
  CHECK(untied.find("lm_head.weight")->shape == std::vector<std::int64_t>{576, 64});
  CHECK(tied.find("lm_head.weight") == nullptr);
  CHECK(untied.names().size() == 21);
  for (auto const& name : untied.names()) {
    CAPTURE(name);
    auto const elements = untied.find(name)->elements();
    std::vector<float> values(elements);
    untied.read(name, 0, values);
    std::vector<bfloat16> rounded(elements - 1);
    untied.read_bf16(name, 1, rounded);
    CHECK(std::equal(rounded.begin(), rounded.end(), values.begin() + 1,
                     [](auto weight, float master) { return weight == bfloat16::of_master(master); }));
  }
}

TEST_CASE("shards are read through their index") {
  scratch_directory const directory;
  write_shard(directory / "x-1.safetensors", {"a", "b", "unlisted"});
  write_shard(directory / "x-2.safetensors", {"c"}, dtype::bf16);
  write_text(
      directory / index_name,
      R"({"metadata":{"total_size":20},"weight_map":{"a":"x-1.safetensors","b":"x-1.safetensors","c":"x-2.safetensors"}})");
  auto const opened = hub_checkpoint::open(directory.path());
  CHECK(opened.warnings().empty());
  CHECK(opened.names() == std::vector<std::string>{"a", "b", "c"});
  CHECK(opened.find("unlisted") == nullptr);
  std::vector<float> values(2);
  opened.read("b", 0, values);
  CHECK(values == std::vector{3.5F, 4.5F});
  opened.read("c", 0, values);
  CHECK(values == std::vector{1.5F, 2.5F});
  std::vector<bfloat16> one(1);
  opened.read_bf16("c", 1, one);
  CHECK(float{one[0]} == 2.5F);
  check_failure(failure_of([&] { opened.read("d", 0, values); }), exit_code::bad_input,
                directory.path().native(), "tensor 'd' is missing");
  check_failure(failure_of([&] { opened.read("a", 1, values); }), exit_code::internal, "x-1.safetensors",
                "beyond");

  // A single file has priority, as in transformers.
  write_shard(directory / "model.safetensors", {"single"});
  CHECK(hub_checkpoint::open(directory.path()).names() == std::vector<std::string>{"single"});
}

TEST_CASE("a wrong or odd total_size is a warning") {
  scratch_directory const directory;
  write_shard(directory / "x", {"a"});
  auto const warnings = [&](std::string_view metadata) {
    write_text(directory / index_name, concat("{", metadata, R"("weight_map":{"a":"x"}})"));
    return hub_checkpoint::open(directory.path()).warnings();
  };
  CHECK(warnings("").empty());
  CHECK(warnings(R"("metadata":{},)").empty());
  CHECK(warnings(R"("metadata":null,)").empty());
  CHECK(warnings(R"("metadata":{"total_size":8.0,"total_parameters":2},)").empty());
  REQUIRE(warnings(R"("metadata":{"total_size":9},)").size() == 1);
  CHECK(warnings(R"("metadata":{"total_size":9},)")[0].find(
            "metadata.total_size: 9, but the tensors have 8 bytes") != std::string::npos);
  CHECK(warnings(R"("metadata":{"total_size":"8"},)").size() == 1);
}

TEST_CASE("a directory without safetensors is refused with advice") {
  scratch_directory const directory;
  auto const opening = [](std::filesystem::path const& path) {
    return failure_of([&] { hub_checkpoint::open(path); });
  };
  check_failure(opening(directory.path()), exit_code::bad_input, directory.path().native(),
                "model.safetensors");
  check_failure(opening(directory / "absent"), exit_code::bad_input, "/absent", "directory");
  for (auto const* name : {"pytorch_model.bin", "consolidated.00.pth", "model.pt", "last.ckpt"}) {
    write_text(directory / name, "");
    check_failure(opening(directory.path()), exit_code::bad_input, name, "run code", "safe_serialization");
    std::filesystem::remove(directory / name);
  }
  std::filesystem::create_directory(directory / "model.safetensors");
  check_failure(opening(directory.path()), exit_code::bad_input, "model.safetensors", "regular file");
}

TEST_CASE("weights that no master can represent are refused, with their position") {
  scratch_directory const directory;
  float const largest = std::bit_cast<float>(0x7F7F7FFFU);
  for (float const bad :
       {std::nanf(""), std::bit_cast<float>(0x7FFFFFFFU), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity(), std::bit_cast<float>(0xFF7F8000U)}) {
    CAPTURE(bad);
    std::filesystem::remove(directory / "model.safetensors");
    std::vector<float> values(40'000, largest);
    values[30'000] = bad;
    std::vector<tensor_declaration> const declared{{"w", dtype::f32, {4, 10'000}}};
    safetensors_writer writer{directory / "model.safetensors", declared};
    writer.write(std::as_bytes(std::span{values}));
    writer.finish();
    auto const opened = hub_checkpoint::open(directory.path());
    check_failure(failure_of([&] { opened.read("w", 5, std::span{values}.first(39'995)); }),
                  exit_code::bad_input, "model.safetensors: w: element 30000 is", "expected finite");
    std::vector<bfloat16> rounded(40'000);
    check_failure(failure_of([&] { opened.read_bf16("w", 0, rounded); }), exit_code::bad_input,
                  "model.safetensors: w: element 30000 is");
    opened.read("w", 0, std::span{values}.first(30'000));
    CHECK(values[29'999] == largest);
  }
}
