// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/zero/offloaded.hpp>

#include <doctest/doctest.h>

#include "conformance/unit_store.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace superoffload;
using autograd::pass;

template <class T>
using store_of = zero::offloaded_store<cpu::device, T>;

TEST_CASE_TEMPLATE("the offloaded store keeps a store's contract", T, float, bfloat16, double) {
  cpu::device device{2};
  std::vector<bool> const nothing{}, first{true, false}, all{true, true};
  for (auto const& weights : {nothing, first, all}) {
    for (auto const& gradients : {nothing, first, all}) {
      for (int const micro_batches : {1, 2, 5}) {
        CAPTURE(micro_batches);
        zero::offloaded_units const f{.weights = weights, .gradients = gradients, .weight_buffers = 2};
        conformance::unit_store_keeps_its_contract<T>(
            device,
            [&](auto& d, auto& stream, auto const& units, bool accumulates,
                zero::gradient_sink<cpu::stream> sink) {
              return std::make_unique<store_of<T>>(
                  d, stream, units, zero::store_options{.accumulates = accumulates, .offloaded = f}, nullptr,
                  sink);
            },
            micro_batches);
      }
    }
  }
}

TEST_CASE("the offloaded store takes the bytes that it announces, of both memories") {
  cpu::device device{1};
  cpu::stream stream{device};
  auto const units = conformance::store_units();
  std::size_t const elements[] = {static_cast<std::size_t>(units[0].elements()),
                                  static_cast<std::size_t>(units[1].elements())};
  auto const check = [&](zero::offloaded_units const& f, bool accumulates = false) {
    auto const announced =
        store_of<bfloat16>::bytes(units, {.accumulates = accumulates, .offloaded = f}, nullptr);
    auto const device_before = device.bytes_in_use();
    auto const host_before = device.bytes_in_use(memory::host);
    store_of<bfloat16> const store{device,  stream, units, {.accumulates = accumulates, .offloaded = f},
                                   nullptr, {}};
    stream.synchronize();
    CHECK(device.bytes_in_use() - device_before == announced.weights + announced.gradients);
    CHECK(device.bytes_in_use(memory::host) - host_before == announced.host);
    return announced;
  };
  CHECK(check({}).host == 0);
  auto const one = check({.weights = {true, true}, .weight_buffers = 1});
  CHECK(one.weights == 2 * std::max(elements[0], elements[1]));
  CHECK(one.host == 2 * (elements[0] + elements[1]));
  // No more buffers than units.
  CHECK(check({.weights = {true, true}, .weight_buffers = 8}).weights ==
        4 * std::max(elements[0], elements[1]));
  CHECK(check({.gradients = {true, false}, .gradient_buffers = 5}).gradients ==
        2 * elements[0] + 4 * elements[1]);
  // Sums are wide, and so are their buffers.
  auto const sums = check({.weights = {true, true}, .gradients = {true, false}, .weight_buffers = 1}, true);
  CHECK(sums.gradients == 4 * elements[0] + 4 * elements[1]);
  CHECK(sums.host == (2 + 4) * elements[0] + 2 * elements[1]);
}

TEST_CASE("the first and the last unit share one buffer, and blocks take turns in smaller ones") {
  cpu::device device{2};
  cpu::stream compute{device};
  std::vector<autograd::unit_layout> units;
  for (int u = 0; u < 5; ++u) {
    units.emplace_back(u, "unit");
    units.back().add_vector("w", u == 0 ? 4096 : u == 4 ? 2048 : 256);
  }
  std::vector<bool> const all(units.size(), true);
  zero::store_options const options{
      .accumulates = true,
      .offloaded = {.weights = all, .gradients = all, .weight_buffers = 3, .gradient_buffers = 3}};
  auto const bytes = store_of<bfloat16>::bytes(units, options, nullptr);
  CHECK(bytes.weights == 2 * (4096 + 256 + 256));
  CHECK(bytes.gradients == 4 * (4096 + 256 + 256));
  CHECK(bytes.host == (2 + 4) * (4096 + 2048 + 3 * 256));
  zero::gradient_sink<cpu::stream> const sink{.ready = [](void*, int, zero::unit_gradient) {},
                                              .taken = [](void*, int, cpu::stream&) {}};
  store_of<bfloat16> store{device, compute, units, options, nullptr, sink};
  for (auto const& u : units) {
    store.expect_writes(u.id());
    std::fill_n(store.weights(u.id()), u.elements(), bfloat16{static_cast<float>(u.id())});
  }
  auto const backward = [&](int unit, bool first) {
    auto const at = store.acquire(unit, pass::backward);
    auto const n = static_cast<std::size_t>(units[static_cast<std::size_t>(unit)].elements());
    compute.synchronize();
    auto const weights = std::span{static_cast<bfloat16 const*>(at.weights), n};
    CHECK(std::all_of(weights.begin(), weights.end(),
                      [&](bfloat16 w) { return float{w} == static_cast<float>(unit); }));
    auto const gradient = std::span{static_cast<float*>(at.gradient), n};
    for (auto& g : gradient) { g = (first ? 0.0F : g) + static_cast<float>(unit + 1); }
    auto const sum = gradient.back();
    store.release(unit, pass::backward);
    store.reduce(unit);
    return sum;
  };
  for (int const micro_batch : {0, 1, 2}) {
    store.set_last_micro_batch(micro_batch == 2);
    for (int unit = 4; unit >= 0; --unit) {
      CAPTURE(unit);
      CHECK(backward(unit, micro_batch == 0) == static_cast<float>((micro_batch + 1) * (unit + 1)));
    }
  }
  // A block does not use the large buffer, and the last unit no other.
  store.acquire(0, pass::forward);
  CHECK_THROWS_AS(store.acquire(4, pass::forward), error);
  store.release(0, pass::forward);
  compute.synchronize();
}

