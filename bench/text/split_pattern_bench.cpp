// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/split_pattern.hpp>

#include <benchmark/benchmark.h>

#include "texts.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using namespace superoffload::bench;

void split(benchmark::State& state, text::split_pattern const& pattern,
           std::vector<std::string> const& texts) {
  std::size_t bytes = 0;
  std::size_t pieces = 0;
  for (auto _ : state) {
    bytes = pieces = 0;
    for (auto const& text : texts) {
      bytes += text.size();
      pieces += pattern(text).size();
    }
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * static_cast<std::int64_t>(state.iterations()));
  state.counters["bytes/piece"] = static_cast<double>(bytes) / static_cast<double>(pieces);
}

int const registered = [] {
  for (std::string const family : families) {
    auto const add = [&](std::string const& name, auto texts) {
      benchmark::RegisterBenchmark(("split_" + name + '/' + family).c_str(), [=](benchmark::State& state) {
        split(state, pattern(family), texts());
      })->Unit(benchmark::kMillisecond);
    };
    add("rows", [] { return rows(); });
    add("decomposed", [] { return repeated("de\u0301ja\u0300 vu, "); });
    add("chinese", [] { return repeated("\u4F60\u597D\uFF0C\u4E16\u754C "); });
    add("one_letter", [] { return repeated("a"); });
    add("one_space", [] { return repeated(" "); });
  }
  return 0;
}();

}  // namespace
