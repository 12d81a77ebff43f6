// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// A reference model with the numbers of Hugging Face transformers, on any device; see tests/data/README.md.
#include <superoffload/io/hub.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

#include <doctest/doctest.h>

#include "support/engine_cores.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace superoffload::test {

/// The fixture's sequences as one batch: labels [sequence, position] are shifted to targets.
inline data::batch reference_batch(io::json const& forward) {
  data::batch b;
  b.starts.push_back(0);
  for (std::size_t s = 0; s < forward["input_ids"].size(); ++s) {
    auto const ids = forward["input_ids"][s].get<std::vector<std::int32_t>>();
    auto const labels = forward["labels"][s].get<std::vector<std::int32_t>>();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      b.tokens.push_back(ids[i]);
      b.positions.push_back(static_cast<std::int32_t>(i));
      b.targets.push_back(i + 1 < ids.size() && labels[i + 1] >= 0 ? labels[i + 1] : -1);
    }
    b.starts.push_back(static_cast<std::int32_t>(b.tokens.size()));
  }
  return b;
}

template <device_policy D, class Precision, model::architecture Architecture = model::llama>
struct reference_model {
  using engine = train::engine<Architecture, D, Precision>;

  std::filesystem::path directory;
  io::json expected;
  data::batch batch;
  D device;
  engine trained;

  explicit reference_model(std::string const& name, recompute::choice recompute = recompute::choice::none)
      : directory{std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "models" / name},
        expected(io::read_json(directory / "expected.json", {.bytes = std::size_t{4} << 20})),
        batch{reference_batch(expected["forward"])},
        trained{device,
                model::read_config(directory),
                {.max_rows = batch.rows(), .max_positions = 48, .recompute = recompute}} {
    auto const weights = io::hub_checkpoint::open(directory);
    trained.initialize([&](std::string const& tensor, std::int64_t first, std::span<float> to) {
      weights.read(tensor, static_cast<std::uint64_t>(first), to);
    });
  }

  std::vector<float> gradients() {
    std::vector<float> all;
    for (auto const& unit : trained.model().units()) {
      std::vector<float> part(static_cast<std::size_t>(unit.elements()));
      trained.read_gradient(unit, 0, part);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  /// The losses of a few steps, and the final weights.
  std::vector<double> train(int steps) {
    std::vector<double> numbers;
    for (int i = 0; i < steps; ++i) {
      numbers.push_back(trained.forward(batch));
      trained.backward();
      CHECK(trained.step(1e-3).accepted);
    }
    return numbers;
  }
  std::vector<float> weights() {
    std::vector<float> all;
    for (auto const& unit : trained.model().units()) {
      std::vector<float> part(static_cast<std::size_t>(unit.elements()));
      trained.read_weights(unit, 0, part);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }
};

/// The tolerances against transformers in float32, relative to a tensor's norm.
struct tolerances {
  double loss, gradient, first, sum, logits;
};
/// In bfloat16 a token may choose another expert. That expert's gradients, of few tokens here, then differ
/// entirely.
template <class Model>
tolerances tolerances_of(Model& l) {
  if (std::is_same_v<typename Model::engine::element_type, float>) {
    return {1e-5, 1e-4, 1e-4, 1e-4, 1e-5};
  }
  return l.trained.model().settings().experts > 0 ? tolerances{2e-3, 0.1, 0.25, 0.3, 1e-2}
                                                  : tolerances{2e-3, 2e-2, 2e-2, 1e-1, 1e-2};
}

/// Checks the loss and the gradients of every parameter against transformers.
template <class Model>
void check_loss_and_gradients(Model& l) {
  auto const allowed = tolerances_of(l);
  auto const& forward = l.expected["forward"];
  CHECK(l.batch.label_tokens() == forward["label_tokens"].template get<std::int64_t>());
  double const loss = l.trained.forward(l.batch);
  CHECK(loss == doctest::Approx(forward["loss"].template get<double>()).epsilon(allowed.loss));
  l.trained.backward();
  l.trained.synchronize();
  std::size_t checked = 0;
  for (auto const& unit : l.trained.model().units()) {
    for (auto const& tensor : unit.tensors()) {
      CAPTURE(tensor.name);
      auto const& truth = forward["gradients"][tensor.name];
      std::vector<float> gradient(static_cast<std::size_t>(tensor.count()));
      l.trained.read_gradient(unit, tensor.offset, gradient);
      double sum = 0.0, squares = 0.0;
      for (double const g : gradient) {
        sum += g;
        squares += g * g;
      }
      double const l2 = truth["l2"].template get<double>();
      CHECK(std::sqrt(squares) == doctest::Approx(l2).epsilon(allowed.gradient));
      CHECK(std::abs(sum - truth["sum"].template get<double>()) <= allowed.sum * l2);
      for (std::size_t i = 0; i < truth["first"].size(); ++i) {
        CHECK(std::abs(gradient[i] - truth["first"][i].template get<double>()) <= allowed.first * l2);
      }
      CHECK(gradient[truth["peak"][0].template get<std::size_t>()] ==
            doctest::Approx(truth["peak"][1].template get<double>()).epsilon(allowed.gradient));
      ++checked;
    }
  }
  CHECK(checked == forward["gradients"].size());
}

/// Checks samples of the logits, and their norm.
template <class Model>
void check_logits(Model& l) {
  auto const allowed = tolerances_of(l);
  auto const vocabulary = static_cast<std::size_t>(l.trained.model().settings().vocabulary);
  std::vector<float> const logits = l.trained.logits(l.batch);
  double squares = 0.0;
  for (double const value : logits) { squares += value * value; }
  auto const& forward = l.expected["forward"];
  CHECK(std::sqrt(squares) ==
        doctest::Approx(forward["logits_l2"].template get<double>()).epsilon(allowed.logits));
  for (auto const& sample : forward["logits"]) {
    auto const row =
        sample["at"][0].template get<std::size_t>() * 48 + sample["at"][1].template get<std::size_t>();
    auto const& first = sample["first"];
    for (std::size_t i = 0; i < first.size(); ++i) {
      CHECK(std::abs(logits[row * vocabulary + i] - first[i].template get<double>()) <= 10 * allowed.logits);
    }
  }
}

/// Checks that recompute gives the same bits of loss and gradients, in less memory.
template <class Model>
void check_recompute(Model& kept, Model& recomputed) {
  CHECK(recomputed.trained.allocation().activations < kept.trained.allocation().activations);
  CHECK(kept.trained.forward(kept.batch) == recomputed.trained.forward(recomputed.batch));
  kept.trained.backward();
  recomputed.trained.backward();
  CHECK(kept.gradients() == recomputed.gradients());
}

}  // namespace superoffload::test