/// Units of one size, whose gradients a separate stream reads at its own pace.
struct offloading {
  cpu::device device{2};
  cpu::stream compute{device}, reader{device};
  std::vector<autograd::unit_layout> units;
  std::vector<std::unique_ptr<cpu::event>> read;
  std::vector<std::vector<float>> values;
  std::atomic<bool> may_read{true}, may_compute{true};
  std::string taken;
  recorder<cpu::device> times{device, compute};
  std::unique_ptr<store_of<float>> store;

  offloading(int count, int buffers, bool accumulates = false, int elements = 1) {
    zero::offloaded_units which{.gradient_buffers = buffers};
    for (int u = 0; u < count; ++u) {
      units.emplace_back(u, "unit");
      units.back().add_vector("w", elements);
      which.gradients.push_back(true);
      read.push_back(std::make_unique<cpu::event>(device));
    }
    values.assign(static_cast<std::size_t>(count),
                  std::vector<float>(static_cast<std::size_t>(elements), -1.0F));
    store = std::make_unique<store_of<float>>(
        device, compute, units, zero::store_options{.accumulates = accumulates, .offloaded = which}, nullptr,
        zero::gradient_sink<cpu::stream>{this,
                                         [](void* self, int unit, zero::unit_gradient gradient) {
                                           static_cast<offloading*>(self)->take(unit, gradient);
                                         },
                                         [](void* self, int unit, cpu::stream& stream) {
                                           auto& offloaded = *static_cast<offloading*>(self);
                                           offloaded.taken += static_cast<char>('0' + unit);
                                           stream.wait(*offloaded.read[static_cast<std::size_t>(unit)]);
                                         }},
        &times);
  }
  ~offloading() {
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
    auto& all = values[static_cast<std::size_t>(unit)];
    reader.copy(all.data(), gradient.data, all.size() * sizeof(float));
    reader.record(*read[static_cast<std::size_t>(unit)]);
  }
  /// Adds the value to a gradient, or writes it. `next` is the next unit, if any.
  void backward(int unit, float value, bool adds = false, int next = -1) {
    auto* const gradient = static_cast<float*>(store->acquire(unit, pass::backward).gradient);
    if (next >= 0) {
      store->prefetch(next, pass::backward);
    }
    compute.enqueue([this, gradient, value, adds, n = values.front().size()] {
      while (!may_compute) { std::this_thread::yield(); }
      for (std::size_t i = 0; i < n; ++i) { gradient[i] = (adds ? gradient[i] : 0.0F) + value; }
    });
    store->release(unit, pass::backward);
    store->reduce(unit);
  }
  [[nodiscard]] bool all_are(int unit, float value) const {
    auto const& all = values[static_cast<std::size_t>(unit)];
    return std::all_of(all.begin(), all.end(), [&](float v) { return v == value; });
  }
};

TEST_CASE("gradients take turns in any number of buffers, after their readers") {
  for (int const buffers : {1, 2, 3, 4, 9}) {
    CAPTURE(buffers);
    offloading f{4, buffers};
    for (int step = 0; step < 3; ++step) {
      f.may_read = false;
      f.taken.clear();
      for (int u = 3; u >= 0; --u) { f.backward(u, static_cast<float>(10 * step + u)); }
      f.may_read = true;
      f.compute.synchronize();
      f.reader.synchronize();
      for (int u = 0; u < 4; ++u) { CHECK(f.all_are(u, static_cast<float>(10 * step + u))); }
      // `taken` is called exactly when a buffer goes to another gradient.
      auto const first_step = buffers == 1 ? "321" : buffers == 2 ? "32" : buffers == 3 ? "3" : "";
      CHECK(f.taken.size() == (step == 0 ? std::string{first_step}.size() : 4));
      if (step == 0) {
        CHECK(f.taken == first_step);
      }
    }
  }
}

