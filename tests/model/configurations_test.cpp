// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// What unusual but legal values of config.json mean: losses and gradients against those of Hugging Face
// transformers (tests/data/configurations/make.py). Weights are a function of name and position.
#include <superoffload/core/error.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/model/gpt_oss.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/model/mistral.hpp>
#include <superoffload/model/phi3.hpp>
#include <superoffload/model/qwen2.hpp>
#include <superoffload/model/qwen3.hpp>
#include <superoffload/model/qwen3_moe.hpp>
#include <superoffload/model/seed_oss.hpp>
#include <superoffload/model/view.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"
#include "support/scratch_directory.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using view = model::view<cpu::device, double>;

constexpr std::int32_t rows = 160;

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

/// `values` of make.py.
void fill(autograd::tensor_entry const& tensor, std::span<double> weights) {
  auto const& name = tensor.name;
  auto const has = [&](char const* part) { return name.find(part) != std::string::npos; };
  std::uint64_t seed = 0xcbf29ce484222325U;
  for (char const c : name) { seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3U; }
  double const scale = has("norm")    ? 0.5
                       : has("embed") ? 2.0
                       : has("bias") || tensor.shape.size() == 1
                           ? 1.4
                           : (has("down_proj") || has("o_proj") ? 2.4 : 4.5) /
                                 std::sqrt(static_cast<double>(tensor.shape.back()));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto const uniform = std::ldexp(static_cast<double>(mixed(seed + i) >> 11U), -53) - 0.5;
    weights[i] = (has("norm") ? 1.0 : 0.0) + scale * uniform;
  }
}

/// One document, whose rows' targets are the next tokens.
struct sample {
  std::vector<std::int32_t> tokens, targets, positions, starts{0, rows}, order, segment_starts, segment_ids;
  nn::batch batch;

  sample() {
    for (std::int32_t i = 0; i < rows; ++i) {
      tokens.push_back((i * i * 7 + 3 * i + i / 61) % 61);
      positions.push_back(i);
      order.push_back(i);
    }
    targets.assign(tokens.begin() + 1, tokens.end());
    targets.push_back(-1);
    std::ranges::stable_sort(order, {}, [&](std::int32_t i) { return tokens[static_cast<std::size_t>(i)]; });
    for (std::int32_t i = 0; i < rows; ++i) {
      auto const token = tokens[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
      if (segment_ids.empty() || segment_ids.back() != token) {
        segment_ids.push_back(token);
        segment_starts.push_back(i);
      }
    }
    segment_starts.push_back(rows);
    batch = {.rows = rows,
             .documents = 1,
             .segments = static_cast<std::int64_t>(segment_ids.size()),
             .longest = rows,
             .divisor = rows - 1};
    batch.tokens = tokens.data();
    batch.targets = targets.data();
    batch.positions = positions.data();
    batch.starts = starts.data();
    batch.order = order.data();
    batch.segment_starts = segment_starts.data();
    batch.segment_ids = segment_ids.data();
  }
};

struct outcome {
  double loss, gradient_norm;
};

outcome run(view const& v, bool with_backward) {
  test::graph g{v.units(), std::size_t{1} << 28};
  double squares = 0.0;
  for (auto const& unit : v.units()) {
    for (auto const& tensor : unit.tensors()) { fill(tensor, g.weights(unit.id(), tensor)); }
  }
  sample const s;
  auto const tables = v.make_tables(g.device, g.stream, rows);
  g.on.reset(with_backward);
  g.on.forget_gradients();
  auto const loss = v.loss(g.on, s.batch, tables);
  if (with_backward) {
    g.on.backward();
  }
  g.stream.synchronize();
  for (auto const& unit : v.units()) {
    for (auto const& tensor : unit.tensors()) {
      for (double const d : g.gradient(unit.id(), tensor)) { squares += d * d; }
    }
  }
  return {*loss.total / (rows - 1), std::sqrt(squares)};
}

template <class... Architectures>
std::optional<outcome> run_one_of(model::config const& c, bool with_backward) {
  std::optional<outcome> done;
  auto const try_one = [&]<class A>(std::type_identity<A>) {
    if (c.model_type == A::model_type()) {
      A const made{c};
      done = run(made, with_backward);
    }
  };
  (try_one(std::type_identity<Architectures>{}), ...);
  return done;
}

model::config read(io::json const& text) {
  test::scratch_directory const directory;
  std::ofstream{directory.path() / "config.json"} << text.dump();
  return model::read_config(directory.path());
}

/// \returns the error of the configuration, if it is refused.
std::string check(io::json const& one) {
  bool const with_backward = one["gradient_norm"].is_number();
  std::optional<outcome> done;
  try {
    done = run_one_of<model::llama, model::mistral, model::phi3, model::qwen2, model::qwen3, model::qwen3_moe,
                      model::seed_oss, model::gpt_oss>(read(one["config"]), with_backward);
  } catch (error const& e) { return e.what(); }
  REQUIRE(done);
  CHECK(done->loss == doctest::Approx(one["loss"].get<double>()).epsilon(3e-7));
  if (with_backward) {
    CHECK(done->gradient_norm == doctest::Approx(one["gradient_norm"].get<double>()).epsilon(3e-6));
  }
  return "";
}

TEST_CASE("unusual configurations have the losses and gradients of transformers") {
  auto const* const given = std::getenv("SUPEROFFLOAD_CONFIGURATIONS");
  auto const cases = io::read_json(
      given != nullptr ? std::filesystem::path{given}
                       : std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "configurations" / "expected.json",
      {.bytes = std::size_t{8} << 20});
  std::size_t refused = 0;
  for (auto const& one : cases) {
    auto const text = one.dump();
    CAPTURE(text);
    auto const complaint = check(one);
    if (complaint.empty()) {
      continue;
    }
    CAPTURE(complaint);
    ++refused;
    // What is refused is a random configuration, and the error names one of the fields that make it unusual.
    bool named = false;
    if (one.contains("changed")) {
      for (auto const& key : one["changed"]) {
        named = named || complaint.find(key.get<std::string>()) != std::string::npos;
      }
    }
    CHECK(named);
  }
  if (given != nullptr) {
    MESSAGE(cases.size(), " configurations, of which ", refused, " are refused");
  }
}

}  // namespace
