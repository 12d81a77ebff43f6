// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/zero/streamed.hpp>

#include <doctest/doctest.h>

#include "conformance/unit_store.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace superoffload;
using autograd::pass;

template <class T>
using store_of = zero::streamed_store<cpu::device, T>;

TEST_CASE_TEMPLATE("the streamed store keeps a store's contract", T, float, bfloat16, double) {
  cpu::device device{2};
  std::vector<bool> const nothing{}, first{true, false}, all{true, true};
  for (auto const& weights : {nothing, first, all}) {
    for (auto const& gradients : {nothing, first, all}) {
      for (int const micro_batches : {1, 2, 5}) {
        if (micro_batches > 1 && !gradients.empty()) {
          continue;
        }
        CAPTURE(micro_batches);
        zero::flow const f{.weights = weights, .gradients = gradients, .weight_rooms = 2};
        conformance::unit_store_keeps_its_contract<T>(
            device,
            [&](auto& d, auto& stream, auto const& units, bool accumulates, zero::gradient_sink sink) {
              return std::make_unique<store_of<T>>(d, stream, units, accumulates, f, sink);
            },
            micro_batches);
      }
    }
  }
}

TEST_CASE("the streamed store takes the bytes it announces, of both memories") {
  cpu::device device{1};
  cpu::stream stream{device};
  auto const units = conformance::store_units();
  std::size_t const elements[] = {static_cast<std::size_t>(units[0].elements()),
                                  static_cast<std::size_t>(units[1].elements())};
  auto const check = [&](zero::flow const& f) {
    auto const announced = store_of<bfloat16>::bytes(units, false, f);
    auto const device_before = device.bytes_in_use();
    auto const host_before = device.bytes_in_use(memory::host);
    store_of<bfloat16> const store{device, stream, units, false, f, {}};
    stream.synchronize();
    CHECK(device.bytes_in_use() - device_before == announced.weights + announced.gradients);
    CHECK(device.bytes_in_use(memory::host) - host_before == announced.host);
    return announced;
  };
  CHECK(check({}).host == 0);
  auto const one = check({.weights = {true, true}, .weight_rooms = 1});
  CHECK(one.weights == 2 * std::max(elements[0], elements[1]));
  CHECK(one.host == 2 * (elements[0] + elements[1]));
  // No more rooms than units.
  CHECK(check({.weights = {true, true}, .weight_rooms = 8}).weights ==
        4 * std::max(elements[0], elements[1]));
  CHECK(check({.gradients = {true, false}, .gradient_rooms = 5}).gradients ==
        2 * elements[0] + 4 * elements[1]);
}

/// Units of one weight, gradients that a reader of its own takes when it likes.
struct flowing {
  cpu::device device{2};
  cpu::stream compute{device}, reader{device};
  std::vector<autograd::unit_layout> units;
  std::vector<std::unique_ptr<cpu::event>> read;
  std::vector<float> values;
  std::atomic<bool> may_read{true};
  std::string taken;
  std::unique_ptr<store_of<float>> store;

  flowing(int count, int rooms) {
    zero::flow which{.gradient_rooms = rooms};
    for (int u = 0; u < count; ++u) {
      units.emplace_back(u, "unit");
      units.back().add_vector("w", 1);
      which.gradients.push_back(true);
      read.push_back(std::make_unique<cpu::event>(device));
    }
    values.assign(static_cast<std::size_t>(count), -1.0F);
    store = std::make_unique<store_of<float>>(
        device, compute, units, false, which,
        zero::gradient_sink{this,
                            [](void* self, int unit, zero::unit_gradient gradient) {
                              static_cast<flowing*>(self)->take(unit, gradient);
                            },
                            [](void* self, int unit) {
                              auto& flow = *static_cast<flowing*>(self);
                              flow.taken += static_cast<char>('0' + unit);
                              flow.compute.wait(*flow.read[static_cast<std::size_t>(unit)]);
                            }});
  }
  ~flowing() {
    drain(compute);
    drain(reader);
  }
  void take(int unit, zero::unit_gradient gradient) {
    cpu::event is_final;
    compute.record(is_final);
    reader.wait(is_final);
    reader.enqueue([this] {
      while (!may_read) { std::this_thread::yield(); }
    });
    reader.copy(&values[static_cast<std::size_t>(unit)], gradient.data, sizeof(float));
    reader.record(*read[static_cast<std::size_t>(unit)]);
  }
  void backward(int unit, float value) {
    auto* const gradient = static_cast<float*>(store->acquire(unit, pass::backward).gradient);
    compute.enqueue([gradient, value] { *gradient = value; });
    store->release(unit, pass::backward);
    store->reduce(unit);
  }
};

