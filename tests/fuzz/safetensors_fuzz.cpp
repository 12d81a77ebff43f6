// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/safetensors.hpp>

#include "fuzz.hpp"

#include <array>
#include <cstring>
#include <map>

using namespace superoffload;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::scratch_directory const directory;
  auto const path = directory.write("input", fuzz::text_of(data, size));
  fuzz::expect_refusal_at_most([&] {
    auto const opened = io::safetensors_file::open(path);
    // The rules in another form: every data byte belongs to exactly one tensor.
    std::uint64_t header = 0;
    std::memcpy(&header, data, sizeof header);
    auto const data_bytes = size - 8 - header;
    std::vector<int> owners(data_bytes);
    for (auto const& [name, tensor] : opened.tensors()) {
      fuzz::require(tensor.begin <= tensor.end && tensor.end <= data_bytes, "tensors lie in the file");
      std::uint64_t elements = 1;
      for (auto const extent : tensor.shape) { elements *= static_cast<std::uint64_t>(extent); }
      fuzz::require(elements == tensor.elements(), "shapes are those of the spans");
      for (auto at = tensor.begin; at < tensor.end; ++at) { ++owners[at]; }
      if (tensor.type != dtype::u8) {
        std::vector<float> values(tensor.elements());
        opened.read(tensor, 0, values);
      }
    }
    for (auto const count : owners) { fuzz::require(count == 1, "every byte is of one tensor"); }
  });
  return 0;
}