TEST_CASE("a gradient that has left the device cannot be read") {
  offloading f{3, 2};
  for (int u = 2; u >= 0; --u) { f.backward(u, 1.0F); }
  CHECK(f.store->gradient(2).data == nullptr);
  CHECK(f.store->gradient(1).data != nullptr);
  CHECK(f.store->gradient(0).data != nullptr);
}

TEST_CASE("more unfinished gradients than buffers are refused") {
  for (bool const accumulates : {false, true}) {
    offloading f{2, 1, accumulates};
    f.store->set_last_micro_batch(!accumulates);
    f.store->acquire(0, pass::backward);
    CHECK_THROWS_AS(f.store->acquire(1, pass::backward), error);
  }
}

TEST_CASE("sums go to the host and back between micro-batches, with any number of buffers and hints") {
  constexpr int micro_batches = 4,
                elements = 1 << 15;  // so that copies and writes would overlap
  for (int const buffers : {1, 2, 3, 4, 9}) {
    for (int const hints : {0, 1, 2}) {  // none, right, wrong
      CAPTURE(buffers);
      CAPTURE(hints);
      offloading f{4, buffers, true, elements};
      for (int step = 0; step < 5; ++step) {
        f.may_read = step % 2 == 0;
        for (int k = 0; k < micro_batches; ++k) {
          f.store->set_last_micro_batch(k + 1 == micro_batches);
          // In a different order each time.
          for (int i = 0; i < 4; ++i) {
            int const u = (31 - i - k * step) % 4, next = (30 - i - k * step) % 4;
            f.may_read = f.may_read || (k + 1 == micro_batches && i >= std::min(buffers, 3));
            f.backward(u, static_cast<float>(100 * step + 10 * k + u), k > 0,
                       hints == 0 ? -1 : (next + hints - 1) % 4);
          }
        }
        f.may_read = true;
        f.compute.synchronize();
        f.reader.synchronize();
        for (int u = 0; u < 4; ++u) { CHECK(f.all_are(u, static_cast<float>(4 * (100 * step + u) + 60))); }
      }
    }
  }
}

TEST_CASE("a sum is copied back while the unit before is computed, and not after the last micro-batch") {
  using namespace std::chrono_literals;
  offloading f{5, 3, true};
  std::vector<int> came;  // copied to the device, in this order
  auto const look = [&] {
    auto const tracks = f.times.tracks();
    for (auto const& s : f.times.collect().spans) {
      if (tracks[static_cast<std::size_t>(s.track)].name == "sums ahead of use") {
        came.push_back(s.unit);
      }
    }
  };
  for (int step = 0; step < 2; ++step) {
    for (int k = 0; k < 3; ++k) {
      f.store->set_last_micro_batch(k == 2);
      for (int u = 4; u >= 0; --u) {
        bool const watched = k > 0 && u == 2;
        if (watched) {
          f.compute.synchronize();
          look();
          f.may_compute = false;
        }
        f.backward(u, 1.0F, k > 0, u - 1);
        if (watched) {
          // The sum of 2 may be recorded late.
          for (int i = 0; i < 10000 && (came.empty() || came.back() != 1); ++i) {
            std::this_thread::sleep_for(1ms);
            look();
          }
          CHECK(came.back() == 1);
          f.may_compute = true;
        }
        CHECK((f.store->gradient(u).data != nullptr) == (k == 2));
      }
    }
    f.compute.synchronize();
    f.reader.synchronize();
    for (int u = 0; u < 5; ++u) { CHECK(f.all_are(u, 3.0F)); }
  }
  look();
  std::vector<int> all;
  for (int i = 0; i < 4; ++i) { all.insert(all.end(), {4, 3, 2, 1, 0}); }
  CHECK(came == all);
}

TEST_CASE("updated weights in host memory are fetched anew after the gradient is final, and not before") {
  cpu::device device{2};
  cpu::stream compute{device};
  std::vector<autograd::unit_layout> units{autograd::unit_layout{0, "unit"}};
  units[0].add_vector("w", 1);
  store_of<float> store{
      device,  compute,
      units,   {.offloaded = {.weights = {true}}},
      nullptr, {nullptr, [](void*, int, zero::unit_gradient) {}, [](void*, int, cpu::stream&) {}}};
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
  *store.weights(0) = 2.0F;  // forbidden at this point: it shows that nothing is fetched
  CHECK(value(pass::backward) == 1.0F);
  store.reduce(0);
  CHECK(value(pass::forward) == 2.0F);
  CHECK(&store.reader(0) != &compute);
}

}  // namespace
