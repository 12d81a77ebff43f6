// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/directory.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/io/safetensors.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "faults.hpp"
#include "scratch_directory.hpp"
#include "support/fault_case.hpp"

#include <algorithm>
#include <sys/wait.h>
#include <unistd.h>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

namespace fs = std::filesystem;

fs::path model(std::string_view name) { return fs::path{SUPEROFFLOAD_TEST_DATA} / "models" / name; }

std::vector<export_tensor> tensors_of(hub_checkpoint const& weights) {
  std::vector<export_tensor> tensors;
  for (auto const& name : weights.names()) { tensors.push_back({name, weights.find(name)->shape}); }
  return tensors;
}

template <class T>
std::span<T> elements(std::span<std::byte> bytes) {
  return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
}

export_source source_of(hub_checkpoint const& weights) {
  return
      [&weights, names = weights.names()](std::size_t tensor, std::uint64_t first, std::span<std::byte> out) {
        weights.read(names[tensor], first, elements<float>(out));
      };
}

export_source filled_with(float value) {
  return [value](std::size_t, std::uint64_t, std::span<std::byte> out) {
    std::ranges::fill(elements<float>(out), value);
  };
}

std::vector<float> values_of(hub_checkpoint const& weights, std::string const& name) {
  std::vector<float> values(weights.find(name)->elements());
  weights.read(name, 0, values);
  return values;
}

/// Exports a model whose only weight is `value`, to see which of two exports is there.
void export_value(fs::path const& model_directory, fs::path const& destination, float value) {
  std::vector<export_tensor> const tensors{{"w", {3}}};
  hub_export(model_files::read(model_directory), destination, tensors, filled_with(value));
}

float exported_value(fs::path const& destination) {
  auto const weights = hub_checkpoint::open(destination);
  auto const values = values_of(weights, "w");
  CHECK(values == std::vector<float>(3, values.at(0)));
  read_json(destination / "config.json");
  return values[0];
}

}  // namespace

TEST_CASE("an export of a checkpoint equals that checkpoint") {
  for (auto const* name : {"llama", "llama_tied"}) {
    CAPTURE(name);
    scratch_directory const directory;
    auto const original = hub_checkpoint::open(model(name));
    hub_export(model_files::read(model(name)), directory / "out/", tensors_of(original), source_of(original));
    CHECK(list_directory(directory.path()) == std::vector<std::string>{"out"});
    CHECK(list_directory(directory / "out") ==
          std::vector<std::string>{"config.json", "generation_config.json", "model.safetensors",
                                   "special_tokens_map.json", "superoffload_export.json", "tokenizer.json",
                                   "tokenizer_config.json"});
    for (auto const& file : list_directory(directory / "out")) {
      if (file != "model.safetensors" && file != "superoffload_export.json") {
        CAPTURE(file);
        CHECK(contents_of(directory / "out" / file) == contents_of(model(name) / file));
      }
    }
    auto const copy = hub_checkpoint::open(directory / "out");
    REQUIRE(copy.names() == original.names());
    for (auto const& tensor : original.names()) {
      CHECK(copy.find(tensor)->type == dtype::f32);
      CHECK(copy.find(tensor)->shape == original.find(tensor)->shape);
      CHECK(values_of(copy, tensor) == values_of(original, tensor));
    }
  }
}

TEST_CASE("an export in bf16 holds the working weights and says so in config.json") {
  scratch_directory const directory;
  auto const original = hub_checkpoint::open(model("llama"));
  hub_export(
      model_files::read(model("llama")), directory / "out", tensors_of(original),
      [&, names = original.names()](std::size_t tensor, std::uint64_t first, std::span<std::byte> out) {
        original.read_bf16(names[tensor], first, elements<bfloat16>(out));
      },
      {.type = dtype::bf16});
  auto expected = contents_of(model("llama") / "config.json");
  expected.replace(expected.find("float32"), 7, "bfloat16");
  CHECK(contents_of(directory / "out/config.json") == expected);
  auto const copy = hub_checkpoint::open(directory / "out");
  for (auto const& name : original.names()) {
    CHECK(copy.find(name)->type == dtype::bf16);
    std::vector<bfloat16> weights(original.find(name)->elements());
    original.read_bf16(name, 0, weights);
    auto const values = values_of(copy, name);
    CHECK(std::equal(values.begin(), values.end(), weights.begin()));
  }
}

