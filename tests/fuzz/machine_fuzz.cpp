// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/train/planning/machine_file.hpp>

#include "fuzz.hpp"

using namespace superoffload;

/// The description of a machine.
int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static fuzz::scratch_directory const directory;
  auto const file = directory.write("machine.json", fuzz::text_of(data, size));
  fuzz::expect_refusal_at_most([&] {
    auto const read = train::read_machine(file);
    // An exception here would blame the input, which was accepted.
    auto const written = directory.write("again.json", train::to_json(read, "input"));
    auto const again = train::read_machine(written);
    fuzz::require(again.name == read.name && again.host.cores == read.host.cores &&
                      again.adam.threads == read.adam.threads,
                  "what was read can be written and read");
  });
  return 0;
}
