// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/text/byte_alphabet.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <benchmark/benchmark.h>

#include "texts.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

using namespace superoffload;
using namespace superoffload::bench;
using text::tokenizer;
using text::tokenizer_definition;

/// `family` with a vocabulary of `merges` merges learned from the sample: the reference vocabularies have a
/// few hundred, and with more of them most words are one token, as in a real model.
tokenizer_definition trained(std::string const& family, std::size_t merges) {
  auto definition = reference(family);
  std::map<std::string, std::int64_t> counts;
  for (auto const& row : rows()) {
    for (auto const& piece : definition.pre_tokenizer.pieces(row)) { ++counts[piece]; }
  }
  std::vector<std::pair<std::vector<std::int32_t>, std::int64_t>> words;
  for (auto const& [word, count] : counts) {
    std::vector<std::int32_t> symbols;
    for (char const byte : word) { symbols.push_back(static_cast<unsigned char>(byte)); }
    words.emplace_back(symbols, count);
  }

  definition.vocabulary.clear();
  definition.merges.clear();
  definition.added_tokens.clear();
  definition.prefix.clear();
  definition.ignore_merges = false;
  std::unordered_map<std::string, std::int32_t> ids;
  auto const id_of = [&](std::string const& letters) {
    auto const [entry, is_new] =
        ids.emplace(letters, static_cast<std::int32_t>(definition.vocabulary.size()));
    if (is_new) {
      definition.vocabulary.push_back(letters);
    }
    return entry->second;
  };
  for (int byte = 0; byte < 256; ++byte) {
    id_of(text::to_byte_alphabet(std::string(1, static_cast<char>(byte))));
  }
  // Many pairs per round instead of one, more as they get rarer: as good for timing, and done in seconds.
  while (definition.merges.size() < merges) {
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> pairs;
    for (auto const& [symbols, count] : words) {
      for (std::size_t i = 0; i + 1 < symbols.size(); ++i) { pairs[{symbols[i], symbols[i + 1]}] += count; }
    }
    std::vector<std::pair<std::int64_t, std::pair<std::int32_t, std::int32_t>>> best;
    for (auto const& [pair, count] : pairs) { best.emplace_back(count, pair); }
    if (best.empty()) {
      break;
    }
    std::ranges::sort(best, std::greater{});
    best.resize(std::min(best.size(), 1 + definition.merges.size() / 30));
    std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> results;
    for (auto const& [count, pair] : best) {
      auto const result = id_of(definition.vocabulary[static_cast<std::size_t>(pair.first)] +
                                definition.vocabulary[static_cast<std::size_t>(pair.second)]);
      definition.merges.push_back({pair.first, pair.second, result});
      results[pair] = result;
    }
    for (auto& [symbols, count] : words) {
      std::size_t kept = 0;
      for (std::size_t i = 0; i < symbols.size(); ++i, ++kept) {
        auto const found =
            i + 1 < symbols.size() ? results.find({symbols[i], symbols[i + 1]}) : results.end();
        symbols[kept] = found == results.end() ? symbols[i] : found->second;
        i += found != results.end();
      }
      symbols.resize(kept);
    }
  }
  return definition;
}

void encode(benchmark::State& state, tokenizer_definition const& definition,
            std::vector<std::string> const& texts) {
  tokenizer const tokenizer{definition};
  std::vector<std::int32_t> ids;
  for (auto _ : state) {
    ids.clear();
    for (auto const& text : texts) { tokenizer.encode(text, ids); }
    benchmark::DoNotOptimize(ids.data());
  }
  std::size_t bytes = 0;
  for (auto const& text : texts) { bytes += text.size(); }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * static_cast<std::int64_t>(state.iterations()));
  state.counters["bytes/token"] = static_cast<double>(bytes) / static_cast<double>(ids.size());
}

int const registered = [] {
  for (std::string const family : families) {
    auto const add = [&](std::string const& name, auto definition, auto texts) {
      benchmark::RegisterBenchmark((name + '/' + family).c_str(), [=](benchmark::State& state) {
        encode(state, definition(family), texts());
      })->Unit(benchmark::kMillisecond);
    };
    auto const small = [](std::string const& name) { return reference(name); };
    auto const large = [](std::string const& name) { return trained(name, 8000); };
    add("rows", small, [] { return rows(); });
    if (family == "llama3" || family == "gpt_oss") {
      add("rows_8000_merges", large, [] { return rows(); });
    }
    add("joined_1", small, [] { return joined(1); });
    add("joined_16", small, [] { return joined(16); });
    add("decomposed", small, [] { return repeated("de\u0301ja\u0300 vu, "); });
    add("chinese", small, [] { return repeated("\u4F60\u597D\uFF0C\u4E16\u754C "); });
    add("one_letter", small, [] { return repeated("a"); });
    add("one_space", small, [] { return repeated(" "); });
  }
  return 0;
}();

}  // namespace
