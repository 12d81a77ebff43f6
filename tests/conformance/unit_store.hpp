// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The contract of every store, as a function for a doctest case with each element type.

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace superoffload::conformance {

/// Two units: a plain one with a frozen tensor, and one whose gradient is wide.
inline std::vector<autograd::unit_layout> store_units() {
  std::vector<autograd::unit_layout> units{autograd::unit_layout{0, "plain"},
                                           autograd::unit_layout{1, "wide", true}};
  units[0].add_matrix({{"q", 3}, {"k", 2}}, 5);
  units[0].tensors()[1].trainable = false;
  units[0].add_vector("norm", 7);
  units[1].add_matrix({{"table", 4}}, 3);
  return units;
}

/// Runs `micro_batches` passes of gradients through a store made by `make(device, stream, units, accumulates,
/// sink)` and checks weights, sums, rounding, frozen tensors and the sink. Values are small integers and
/// quarters, exact in every type, but for one sum that bfloat16 must round once.
template <element T, device_policy D, class Make>
void unit_store_keeps_its_contract(D& device, Make&& make, int micro_batches) {
  using autograd::pass;
  typename D::stream stream{device};
  auto const units = store_units();
  // A gradient may be overwritten by the next one: the sink copies it.
  struct arrival {
    int unit;
    zero::unit_gradient gradient;
    std::vector<std::byte> values;
  };
  struct arrivals {
    typename D::stream* stream;
    std::vector<autograd::unit_layout> units;
    std::vector<arrival> all;
  } reader{&stream, units, {}};
  zero::gradient_sink<typename D::stream> const sink{
      &reader,
      [](void* self, int unit, zero::unit_gradient gradient) {
        auto& r = *static_cast<arrivals*>(self);
        gradient.template with_type<T>([&]<class G>(G const* from) {
          auto const elements = r.units[static_cast<std::size_t>(unit)].elements();
          std::vector<std::byte> values(static_cast<std::size_t>(elements) * sizeof(G));
          r.stream->copy(values.data(), from, values.size());
          r.all.push_back({unit, gradient, std::move(values)});
        });
      },
      [](void*, int, typename D::stream&) {}};
  auto const& arrived = reader.all;
  auto store = make(device, stream, units, micro_batches > 1, sink);
  static_assert(zero::unit_store<std::remove_reference_t<decltype(*store)>>);

  auto const put = [&]<class V>(void* to, std::vector<V> const& values) {
    stream.copy(to, values.data(), values.size() * sizeof(V));
    stream.synchronize();
  };
  auto const get = [&]<class V>(V, void const* from, std::int64_t count) {
    std::vector<V> values(static_cast<std::size_t>(count));
    stream.copy(values.data(), from, values.size() * sizeof(V));
    stream.synchronize();
    return values;
  };

  for (int unit : {0, 1}) {
    auto const elements = units[static_cast<std::size_t>(unit)].elements();
    for (T const value : get(T{}, store->weights(unit), elements)) {
      CHECK(static_cast<double>(value) == 0.0);
    }
    std::vector<T> weights(static_cast<std::size_t>(elements));
    for (std::size_t i = 0; i < weights.size(); ++i) { weights[i] = T(static_cast<float>(i % 64)); }
    store->expect_writes(unit);
    put(store->weights(unit), weights);
    store->prefetch(unit, pass::forward);
    auto const outer = store->acquire(unit, pass::forward);
    CHECK(outer.gradient == nullptr);
    auto const inner = store->acquire(unit, pass::backward);  // acquiring nests
    CHECK(inner.gradient != nullptr);
    CHECK(get(T{}, outer.weights, elements) == weights);
    CHECK(get(T{}, inner.weights, elements) == weights);
    store->release(unit, pass::backward);
    store->release(unit, pass::forward);
  }

  for (int i = 0; i < micro_batches; ++i) {
    store->set_last_micro_batch(i + 1 == micro_batches);
    for (int unit : {1, 0}) {
      auto const elements = units[static_cast<std::size_t>(unit)].elements();
      auto const buffers = store->acquire(unit, pass::backward);
      auto const write = [&]<class G>(G zero) {
        auto values = i > 0 ? get(zero, buffers.gradient, elements)
                            : std::vector<G>(static_cast<std::size_t>(elements));
        for (std::size_t k = 0; k < values.size(); ++k) {
          // 256 + 1 + 1 + ...: in bfloat16 each single addition would be lost.
          values[k] = G(static_cast<float>(values[k]) + (i == 0 ? 256.0F : 1.0F));
        }
        put(buffers.gradient, values);
      };
      // Sums must not lose a bit.
      CHECK((buffers.gradient_is_wide || std::is_same_v<T, wide<T>> ||
             (micro_batches == 1 && !units[static_cast<std::size_t>(unit)].wide_gradient())));
      if (buffers.gradient_is_wide) {
        write(wide<T>{});
      } else {
        write(T{});
      }
      store->release(unit, pass::backward);
      CHECK(arrived.size() == (i + 1 < micro_batches ? 0U : unit == 1 ? 0U : 1U));
      store->reduce(unit);
    }
  }
  stream.synchronize();
  REQUIRE(arrived.size() == 2);
  CHECK(arrived[0].unit == 1);
  CHECK(arrived[1].unit == 0);
  auto const expected = static_cast<double>(T(256.0F + static_cast<float>(micro_batches - 1)));
  CHECK(arrived[1].gradient.data == store->gradient(0).data);
  for (auto const& one : arrived) {
    auto const& layout = units[static_cast<std::size_t>(one.unit)];
    one.gradient.template with_type<T>([&]<class G>(G const*) {
      std::vector<G> values(one.values.size() / sizeof(G));
      std::memcpy(values.data(), one.values.data(), one.values.size());
      for (auto const& tensor : layout.tensors()) {
        for (std::int64_t k = 0; k < tensor.count(); ++k) {
          auto const value = static_cast<double>(T(values[static_cast<std::size_t>(tensor.offset + k)]));
          CHECK(value == (tensor.trainable ? expected : 0.0));
        }
      }
    });
  }
}

}  // namespace superoffload::conformance
