// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/zero/resident.hpp>

#include <doctest/doctest.h>

#include "conformance/unit_store.hpp"

#include <memory>

namespace {

using namespace superoffload;

TEST_CASE_TEMPLATE("the resident store keeps a store's contract on a GPU", T, float, bfloat16, double) {
  cuda::device device;
  for (int const micro_batches : {1, 2, 5}) {
    CAPTURE(micro_batches);
    conformance::unit_store_keeps_its_contract<T>(
        device,
        [](auto& d, auto& stream, auto const& units, bool accumulates,
           zero::gradient_sink<cuda::stream> sink) {
          return std::make_unique<zero::resident_store<cuda::device, T>>(
              d, stream, units, zero::store_options{.accumulates = accumulates}, nullptr, sink);
        },
        micro_batches);
  }
}

}  // namespace
