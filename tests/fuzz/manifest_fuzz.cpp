// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/checksum.hpp>
#include <superoffload/io/train_checkpoint.hpp>

#include "fuzz.hpp"

using namespace superoffload;

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::scratch_directory const directory;
  static auto const state = directory.write("rank-00000.bin", std::string(4099, '\0'));
  // With a correct digest, as an attacker would write it.
  auto const content = concat("\",\n\"manifest\":", fuzz::text_of(data, size), "}\n");
  directory.write("manifest.json",
                  concat("{\"sha256\":\"", io::sha256_hex(std::as_bytes(std::span{content})), content));
  fuzz::expect_refusal_at_most([&] {
    auto const opened = io::checkpoint_reader::open(directory.path());
    for (auto const& name : opened.names()) {
      // A chunk of zeros takes nothing of the file, but digits of the manifest.
      fuzz::require(opened.blob_bytes(name) <= (size / 8 + 1) * io::checkpoint_chunk_bytes,
                    "blobs are as large as the manifest allows");
    }
    opened.verify();
  });
  return 0;
}