TEST_CASE("config.json of transformers 4 and 5") {
  scratch_directory const directory;
  fs::create_directory(directory / "model");
  auto const exported = [&](std::string_view config) {
    write_text(directory / "model/config.json", config);
    export_value(directory / "model", directory / "out", 1);
    return contents_of(directory / "out/config.json");
  };
  CHECK(exported(R"({"z": 1.0, "a": 1e-05})") ==
        "{\n  \"z\": 1.0,\n  \"a\": 1e-05,\n  \"torch_dtype\": \"float32\"\n}\n");
  CHECK(exported(R"({"dtype": "bfloat16", "a": [1]})") ==
        "{\n  \"dtype\": \"float32\",\n  \"a\": [\n    1\n  ]\n}\n");
  CHECK(exported(R"({"dtype": "x", "torch_dtype": null})") ==
        "{\n  \"dtype\": \"float32\",\n  \"torch_dtype\": \"float32\"\n}\n");
  check_failure(failure_of([&] { exported("[]"); }), exit_code::bad_input, "config.json", "object");
  check_failure(failure_of([&] { exported(R"({"a":1,"a":2})"); }), exit_code::bad_input, "config.json", "'a'",
                "twice");
  fs::remove(directory / "model/config.json");
  check_failure(failure_of([&] { export_value(directory / "model", directory / "out", 1); }),
                exit_code::bad_input, "config.json", "No such file");
  CHECK(exported_value(directory / "out") == 1);
}

TEST_CASE("large models are cut into shards with an index") {
  scratch_directory const directory;
  auto const original = hub_checkpoint::open(model("llama"));
  std::uint64_t total = 0;
  for (auto const& name : original.names()) { total += original.find(name)->elements() * 4; }
  constexpr std::uint64_t most = 100'000;  // less than an embedding has
  hub_export(model_files::read(model("llama")), directory / "out", tensors_of(original), source_of(original),
             {.max_shard_bytes = most});
  auto const index = read_json(directory / "out/model.safetensors.index.json");
  CHECK(index["metadata"]["total_size"] == total);
  std::size_t shards = 0;
  for (auto const& file : list_directory(directory / "out")) {
    if (file.ends_with(".safetensors")) {
      ++shards;
      auto const shard = safetensors_file::open(directory / "out" / file);
      std::uint64_t bytes = 0;
      for (auto const& [name, tensor] : shard.tensors()) {
        CHECK(index["weight_map"][name] == file);
        bytes += tensor.end - tensor.begin;
      }
      CHECK((bytes <= most || shard.tensors().size() == 1));
    }
  }
  CHECK(shards > 3);
  CHECK(fs::exists(directory / "out" / concat("model-00001-of-0000", shards, ".safetensors")));
  auto const copy = hub_checkpoint::open(directory / "out");
  CHECK(copy.warnings().empty());
  REQUIRE(copy.names() == original.names());
  for (auto const& name : original.names()) { CHECK(values_of(copy, name) == values_of(original, name)); }
}

