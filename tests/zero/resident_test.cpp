// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/zero/resident.hpp>

#include <doctest/doctest.h>

#include "conformance/unit_store.hpp"

#include <memory>

namespace {

using namespace superoffload;

TEST_CASE_TEMPLATE("the resident store keeps a store's contract", T, float, bfloat16, double) {
  cpu::device device{2};
  for (int const micro_batches : {1, 2, 5}) {
    CAPTURE(micro_batches);
    conformance::unit_store_keeps_its_contract<T>(
        device,
        [](auto& d, auto& stream, auto const& units, bool accumulates,
           zero::gradient_sink<cpu::stream> sink) {
          return std::make_unique<zero::resident_store<cpu::device, T>>(
              d, stream, units, zero::store_options{.accumulates = accumulates}, nullptr, sink);
        },
        micro_batches);
  }
}

TEST_CASE("the store takes the bytes that it announces, and none for gradients of a frozen unit") {
  cpu::device device{1};
  cpu::stream stream{device};
  auto units = conformance::store_units();
  auto const check = [&] {
    auto const announced =
        zero::resident_store<cpu::device, bfloat16>::bytes(units, {.accumulates = true}, nullptr);
    auto const before = device.bytes_in_use();
    zero::resident_store<cpu::device, bfloat16> const store{device,  stream, units, {.accumulates = true},
                                                            nullptr, {}};
    stream.synchronize();
    CHECK(device.bytes_in_use() - before == announced.weights + announced.gradients);
    return announced.gradients;
  };
  auto const all = check();
  for (auto& tensor : units[1].tensors()) { tensor.trainable = false; }
  CHECK(check() < all);
  zero::resident_store<cpu::device, bfloat16> const store{device,  stream, units, {.accumulates = true},
                                                          nullptr, {}};
  CHECK(store.gradient(1).data == nullptr);
  stream.synchronize();
}

}  // namespace
