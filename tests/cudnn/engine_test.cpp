// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Training with cuDNN's attention against training with the device's own, with batches of changing shapes.
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cudnn/attention.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace superoffload;

constexpr std::int64_t most_rows = 1024;
constexpr std::int64_t longest = 512;

data::batch batch_of(std::vector<std::int32_t> const& lengths) {
  data::batch b;
  b.starts.push_back(0);
  std::int32_t token = 1;
  for (auto const length : lengths) {
    for (std::int32_t i = 0; i < length; ++i) {
      token = (token * 5 + i) % 97;  // something to learn
      b.tokens.push_back(token);
      b.positions.push_back(i);
      b.targets.push_back(i + 1 < length ? (token * 5 + i + 1) % 97 : -1);
    }
    b.starts.push_back(static_cast<std::int32_t>(b.tokens.size()));
  }
  return b;
}

struct run {
  cuda::device device;
  std::vector<double> losses;
  std::size_t activations = 0;

  run(bool with_cudnn, recompute::choice recompute) {
    if (with_cudnn) {
      device.attend_with(std::make_unique<cudnn::attention>(device));
    }
    train::engine<model::llama, cuda::device, precision::bf16> engine{
        device,
        {.model_type = "llama",
         .vocabulary = 128,
         .hidden = 256,
         .intermediate = 512,
         .layers = 2,
         .heads = 4,
         .kv_heads = 2,
         .head_dim = 64,
         .max_positions = longest},
        {.max_rows = most_rows, .max_positions = longest, .recompute = recompute}};
    activations = engine.allocation().activations;
    engine.initialize([](std::string const& name, std::int64_t first, std::span<float> to) {
      std::mt19937_64 random{std::hash<std::string>{}(name) + static_cast<std::uint64_t>(first)};
      std::normal_distribution<float> normal{0.0F, 0.05F};
      for (auto& weight : to) { weight = name.find("norm") == std::string::npos ? normal(random) : 1.0F; }
    });
    std::vector<std::int32_t> const shapes[] = {{512, 512}, {256, 256, 256, 256}, {17, 300, 1, 0, 212, 99},
                                                {512, 512}, {40, 40, 40},         {512, 511}};
    for (auto const& lengths : shapes) {
      losses.push_back(engine.forward(batch_of(lengths)));
      engine.backward();
      CHECK(engine.step(1e-3).accepted);
    }
    CHECK(static_cast<double>(device.peak_bytes()) ==
          doctest::Approx(static_cast<double>(engine.allocation().total())).epsilon(0.03));
  }
};

TEST_SUITE("gpu") {
  TEST_CASE("training with cuDNN's attention repeats bit for bit, and follows that with the device's own") {
    run const own{false, recompute::choice::none}, once{true, recompute::choice::none},
        twice{true, recompute::choice::none}, again{true, recompute::choice::every_block};
    CHECK(once.losses == twice.losses);
    CHECK(once.losses == again.losses);
    CHECK(once.losses.back() < 0.9 * once.losses.front());
    for (std::size_t i = 0; i < own.losses.size(); ++i) {
      CHECK(once.losses[i] == doctest::Approx(own.losses[i]).epsilon(1e-2));
    }
    // The workspace is part of the plan, and was in the engine's arena.
    CHECK(once.activations > own.activations);
  }
}

}  // namespace