TEST_CASE("an export requests every element once, in order, and in bounded pieces") {
  scratch_directory const directory;
  std::vector<export_tensor> const tensors{{"a", {3, 900'000}}, {"none", {0, 4}}, {"b", {}}};
  std::vector<std::uint64_t> next(tensors.size());
  hub_export(model_files::read(model("llama")), directory / "out", tensors,
             [&](std::size_t tensor, std::uint64_t first, std::span<std::byte> bytes) {
               auto const out = elements<float>(bytes);
               CHECK(first == next[tensor]);
               CHECK(bytes.size() <= safetensors_writer::most_bytes);
               for (std::size_t i = 0; i < out.size(); ++i) { out[i] = static_cast<float>(first + i); }
               next[tensor] += out.size();
             });
  CHECK(next == std::vector<std::uint64_t>{2'700'000, 0, 1});
  auto const copy = hub_checkpoint::open(directory / "out");
  CHECK(values_of(copy, "a").back() == 2'699'999.0F);
}

TEST_CASE("an export refuses to replace anything but an export") {
  scratch_directory const directory;
  auto const exporting = [&](fs::path const& to) {
    return failure_of([&] { export_value(model("llama"), to, 1); });
  };
  write_text(directory / "file", "mine");
  check_failure(exporting(directory / "file"), exit_code::bad_input, "/file", "directory");
  fs::create_directory(directory / "home");
  write_text(directory / "home/notes.txt", "mine");
  check_failure(exporting(directory / "home"), exit_code::bad_input, "/home/notes.txt", "export");
  CHECK(contents_of(directory / "home/notes.txt") == "mine");
  fs::create_directories(directory / "deep/model.safetensors");
  check_failure(exporting(directory / "deep"), exit_code::bad_input, "/deep/model.safetensors");
  fs::create_directory(directory / "model");
  fs::copy_file(model("llama") / "config.json", directory / "model/config.json");
  fs::create_directory_symlink("model", directory / "link");
  check_failure(failure_of([&] { export_value(directory / "model", directory / "link", 1); }),
                exit_code::bad_input, "/model", "model that is read");
  std::vector<export_tensor> const twice{{"w", {1}}, {"w", {1}}};
  for (std::uint64_t const shard_bytes : {100, 1}) {
    check_failure(failure_of([&] {
                    hub_export(model_files::read(model("llama")), directory / "out", twice, filled_with(0),
                               {.max_shard_bytes = shard_bytes});
                  }),
                  exit_code::bad_input, "'w'", "twice");
  }
  CHECK(list_directory(directory.path()) ==
        std::vector<std::string>{"deep", "file", "home", "link", "model"});
  fs::remove_all(directory / "model");
  fs::create_directory(directory / "hers");
  for (auto const* file : {"config.json", "model.safetensors", "tokenizer.json"}) {
    fs::copy_file(model("llama") / file, directory / "hers" / file);
  }
  check_failure(exporting(directory / "hers"), exit_code::bad_input, "/hers", "superoffload_export.json");
  check_failure(failure_of([&] { remove_export(directory / "hers"); }), exit_code::bad_input, "/hers");
  CHECK(contents_of(directory / "hers/config.json") == contents_of(model("llama") / "config.json"));
  fs::create_directory(directory / "empty");
  export_value(model("llama"), directory / "empty", 1);
  CHECK(exported_value(directory / "empty") == 1);
}

TEST_CASE("whether an export may be written can be checked before") {
  scratch_directory const directory;
  expect_exportable(model("llama"), directory / "deep/out");
  CHECK(list_directory(directory / "deep").empty());
  fs::create_directory(directory / "home");
  write_text(directory / "home/notes.txt", "mine");
  check_failure(failure_of([&] { expect_exportable(model("llama"), directory / "home"); }),
                exit_code::bad_input, "/home/notes.txt");
  check_failure(failure_of([&] { expect_exportable(model("llama"), model("llama")); }), exit_code::bad_input,
                "model that is read");
  injection const refused{{.at = 1, .with = EROFS}};  // 0 lists the model's files
  check_failure(failure_of([&] { expect_exportable(model("llama"), directory / "out"); }),
                exit_code::io_failure, directory.path().native(), "Read-only");
}

TEST_CASE("an export names its run, and can be removed") {
  scratch_directory const directory;
  CHECK_FALSE(exported_run(directory / "out"));
  std::vector<export_tensor> const tensors{{"w", {3}}};
  hub_export(model_files::read(model("llama")), directory / "out", tensors, filled_with(1), {.run = "0123"});
  CHECK(exported_run(directory / "out") == "0123");
  fs::copy(directory / "out", directory / "damaged");
  write_text(directory / "damaged/superoffload_export.json", "[");
  CHECK(exported_run(directory / "damaged") == "");
  remove_export(directory / "out");
  CHECK(list_directory(directory.path()) == std::vector<std::string>{"damaged"});
}

TEST_CASE("an export copies the files as they were read, whatever happens to the model's directory") {
  scratch_directory const directory;
  fs::copy(model("llama"), directory / "model");
  auto const files = model_files::read(directory / "model");
  fs::remove_all(directory / "model");
  std::vector<export_tensor> const tensors{{"w", {3}}};
  hub_export(files, directory / "out", tensors, filled_with(1));
  CHECK(exported_value(directory / "out") == 1);
  CHECK(contents_of(directory / "out/tokenizer.json") == contents_of(model("llama") / "tokenizer.json"));
}

TEST_CASE("an export that fails or is killed at any operation leaves the earlier one or the new one") {
  scratch_directory const source;
  fs::create_directory(source / "model");
  fs::copy_file(model("llama") / "config.json", source / "model/config.json");
  for (bool const no_exchange : {false, true}) {
    for (bool const exits : {false, true}) {
      CAPTURE(no_exchange);
      CAPTURE(exits);
      scratch_directory const directory;
      auto const out = directory / "out";
      export_value(source / "model", out, 0);
      // Where names cannot be exchanged, a kill can leave the earlier one under its temporary name.
      auto const standing = [&] {
        return no_exchange && exits && !fs::exists(out) ? replaced_name(out) : out;
      };
      long operations = 1;
      for (long at = 0; at < operations; ++at) {
        CAPTURE(at);
        test::fault_case const injected{exits ? "F2" : "F1"};
        float const earlier = exported_value(standing());
        auto const value = static_cast<float>(at + 1);
        if (exits) {
          auto const child = ::fork();
          if (child == 0) {
            injection const dies{{.at = at, .exits = true, .no_exchange = no_exchange}};
            export_value(source / "model", out, value);
            ::_exit(1);
          }
          int status = -1;
          REQUIRE(::waitpid(child, &status, 0) == child);
          CHECK(status == 0);
        } else {
          injection const fails{{.at = at, .with = at % 2 == 0 ? ENOSPC : EIO, .no_exchange = no_exchange}};
          auto const failure = failure_of([&] { export_value(source / "model", out, value); });
          check_failure(failure, exit_code::io_failure, directory.path().parent_path().native());
        }
        auto const found = exported_value(standing());
        CHECK((found == earlier || found == value));
        if (at == 0) {
          injection const counts{{.no_exchange = no_exchange}};
          export_value(source / "model", out, -1);
          operations = injection::seen();
        }
      }
      CHECK(operations > 15);
      export_value(source / "model", out, -2);
      CHECK(exported_value(out) == -2);
      CHECK(list_directory(directory.path()) == std::vector<std::string>{"out"});
    }
  }
}

TEST_CASE("a link in a model's directory does not choose which file is exported") {
  scratch_directory const directory;
  auto const outside = directory / "secret";
  write_text(outside, "a key");
  fs::create_directory(directory / "model");
  fs::copy_file(model("llama") / "config.json", directory / "model/config.json");

  SUBCASE("out of it") {
    for (auto const* target : {"../secret", "../model/../secret"}) {
      CAPTURE(target);
      fs::create_symlink(target, directory / "model/chat_template.jinja");
      for (auto const& failure :
           {failure_of([&] { expect_exportable(directory / "model", directory / "out"); }),
            failure_of([&] { export_value(directory / "model", directory / "out", 1); })}) {
        check_failure(failure, exit_code::bad_input, "model/chat_template.jinja", "symbolic link",
                      outside.native());
      }
      CHECK(!fs::exists(directory / "out"));
      fs::remove(directory / "model/chat_template.jinja");
    }
    fs::rename(directory / "model/config.json", directory / "config.json");
    fs::create_symlink("../config.json", directory / "model/config.json");
    check_failure(failure_of([&] { export_value(directory / "model", directory / "out", 1); }),
                  exit_code::bad_input, "model/config.json", "symbolic link");
  }
  SUBCASE("inside of it") {
    write_text(directory / "model/other", "text");
    fs::create_symlink("other", directory / "model/chat_template.jinja");
    export_value(directory / "model", directory / "out", 1);
    CHECK(contents_of(directory / "out/chat_template.jinja") == "text");
  }
  SUBCASE("from the hub's cache into its blobs") {
    auto const snapshot = directory / "hub/models--x/snapshots/0123";
    fs::create_directories(snapshot);
    fs::create_directories(directory / "hub/models--x/blobs");
    auto const blobs = directory / "hub/models--x/blobs";
    std::string const config(40, 'a'), chat(40, 'b');
    fs::rename(directory / "model/config.json", blobs / config);
    write_text(blobs / chat, "text");
    fs::create_symlink("../../blobs/" + config, snapshot / "config.json");
    fs::create_symlink("../../blobs/" + chat, snapshot / "chat_template.jinja");
    fs::create_directory_symlink(snapshot, directory / "link");
    for (auto const& from : {snapshot, directory / "link"}) {
      expect_exportable(from, directory / "out");
      export_value(from, directory / "out", 1);
      CHECK(contents_of(directory / "out/chat_template.jinja") == "text");
    }
    fs::create_symlink("../../../../secret", snapshot / "merges.txt");
    check_failure(failure_of([&] { export_value(snapshot, directory / "out", 1); }), exit_code::bad_input,
                  "merges.txt", "symbolic link");
  }
}
