// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/hub.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/io/model_directory.hpp>

#include <doctest/doctest.h>

#include "failure.hpp"
#include "scratch_directory.hpp"

#include <span>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace superoffload;
using namespace superoffload::io;
using namespace superoffload::io::testing;

namespace {

namespace fs = std::filesystem;

/// A file with the tensor `name` of one float.
void write_weights(fs::path const& path, std::string const& name) {
  std::vector<tensor_declaration> const declared{{name, dtype::f32, {1}}};
  safetensors_writer writer{path, declared};
  float const value = 1.5F;
  writer.write(std::as_bytes(std::span{&value, 1}));
  writer.finish();
}

constexpr auto index_name = "model.safetensors.index.json";
constexpr auto of_shard = R"({"weight_map":{"w":"shard.safetensors"}})";
std::string const hash(64, 'a');

/// Moves `name` of `directory` elsewhere and leaves a link to it.
void move_out(fs::path const& directory, std::string const& name, fs::path const& to) {
  fs::rename(directory / name, to);
  fs::create_symlink(to, directory / name);
}

}  // namespace

TEST_CASE("a link out of a model's directory is refused for every file, and followed if that is asked for") {
  for (std::string const name :
       {"config.json", "model.safetensors", index_name, "shard.safetensors", "tokenizer.json",
        "tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "tokenizer.model",
        "added_tokens.json", "vocab.json", "merges.txt", "chat_template.jinja", "chat_template.json"}) {
    CAPTURE(name);
    scratch_directory const directory;
    auto const model = directory / "model";
    fs::create_directory(model);
    write_text(model / "config.json", "{}");
    if (name == "model.safetensors") {
      write_weights(model / name, "w");
    } else {
      write_weights(model / "shard.safetensors", "w");
      write_text(model / index_name, of_shard);
    }
    if (!fs::exists(model / name)) {
      write_text(model / name, "{}");
    }
    auto const read_all = [](model_directory const& from) {
      auto const files = model_files::read(from);
      std::vector<float> values(1);
      hub_checkpoint::open(from).read("w", 0, values);
      CHECK(values.front() == 1.5F);
    };
    read_all(model);
    auto const outside = directory / "outside";
    move_out(model, name, outside);
    check_failure(failure_of([&] { read_all(model); }), exit_code::bad_input, (model / name).native(),
                  "symbolic link", outside.native(), "--follow_links");
    read_all({model, true});
  }
}

TEST_CASE("links inside of a model's directory are followed, and the directory itself may be one") {
  scratch_directory const directory;
  auto const model = directory / "model";
  fs::create_directories(model / "parts");
  write_weights(model / "parts/w", "w");
  fs::create_symlink("parts/w", model / "model.safetensors");
  fs::create_directory_symlink("model", directory / "link");
  for (auto const& from : {model, directory / "link"}) {
    CHECK(hub_checkpoint::open(from).names() == std::vector<std::string>{"w"});
  }
  // /proc has links to what has no path.
  int const nameless = ::memfd_create("weights", 0);
  REQUIRE(nameless >= 0);
  fs::create_symlink(concat("/proc/self/fd/", nameless), model / "tokenizer.json");
  CHECK(fs::exists(model / "tokenizer.json"));
  check_failure(failure_of([&] { expect_inside(model, "tokenizer.json"); }), exit_code::bad_input,
                "tokenizer.json: is a symbolic link to /proc/self/fd/");
  ::close(nameless);
  // A neighbour whose name begins with the directory's is outside.
  fs::create_directory(directory / "model2");
  move_out(model, "parts/w", directory / "model2/w");
  check_failure(failure_of([&] { hub_checkpoint::open(model); }), exit_code::bad_input, "model2/w");
}

TEST_CASE("links of the hub's cache are followed into its own blobs") {
  scratch_directory const directory;
  auto const repository = directory / "models--x";
  auto const snapshot = repository / "snapshots/0123";
  fs::create_directories(snapshot / "original");
  fs::create_directories(repository / "blobs");
  write_weights(repository / "blobs" / hash, "w");
  auto const link = [&](fs::path const& to, fs::path const& from = {}) {
    auto const place = snapshot / from / "model.safetensors";
    fs::remove(place);
    fs::create_symlink(to, place);
    return failure_of([&] { hub_checkpoint::open(snapshot / from); });
  };
  CHECK(link(fs::path{"../../blobs"} / hash).code() == exit_code::ok);
  CHECK(link(fs::path{"../../../blobs"} / hash, "original").code() == exit_code::ok);

  // What merely looks like the cache is not.
  fs::copy_file(repository / "blobs" / hash, repository / "blobs/secret");
  check_failure(link("../../blobs/secret"), exit_code::bad_input, "blobs/secret", "symbolic link");
  fs::create_directory(repository / "blobs/inner");
  fs::copy_file(repository / "blobs" / hash, repository / "blobs/inner" / hash);
  check_failure(link(fs::path{"../../blobs/inner"} / hash), exit_code::bad_input, "symbolic link");
  fs::create_directories(directory / "models--y/blobs");
  fs::copy_file(repository / "blobs" / hash, directory / "models--y/blobs" / hash);
  check_failure(link(fs::path{"../../../models--y/blobs"} / hash), exit_code::bad_input, "models--y");
  // Blobs that are themselves a link lead out, too.
  fs::rename(repository / "blobs", directory / "elsewhere");
  fs::create_directory_symlink(directory / "elsewhere", repository / "blobs");
  check_failure(link(fs::path{"../../blobs"} / hash), exit_code::bad_input, "elsewhere");
}

TEST_CASE("code of a model is none of its files") {
  scratch_directory const directory;
  auto const model = directory / "model";
  fs::create_directory(model);
  write_text(model / "config.json", R"({"auto_map": {"AutoModelForCausalLM": "modeling_x.Model"}})");
  for (auto const* const name :
       {"modeling_x.py", "tokenization_x.py", "setup.py", "pytorch_model.bin", "run.sh", "tokenizer.json"}) {
    write_text(model / name, "text");
  }
  CHECK(model_directory{model}.companions() == std::vector<std::string>{"tokenizer.json"});
  auto const files = model_files::read(model);
  REQUIRE(files.others.size() == 1);
  CHECK(files.others.front().first == "tokenizer.json");
}

TEST_CASE("a file of a model is a name without a path, and a link that leads nowhere is missed") {
  scratch_directory const directory;
  model_directory const model{directory.path(), true};
  for (std::string_view const name : {"../config.json", "/etc/passwd", "a/b", "", ".", "..", "a\\b"}) {
    CAPTURE(std::string{name});
    check_failure(failure_of([&] { (void)model.file(name); }), exit_code::bad_input,
                  directory.path().native(), "without a path");
  }
  fs::create_symlink("nowhere", directory / "model.safetensors");
  fs::create_symlink("nowhere", directory / "vocab.json");
  CHECK(model.has("model.safetensors"));
  CHECK_FALSE(model.has("config.json"));
  CHECK(model.companions() == std::vector<std::string>{"vocab.json"});
  check_failure(failure_of([&] { hub_checkpoint::open(directory.path()); }), exit_code::bad_input,
                "model.safetensors: cannot be opened: No such file");
}
