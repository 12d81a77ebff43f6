// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/cross_entropy.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <cstdint>
#include <vector>

namespace {

using superoffload::autograd::pass;
using superoffload::autograd::unit_layout;
using superoffload::test::check_derivatives;
using superoffload::test::graph;
namespace nn = superoffload::nn;

/// A head with a graph of its own; every third row has no target.
struct head_run {
  head_run(std::int64_t rows, std::int64_t vocabulary, std::int64_t width,
           std::size_t bytes = std::size_t{1} << 24)
      : columns{width},
        unit{0, "unit"},
        head{unit.add_matrix({{"head", vocabulary}}, width)},
        g{{unit}, bytes},
        x_values{g.random(rows * width)} {
    for (std::int64_t r = 0; r < rows; ++r) {
      targets.push_back(r % 3 == 1 ? -1 : static_cast<std::int32_t>(r * 7919 % vocabulary));
    }
    batch = {.rows = rows, .divisor = 5};
    batch.targets = targets.data();
  }

  /// The loss divided by the batch's divisor, like its gradient.
  double loss(bool with_backward) {
    g.on.reset(with_backward);
    x = g.input(x_values, columns);
    auto const sum = g.on.scope({0}, with_backward ? pass::both : pass::forward,
                                [&] { return nn::head_loss(x, head, batch); });
    g.stream.synchronize();
    return *sum.total / 5.0;
  }
  void gradients() {
    g.on.forget_gradients();
    loss(true);
    g.on.backward();
    g.stream.synchronize();
    x_gradient.assign(x.gradient(), x.gradient() + x.count());
    auto const of_head = g.gradient(0, g.units()[0].tensors()[0]);
    head_gradient.assign(of_head.begin(), of_head.end());
  }

  std::int64_t columns;
  unit_layout unit;
  superoffload::autograd::parameter head;
  graph g;
  std::vector<double> x_values, x_gradient, head_gradient;
  std::vector<std::int32_t> targets;
  nn::batch batch;
  graph::variable x;
};

TEST_CASE("head and cross-entropy have the gradient of their formula") {
  head_run r{7, 11, 4};
  r.gradients();
  check_derivatives(r.x_values, r.x_gradient, [&] { return r.loss(false); });
  check_derivatives(r.g.weights(0, r.g.units()[0].tensors()[0]), r.head_gradient,
                    [&] { return r.loss(false); });
}

TEST_CASE("several chunks of tokens give the same sum and gradient as the formula") {
  constexpr std::int64_t rows = 150;
  constexpr std::int64_t vocabulary = 70'000;
  using function = nn::head_loss_function<superoffload::cpu::device, double>;
  REQUIRE(function::chunk_rows(rows, vocabulary) < rows / 2);
  head_run r{rows, vocabulary, 2, std::size_t{1} << 27};
  r.gradients();
  auto const some = [&](std::span<double> all, std::vector<double> const& gradient, std::size_t stride) {
    for (std::size_t at = 1; at < all.size(); at += stride) {
      check_derivatives(all.subspan(at, 1), std::span{gradient}.subspan(at, 1),
                        [&] { return r.loss(false); });
    }
  };
  some(r.x_values, r.x_gradient, 67);
  some(r.g.weights(0, r.g.units()[0].tensors()[0]), r.head_gradient, 31'907);
  double sum =
      0.0;  // softmax less target: the gradient of each row's logits, and so the head's column, sums to zero
  for (std::size_t i = 0; i < r.head_gradient.size(); i += 2) { sum += r.head_gradient[i]; }
  CHECK(sum == doctest::Approx(0.0).scale(1.0).epsilon(1e-9));
}

}  // namespace
