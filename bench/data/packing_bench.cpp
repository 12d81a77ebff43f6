// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// How full packed sequences are, how equal the parts of a step, and what both take.
#include <superoffload/data/examples.hpp>
#include <superoffload/data/instructions.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/data/packing.hpp>
#include <superoffload/data/shuffle.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <benchmark/benchmark.h>

#include "data/drawn_lengths.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

/// The bundled instructions as the bundled model's tokenizer has them, or log-normal lengths.
data::example_set examples_of(bool bundled, std::int64_t max_length) {
  if (!bundled) {
    return data::testing::log_normal_examples(100'000, max_length);
  }
  std::filesystem::path const root{SUPEROFFLOAD_EXAMPLES};
  return data::encode_examples(data::read_instructions(root / "data" / "alpaca_en_demo.json"),
                               text::tokenizer::load(root / "models" / "tiny_llama"),
                               {.max_length = max_length});
}

double fill_of(data::example_set const& examples, data::packed_rows const& packed, std::int64_t max_length) {
  return static_cast<double>(examples.tokens()) /
         static_cast<double>(max_length * static_cast<std::int64_t>(packed.starts.size() - 1));
}

void packing(benchmark::State& state, bool bundled, std::int64_t max_length) {
  auto const examples = examples_of(bundled, max_length);
  auto const order = data::shuffled_rows(examples.size(), 1, 0);
  double fill = 0.0;
  for (auto _ : state) { fill = fill_of(examples, data::pack(examples, order, max_length), max_length); }
  state.counters["fill"] = fill;
  state.counters["fill_in_order"] =
      fill_of(examples, data::pack_in_order(examples, order, max_length), max_length);
  state.counters["mean_length"] =
      static_cast<double>(examples.tokens()) / static_cast<double>(examples.size());
  state.SetItemsProcessed(state.iterations() * examples.size());
}

/// Steps in 4 parts, with the work of a model of 8 billion parameters.
void sharing(benchmark::State& state, bool packs, std::int64_t max_length) {
  constexpr data::document_cost cost{3 * 2 * 7.5e9, 3.5 * 4 * 4096 * 32 / 2};
  auto const examples = examples_of(false, max_length);
  data::loader from{examples,
                    {.batch_size = packs ? 16 : 64,
                     .micro_batches = 4,
                     .packing = packs,
                     .max_length = max_length,
                     .cost = cost}};
  double largest = 0.0, sum = 0.0;
  std::int64_t steps = 0;
  for (auto _ : state) {
    auto const step = from.next();
    std::vector<double> costs;
    for (auto const& made : step.micro_batches) {
      costs.push_back(0.0);
      for (std::size_t d = 1; d < made.starts.size(); ++d) {
        costs.back() += cost(made.starts[d] - made.starts[d - 1]);
      }
    }
    auto const [least, most] = std::ranges::minmax(costs);
    if (from.where().sequence != 0) {  // not the last step of an epoch
      largest = std::max(largest, 1.0 - least / most);
      sum += 1.0 - least / most;
      ++steps;
    }
  }
  state.counters["apart_most"] = largest;
  state.counters["apart_mean"] = steps > 0 ? sum / static_cast<double>(steps) : 0.0;
}

BENCHMARK_CAPTURE(packing, bundled_512, true, 512)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(packing, bundled_1024, true, 1024)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(packing, bundled_2048, true, 2048)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(packing, log_normal_2048, false, 2048)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(packing, log_normal_4096, false, 4096)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(sharing, rows_2048, false, 2048)->Unit(benchmark::kMillisecond)->Iterations(1500);
BENCHMARK_CAPTURE(sharing, packed_2048, true, 2048)->Unit(benchmark::kMillisecond)->Iterations(1500);
BENCHMARK_CAPTURE(sharing, packed_4096, true, 4096)->Unit(benchmark::kMillisecond)->Iterations(700);

}  // namespace
