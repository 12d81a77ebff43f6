// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// One forward and backward against the numbers of Hugging Face transformers; see tests/data/README.md.
#include <superoffload/io/hub.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

/// The fixture's sequences as one batch: labels [sequence, position] are shifted to targets.
data::batch batch_of(io::json const& forward) {
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

using engine = train::engine<model::llama, precision::fp32>;

struct loaded {
  std::filesystem::path directory;
  io::json expected;
  data::batch batch;
  cpu::device device{2};
  engine trained;

  explicit loaded(std::string const& name, bool recompute = false)
      : directory{std::filesystem::path{SUPEROFFLOAD_TEST_DATA} / "models" / name},
        expected(io::read_json(directory / "expected.json", {.bytes = std::size_t{4} << 20})),
        batch{batch_of(expected["forward"])},
        trained{device,
                model::read_config(directory),
                {.max_rows = batch.rows(), .max_positions = 48, .recompute_blocks = recompute}} {
    auto const weights = io::hub_checkpoint::open(directory);
    trained.initialize([&](std::string const& tensor, std::int64_t first, std::span<float> to) {
      weights.read(tensor, static_cast<std::uint64_t>(first), to);
    });
  }
};

TEST_CASE("loss and gradients of every parameter are those of transformers") {
  std::string name;
  SUBCASE("untied") { name = "llama"; }
  SUBCASE("tied") { name = "llama_tied"; }
  loaded l{name};
  auto const& forward = l.expected["forward"];
  CHECK(l.batch.label_tokens() == forward["label_tokens"].get<std::int64_t>());
  double const loss = l.trained.forward(l.batch);
  CHECK(loss == doctest::Approx(forward["loss"].get<double>()).epsilon(1e-5));
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
      double const l2 = truth["l2"].get<double>();
      CHECK(std::sqrt(squares) == doctest::Approx(l2).epsilon(1e-4));
      CHECK(std::abs(sum - truth["sum"].get<double>()) <= 1e-4 * l2);
      for (std::size_t i = 0; i < truth["first"].size(); ++i) {
        CHECK(std::abs(gradient[i] - truth["first"][i].get<double>()) <= 1e-4 * l2);
      }
      CHECK(gradient[truth["peak"][0].get<std::size_t>()] ==
            doctest::Approx(truth["peak"][1].get<double>()).epsilon(1e-4));
      ++checked;
    }
  }
  CHECK(checked == forward["gradients"].size());
}

TEST_CASE("logits are those of transformers") {
  std::string name;
  SUBCASE("untied") { name = "llama"; }
  SUBCASE("tied") { name = "llama_tied"; }
  loaded l{name};
  auto const& truth = l.expected["forward"]["logits"];
  auto const vocabulary = static_cast<std::size_t>(l.trained.model().settings().vocabulary);
  std::vector<float> const logits = l.trained.logits(l.batch);
  double squares = 0.0;
  for (double const value : logits) { squares += value * value; }
  CHECK(std::sqrt(squares) ==
        doctest::Approx(l.expected["forward"]["logits_l2"].get<double>()).epsilon(1e-5));
  for (auto const& sample : truth) {
    auto const row = sample["at"][0].get<std::size_t>() * 48 + sample["at"][1].get<std::size_t>();
    auto const& first = sample["first"];
    for (std::size_t i = 0; i < first.size(); ++i) {
      CHECK(std::abs(logits[row * vocabulary + i] - first[i].get<double>()) <= 1e-4);
    }
  }
}

TEST_CASE("recompute gives the same loss and gradients bit for bit") {
  loaded kept{"llama"}, again{"llama", true};
  CHECK(again.trained.plan().activations < kept.trained.plan().activations);
  CHECK(kept.trained.forward(kept.batch) == again.trained.forward(again.batch));
  kept.trained.backward();
  again.trained.backward();
  for (auto const& unit : kept.trained.model().units()) {
    std::vector<float> a(static_cast<std::size_t>(unit.elements())), b(a.size());
    kept.trained.read_gradient(unit, 0, a);
    again.trained.read_gradient(unit, 0, b);
    CHECK(a == b);
  }
}

}  // namespace