TEST_CASE("gradients take turns in their rooms, behind whoever reads them, whatever their number") {
  for (int const rooms : {1, 2, 3, 4, 9}) {
    CAPTURE(rooms);
    flowing f{4, rooms};
    for (int step = 0; step < 3; ++step) {
      f.may_read = false;
      f.taken.clear();
      for (int u = 3; u >= 0; --u) { f.backward(u, static_cast<float>(10 * step + u)); }
      f.may_read = true;
      f.compute.synchronize();
      f.reader.synchronize();
      for (int u = 0; u < 4; ++u) {
        CHECK(f.values[static_cast<std::size_t>(u)] == static_cast<float>(10 * step + u));
      }
      // A room is asked for exactly when it is given to another gradient.
      auto const first_step = rooms == 1 ? "321" : rooms == 2 ? "32" : rooms == 3 ? "3" : "";
      CHECK(f.taken.size() == (step == 0 ? std::string{first_step}.size() : 4));
      if (step == 0) {
        CHECK(f.taken == first_step);
      }
    }
  }
}

TEST_CASE("a gradient that has left is not there any more") {
  flowing f{3, 2};
  for (int u = 2; u >= 0; --u) { f.backward(u, 1.0F); }
  CHECK(f.store->gradient(2).data == nullptr);
  CHECK(f.store->gradient(1).data != nullptr);
  CHECK(f.store->gradient(0).data != nullptr);
}

TEST_CASE("more unfinished gradients than rooms, and sums of several micro-batches, are refused") {
  flowing f{2, 1};
  f.store->acquire(0, pass::backward);
  CHECK_THROWS_AS(f.store->acquire(1, pass::backward), error);
  zero::flow const flow{.gradients = {true, true}};
  CHECK_THROWS_AS((store_of<float>{f.device, f.compute, f.units, true, flow, {}}), error);
}

TEST_CASE(
    "weights that were updated in host memory are fetched after the gradient, and before it they stay") {
  cpu::device device{2};
  cpu::stream compute{device};
  std::vector<autograd::unit_layout> units{autograd::unit_layout{0, "unit"}};
  units[0].add_vector("w", 1);
  store_of<float> store{device,
                        compute,
                        units,
                        false,
                        {.weights = {true}},
                        {nullptr, [](void*, int, zero::unit_gradient) {}, [](void*, int) {}}};
  auto const value = [&](pass p) {
    auto const* const weights = static_cast<float const*>(store.acquire(0, p).weights);
    float seen = 0.0F;
    compute.copy(&seen, weights, sizeof seen);
    store.release(0, p);
    compute.synchronize();
    return seen;
  };
  store.expect_writes(0);
  *store.weights(0) = 1.0F;
  CHECK(value(pass::forward) == 1.0F);
  *store.weights(0) = 2.0F;  // which nobody may do now: so it is seen that nothing is fetched
  CHECK(value(pass::backward) == 1.0F);
  store.reduce(0);
  CHECK(value(pass::forward) == 2.0F);
  CHECK(&store.reader(0) != &compute);
}

}  // namespace
