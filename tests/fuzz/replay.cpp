// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// replay PATH...: runs a fuzz target, without a fuzzer, on the given files or on those in the given
// directories: on each as it is, on prefixes of it, and with single bytes changed.

#include "fuzz.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace {

/// At most this many prefixes and changes per file.
constexpr std::size_t most_variants = 40;

void run(std::string const& input) {
  // A copy of exactly that size, so that AddressSanitizer detects a read beyond it.
  std::vector<std::uint8_t> const bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

void run_variants(std::filesystem::path const& path) {
  std::ifstream stream{path, std::ios::binary};
  std::string const input{std::istreambuf_iterator<char>{stream}, {}};
  run(input);
  auto const step = std::max<std::size_t>(1, input.size() / most_variants);
  for (std::size_t at = 0; at < input.size(); at += step) {
    run(input.substr(0, at));
    for (char const replacement : {'\0', '\xff', '0', '"', ',', '}', '['}) {
      auto changed = input;
      changed[at] = replacement;
      run(changed);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t files = 0;
  for (int i = 1; i < argc; ++i) {
    std::filesystem::path const path{argv[i]};
    if (!std::filesystem::is_directory(path)) {
      run_variants(path);
      ++files;
      continue;
    }
    for (auto const& entry : std::filesystem::directory_iterator{path}) {
      run_variants(entry.path());
      ++files;
    }
  }
  std::printf("%zu files\n", files);
  return files > 0 ? 0 : 1;
}
