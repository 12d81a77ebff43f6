// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/hub.hpp>

#include "fuzz.hpp"

using namespace superoffload;

namespace {

/// A directory with the shards that inputs may name: x-1 with tensor a, x-2 with tensor b.
struct shards : fuzz::scratch_directory {
  shards() {
    for (auto const& [shard, tensor] :
         {std::pair{"x-1.safetensors", "a"}, std::pair{"x-2.safetensors", "b"}}) {
      std::vector<io::tensor_declaration> const declared{{tensor, dtype::f32, {0}}};
      io::safetensors_writer{path() / shard, declared}.finish();
    }
  }
};

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static shards const directory;
  directory.write("model.safetensors.index.json", fuzz::text_of(data, size));
  fuzz::expect_refusal_at_most([&] {
    auto const opened = io::hub_checkpoint::open(directory.path());
    for (auto const& name : opened.names()) {
      fuzz::require(name == "a" || name == "b", "only tensors of the shards are found");
      opened.read(name, 0, {});
    }
  });
  return 0;
}
