// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Weights, gradients, state and activations in host memory on a GPU: the store's contract, and whole steps
// against those with everything on the GPU.
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/zero/offloaded.hpp>

#include <doctest/doctest.h>

#include "conformance/unit_store.hpp"
#include "support/placed_training.hpp"
#include "support/small_inputs.hpp"

#include <memory>
#include <vector>

namespace {

using namespace superoffload;
using test::offloading_case;
using test::some_weights;

TEST_CASE_TEMPLATE("the offloaded store keeps a store's contract on a GPU", T, float, bfloat16, double) {
  cuda::device device;
  for (bool const gradients : {false, true}) {
    zero::offloaded_units const offloaded{
        .weights = {true, true}, .gradients = {gradients, gradients}, .weight_buffers = 2};
    for (int const micro_batches : {1, 2}) {
      conformance::unit_store_keeps_its_contract<T>(
          device,
          [&](auto& d, auto& stream, auto const& units, bool accumulates,
              zero::gradient_sink<cuda::stream> sink) {
            return std::make_unique<zero::offloaded_store<cuda::device, T>>(
                d, stream, units, zero::store_options{.accumulates = accumulates, .offloaded = offloaded},
                nullptr, sink);
          },
          micro_batches);
    }
  }
}

model::config small() {
  return {.model_type = "llama",
          .vocabulary = 61,
          .hidden = 64,
          .intermediate = 96,
          .layers = 5,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 16,
          .max_positions = 64};
}

template <class P>
using simple_engine = train::engine<model::llama, cuda::device, P>;
template <class P>
using placed_engine = train::engine<model::llama, cuda::device, P, zero::offloaded, offload::super>;
using units = offloading_case::units;

constexpr double never = 1e9, sometimes = 0.6, always = 0.05;

train::engine_options options_with(double max_norm, bool accumulates) {
  return {.max_grad_norm = max_norm, .max_rows = 12, .max_positions = 12, .accumulates = accumulates};
}

/// Runs `steps` of a simple engine, and compares other engines with it.
template <class P>
void check_bits(train::engine_options options, int steps, bool faults,
                std::vector<offloading_case> const& all) {
  cuda::device device;
  auto const expected =
      test::check_same_bits<simple_engine<P>, placed_engine<P>>(device, small(), options, steps, faults, all);
  CHECK((expected.skipped > 0) == faults);
  CHECK((expected.clipped > 0) == (options.max_grad_norm == sometimes || options.max_grad_norm == always));
  CHECK((expected.free > 0) == (options.max_grad_norm != always));
}

TEST_CASE_TEMPLATE("on a GPU, hundreds of steps give the same bits for every placement of state and weights",
                   P, precision::fp32, precision::bf16) {
  for (double const max_norm : {never, sometimes, always}) {
    check_bits<P>(options_with(max_norm, false), 200, true,
                  {{.offloaded = units::none, .tiers = "h"},
                   {.offloaded = units::none, .tiers = "s"},
                   {.offloaded = units::none, .tiers = "hs"},
                   {.offloaded = units::none, .tiers = "rh"},
                   {.offloaded = units::none, .tiers = "rs"},
                   {.offloaded = units::none, .tiers = "hhsr", .gradient_buffers = 2},
                   {.offloaded = units::blocks, .tiers = "h", .weight_buffers = 2},
                   {.offloaded = units::blocks, .tiers = "rhs", .gradient_buffers = 2},
                   {.offloaded = units::all, .tiers = "s", .weight_buffers = 1},
                   {.offloaded = units::all, .tiers = "hs", .gradient_buffers = 3}});
  }
}

TEST_CASE_TEMPLATE("on a GPU, the same with micro-batches, with sums on the device or in host memory", P,
                   precision::fp32, precision::bf16) {
  check_bits<P>(options_with(sometimes, true), 60, true,
                {{.offloaded = units::none, .tiers = "hhsr"},
                 {.offloaded = units::blocks, .tiers = "h", .gradient_buffers = 1},
                 {.offloaded = units::all, .tiers = "hs", .gradient_buffers = 3}});
}

TEST_CASE_TEMPLATE("on a GPU, the same with immediate updates of buckets", P, precision::fp32,
                   precision::bf16) {
  for (bool const accumulates : {false, true}) {
    check_bits<P>(options_with(0.0, accumulates), 60, false,
                  {{.offloaded = units::none, .tiers = "h", .immediate = true},
                   {.offloaded = units::none, .tiers = "rhs", .gradient_buffers = 2, .immediate = true},
                   {.offloaded = units::blocks, .tiers = "s", .gradient_buffers = 2, .immediate = true},
                   {.offloaded = units::all, .tiers = "hs", .gradient_buffers = 2, .immediate = true}});
  }
}

TEST_CASE_TEMPLATE("on a GPU, activations that leave it and come back change no bit", P, precision::fp32,
                   precision::bf16) {
  for (bool const accumulates : {false, true}) {
    check_bits<P>(options_with(sometimes, accumulates), 60, true,
                  {{.offloaded = units::none, .tiers = "r", .activations = {2, -1}},
                   {.offloaded = units::none, .tiers = "r", .activations = {3, 0}},
                   {.offloaded = units::none, .tiers = "hs", .activations = {2, 0}},
                   {.offloaded = units::all, .tiers = "hs", .gradient_buffers = 3, .activations = {3, 4}},
                   {.offloaded = units::blocks, .tiers = "h", .weight_buffers = 2, .activations = {2, 3}}});
  }
}

}  // namespace
