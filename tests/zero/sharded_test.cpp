// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/single.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/zero/sharded.hpp>

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/precisions.hpp"
#include "support/sanitizer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
using autograd::pass;
using conformance::require;

/// Units: one of several cells of the norm's grid with a frozen tensor, a small one, one with a wide
/// gradient, and a frozen one.
std::vector<autograd::unit_layout> some_units() {
  std::vector<autograd::unit_layout> units{
      autograd::unit_layout{0, "large"}, autograd::unit_layout{1, "small"},
      autograd::unit_layout{2, "wide", true}, autograd::unit_layout{3, "frozen"}};
  units[0].add_matrix({{"q", 300}, {"k", 200}}, 301);
  units[0].add_matrix({{"gate", 250}}, 301);
  units[0].tensors()[1].trainable = false;
  units[0].add_vector("norm", 7);
  units[1].add_matrix({{"up", 5}}, 3);
  units[2].add_matrix({{"table", 900}}, 100);
  units[3].add_vector("bias", 70000);
  units[3].tensors()[0].trainable = false;
  return units;
}

float weight_of(int unit, std::int64_t element) { return static_cast<float>((element * 7 + unit) % 128); }

/// Gradients of one micro-batch on one rank: 256 on the first rank and small numbers on the others, which
/// would be lost if they were added one by one in bfloat16.
float gradient_of(int rank, int micro_batch, int unit, std::int64_t element) {
  return rank == 0 ? 256.0F : static_cast<float>((element + rank + unit + micro_batch) % 3) * 0.5F;
}

template <element T>
struct store_and_sink {
  using store_type = zero::sharded_store<cpu::device, T, test::group_of_host>;
  cpu::device* device;
  test::group_of_host* group;
  std::vector<autograd::unit_layout> units = some_units();
  cpu::stream stream{*device};
  std::vector<int> arrived{};
  store_type store;

  store_and_sink(cpu::device& d, test::group_of_host& g, zero::store_options const& o)
      : device{&d},
        group{&g},
        store{d,
              stream,
              units,
              o,
              &g,
              {this,
               [](void* self, int unit, zero::unit_gradient gradient) {
                 auto& s = *static_cast<store_and_sink*>(self);
                 require(gradient.data == s.store.gradient(unit).data, "another gradient");
                 s.arrived.push_back(unit);
               },
               [](void*, int, cpu::stream&) {}}} {}

  [[nodiscard]] autograd::unit_layout const& at(int unit) const {
    return units[static_cast<std::size_t>(unit)];
  }
  [[nodiscard]] std::int64_t shard(int unit) const { return zero::shard_elements(at(unit), group->ranks()); }

  void write_weights() {
    for (int unit = 0; unit < 4; ++unit) {
      auto const n = shard(unit);
      std::vector<T> values(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) {
        auto const element = group->rank() * n + i;
        values[static_cast<std::size_t>(i)] =
            T(element < at(unit).elements() ? weight_of(unit, element) : 0.0F);
      }
      store.expect_writes(unit);
      stream.copy(store.weights(unit), values.data(), values.size() * sizeof(T));
      stream.synchronize();
    }
    store.weights_changed();
  }
  void check_weights(int unit, void const* weights) {
    std::vector<T> values(static_cast<std::size_t>(at(unit).elements()));
    stream.copy(values.data(), weights, values.size() * sizeof(T));
    stream.synchronize();
    for (std::int64_t i = 0; i < at(unit).elements(); ++i) {
      require(static_cast<float>(values[static_cast<std::size_t>(i)]) == weight_of(unit, i), "weight ", i,
              " of unit ", unit);
    }
  }

  /// Writes what a backward writes, and garbage elsewhere.
  void write_gradient(int unit, autograd::unit_buffers const& to, int micro_batch) {
    auto const whole = shard(unit) * group->ranks();
    auto const write = [&]<class G>(G) {
      std::vector<G> values(static_cast<std::size_t>(whole), G(std::numeric_limits<float>::quiet_NaN()));
      for (auto const& tensor : at(unit).tensors()) {
        for (auto i = tensor.offset; tensor.trainable && i < tensor.offset + tensor.count(); ++i) {
          values[static_cast<std::size_t>(i)] = G(gradient_of(group->rank(), micro_batch, unit, i));
        }
      }
      stream.copy(to.gradient, values.data(), values.size() * sizeof(G));
      stream.synchronize();
    };
    if (to.gradient_is_wide) {
      write(wide<T>{});
    } else {
      write(T{});
    }
  }
  void check_gradient(int unit, int micro_batches) {
    check_gradient(unit, 0, micro_batches, store.gradient(unit));
  }
  /// Is it the sum of micro-batches [first, last)?
  void check_gradient(int unit, int first, int last, zero::unit_gradient gradient) {
    auto const n = shard(unit);
    gradient.template with_type<T>([&]<class G>(G const* from) {
      std::vector<G> values(static_cast<std::size_t>(n));
      stream.copy(values.data(), from, values.size() * sizeof(G));
      stream.synchronize();
      std::vector<float> expected(static_cast<std::size_t>(n));
      for (auto const& tensor : at(unit).tensors()) {
        auto const own =
            zero::owned_part(at(unit), group->rank(), group->ranks(), tensor.offset, tensor.count());
        for (std::int64_t i = 0; tensor.trainable && i < own.count; ++i) {
          for (int b = first; b < last; ++b) {
            for (int r = 0; r < group->ranks(); ++r) {  // exact in float
              expected[static_cast<std::size_t>(own.begin + i)] +=
                  gradient_of(r, b, unit, tensor.offset + own.skip + i);
            }
          }
        }
      }
      for (std::int64_t i = 0; i < n; ++i) {
        auto const at = static_cast<std::size_t>(i);
        require(values[at] == G(expected[at]), "gradient ", i, " of unit ", unit, " is ",
                static_cast<float>(values[at]), ", expected ", expected[at]);
      }
    });
  }
};

/// As rank of a group: two steps, in which weights and gradients are compared with what they must be, and the
/// memory with what was announced.
template <element T, class Group>
void takes_steps(cpu::device& device, Group& group, int micro_batches, zero::store_options o) {
  o.accumulates = micro_batches > 1;
  auto const before = device.bytes_in_use();
  using store_type = typename store_and_sink<T>::store_type;
  static_assert(zero::unit_store<store_type>);
  store_and_sink<T> s{device, group, o};
  auto const announced = store_type::bytes(s.units, o, &group);
  require(device.bytes_in_use() - before == announced.weights + announced.gradients, "announced ",
          announced.weights + announced.gradients, " bytes, took ", device.bytes_in_use() - before);
  comm::abort_on_exception const guard{group};
  s.write_weights();
  for (int step = 0; step < 2; ++step) {
    s.arrived.clear();
    for (int b = 0; b < micro_batches; ++b) {
      s.store.set_last_micro_batch(b + 1 == micro_batches);
      for (int unit = 0; unit < 4; ++unit) {
        auto const outer = s.store.acquire(unit, pass::forward);
        s.store.prefetch((unit + 1) % 4, pass::forward);
        auto const inner = s.store.acquire(unit, pass::forward);  // nests
        require(outer.gradient == nullptr && inner.weights == outer.weights, "forward");
        s.check_weights(unit, outer.weights);
        s.store.release(unit, pass::forward);
        s.store.release(unit, pass::forward);
      }
      for (int unit = 3; unit >= 0; --unit) {
        auto const both = s.store.acquire(unit, pass::backward);
        if (unit > 0) {
          s.store.prefetch(unit - 1, pass::backward);
        }
        s.check_weights(unit, both.weights);
        require((both.gradient == nullptr) == (unit == 3), "a gradient for unit ", unit);
        require(both.gradient_is_wide || unit != 2 || std::is_same_v<T, wide<T>>, "a wide gradient");
        if (both.gradient != nullptr) {
          s.write_gradient(unit, both, b);
        }
        s.store.release(unit, pass::backward);
        s.store.reduce(unit);
      }
      require(b + 1 == micro_batches || s.arrived.empty(), "a gradient came too early");
    }
    require(s.arrived == std::vector<int>{2, 1}, "the last unit is told by settle()");
    s.store.settle();
    require(s.arrived == std::vector<int>{2, 1, 0}, "order of the gradients");
    s.store.settle();
    require(s.arrived.size() == 3, "told twice");
    for (int const unit : {0, 1, 2}) { s.check_gradient(unit, micro_batches); }
    require(s.store.gradient(3).data == nullptr, "a gradient of what is frozen");
  }
}

TEST_CASE_TEMPLATE("shards are gathered ahead, and gradients are reduced in the order of the ranks", T,
                   SUPEROFFLOAD_TEST_ELEMENTS) {
  test::threads_of_a_process groups;
  groups.settings.piece_bytes = 1U << 20;
  std::vector<zero::gather_buffers> numbers_of_buffers{{.weights = 2, .gradients = 1}, {.weights = 4}};
  if (!test::under_sanitizer) {
    numbers_of_buffers.insert(numbers_of_buffers.end(), {{}, {.weights = 7}});
  }
  for (int const ranks : test::numbers_of_ranks()) {
    for (int const micro_batches : {1, 3}) {
      for (auto const buffers : numbers_of_buffers) {
        CAPTURE(ranks);
        CAPTURE(micro_batches);
        conformance::all_succeeded(groups.run(ranks, [=](auto& device, auto& group) {
          takes_steps<T>(device, group, micro_batches, {.buffers = buffers});
        }));
      }
    }
  }
}

TEST_CASE_TEMPLATE("ranks keep several copies of the weights", T, SUPEROFFLOAD_TEST_ELEMENTS) {
  test::threads_of_a_process groups;
  groups.settings.piece_bytes = 1U << 20;
  for (int const ranks : test::under_sanitizer ? std::vector{4} : std::vector{1, 2, 4, 6}) {
    for (int weight_ranks = 1; weight_ranks <= ranks; ++weight_ranks) {
      for (int const micro_batches : {1, 3}) {
        CAPTURE(ranks);
        CAPTURE(weight_ranks);
        CAPTURE(micro_batches);
        if (ranks % weight_ranks != 0) {
          continue;
        }
        conformance::all_succeeded(groups.run(ranks, [=](auto& device, auto& group) {
          for (bool const sums_in_copies : {false, true}) {
            takes_steps<T>(device, group, micro_batches,
                           {.weight_ranks = weight_ranks, .sums_in_copies = sums_in_copies});
          }
        }));
      }
    }
  }
}

/// A sink that copies each gradient slowly, on a separate stream.
template <element T>
struct late_reader {
  using store_type = zero::sharded_store<cpu::device, T, test::group_of_host>;
  cpu::device* device;
  cpu::stream* compute;
  cpu::stream stream{*device};
  std::vector<std::vector<std::byte>> copies{3};
  std::vector<cpu::event> ready, read;
  std::vector<int> given{};
  store_type* store = nullptr;

  late_reader(cpu::device& d, cpu::stream& c) : device{&d}, compute{&c} {
    for (int u = 0; u < 3; ++u) {
      ready.emplace_back(d);
      read.emplace_back(d);
    }
  }
  ~late_reader() { drain(stream); }

  zero::gradient_sink<cpu::stream> sink(std::vector<autograd::unit_layout> const& units, int ranks) {
    for (std::size_t u = 0; u < 3; ++u) {
      copies[u].resize(static_cast<std::size_t>(zero::shard_elements(units[u], ranks)) * sizeof(T));
    }
    return {this,
            [](void* self, int unit, zero::unit_gradient gradient) {
              auto& r = *static_cast<late_reader*>(self);
              auto const u = static_cast<std::size_t>(unit);
              require(!gradient.is_wide && gradient.data != nullptr, "a gradient of another kind");
              r.compute->record(r.ready[u]);
              r.stream.wait(r.ready[u]);
              r.stream.enqueue([] { std::this_thread::sleep_for(std::chrono::milliseconds{3}); });
              r.stream.copy(r.copies[u].data(), gradient.data, r.copies[u].size());
              r.stream.record(r.read[u]);
            },
            [](void* self, int unit, cpu::stream& on) {
              auto& r = *static_cast<late_reader*>(self);
              r.given.push_back(unit);
              on.wait(r.read[static_cast<std::size_t>(unit)]);
            }};
  }
};

TEST_CASE_TEMPLATE("shards' gradients take turns in buffers, and stay until their reader has them", T,
                   SUPEROFFLOAD_TEST_WEIGHTS) {
  test::threads_of_a_process groups;
  groups.settings.piece_bytes = 1U << 20;
  for (int const ranks : {1, 2, 3}) {
    for (int const buffers : {1, 2, 3}) {
      CAPTURE(ranks);
      CAPTURE(buffers);
      conformance::all_succeeded(groups.run(ranks, [=](auto& device, auto& group) {
        using store_type = typename late_reader<T>::store_type;
        auto const before = device.bytes_in_use();
        store_and_sink<T> s{device, group, {}};  // has its own weights and gradients
        auto const own = device.bytes_in_use() - before;
        cpu::stream compute{device};
        late_reader<T> reader{device, compute};
        zero::offloaded_units const f{.gradients = {true, true, true, true}, .gradient_buffers = buffers};
        store_type store{device, compute, s.units, {.offloaded = f}, &group, reader.sink(s.units, ranks)};
        auto const announced = store_type::bytes(s.units, {.offloaded = f}, &group);
        require(device.bytes_in_use() - before - own == announced.weights + announced.gradients, "announced ",
                announced.weights + announced.gradients, " bytes, took ",
                device.bytes_in_use() - before - own);
        comm::abort_on_exception const guard{group};
        for (int step = 0; step < 4; ++step) {
          for (int unit = 3; unit >= 0; --unit) {
            auto const taken = store.acquire(unit, pass::backward);
            if (taken.gradient != nullptr) {
              compute.synchronize();
              s.write_gradient(unit, taken, step);
            }
            store.release(unit, pass::backward);
            store.reduce(unit);
          }
          store.settle();
          store.weights_changed();
          reader.stream.synchronize();
          for (int unit = 0; unit < 3; ++unit) {
            auto& copy = reader.copies[static_cast<std::size_t>(unit)];
            s.check_gradient(unit, step, step + 1, {copy.data(), false});
            std::fill(copy.begin(), copy.end(), std::byte{0x5A});
          }
        }
        // Every gradient but the last ones was replaced by another, in order.
        std::vector<int> expected;
        for (int i = 0; i < 4 * 3 - buffers; ++i) { expected.push_back(2 - i % 3); }
        require(reader.given == expected, "buffers given away in another order");
        int there = 0;
        for (int const unit : {0, 1, 2}) { there += store.gradient(unit).data != nullptr ? 1 : 0; }
        require(there == buffers, there, " gradients are there");
        compute.synchronize();
      }));
    }
  }
}

TEST_CASE("a rank's store offloads neither weights nor sums") {
  cpu::device device{1};
  comm::single_communicator<cpu::device> group;
  using store_type = zero::sharded_store<cpu::device, bfloat16, comm::single_communicator<cpu::device>>;
  auto const refused = [&](bool accumulates, zero::offloaded_units const& f) {
    CHECK_THROWS_AS(static_cast<void>(store_type::bytes(
                        some_units(), {.accumulates = accumulates, .offloaded = f}, &group)),
                    error);
  };
  refused(false, {.weights = {false, true}});
  refused(true, {.gradients = {false, true}});
  auto const stays = store_type::bytes(some_units(), {}, &group);
  auto const offloaded =
      store_type::bytes(some_units(), {.offloaded = {.gradients = {true, true, false}}}, &group);
  CHECK(offloaded.weights == stays.weights);
  CHECK(offloaded.gradients - stays.gradients ==  // two buffers instead of two shards of different sizes
        static_cast<std::size_t>(zero::shard_elements(some_units()[0], 1) -
                                 zero::shard_elements(some_units()[1], 1)) *
            sizeof(bfloat16));
}

TEST_CASE("changed shards are gathered anew in the next pass") {
  test::threads_of_a_process groups;
  conformance::all_succeeded(groups.run(3, [](auto& device, auto& group) {
    store_and_sink<float> s{device, group, {}};
    comm::abort_on_exception const guard{group};
    s.write_weights();
    for (int step = 0; step < 5; ++step) {
      auto const buffers = s.store.acquire(0, pass::both);
      s.stream.synchronize();
      auto const expected = weight_of(0, 5) + static_cast<float>(step);
      require(static_cast<float const*>(buffers.weights)[5] == expected, "step ", step, ": ",
              static_cast<float const*>(buffers.weights)[5], ", expected ", expected);
      s.write_gradient(0, buffers, 0);
      s.store.release(0, pass::both);
      s.store.reduce(0);
      s.store.settle();
      if (group.rank() == 0) {  // an update
        s.stream.enqueue([w = s.store.weights(0)] { w[5] += 1.0F; });
      }
      s.store.weights_changed();
    }
    s.stream.synchronize();
  }));
}

TEST_CASE("shards cover a unit once, on the grid of the norm, as units of their own") {
  for (auto const& unit : some_units()) {
    for (int const ranks : {1, 2, 3, 4, 7}) {
      CAPTURE(unit.name());
      CAPTURE(ranks);
      auto const n = zero::shard_elements(unit, ranks);
      CHECK(n % kernel::norm_grid == 0);
      CHECK(n * ranks >= unit.elements());
      CHECK((n - kernel::norm_grid) * ranks < unit.elements());
      for (auto const& tensor : unit.tensors()) {
        std::int64_t covered = 0;
        for (int r = 0; r < ranks; ++r) {
          auto const shard = zero::shards_of({unit}, r, ranks).front();
          CHECK(shard.elements() == n);
          CHECK(shard.trainable() == unit.trainable());
          auto const own = zero::owned_part(unit, r, ranks, tensor.offset, tensor.count());
          for (auto const& part : shard.tensors()) {
            if (part.name == tensor.name) {
              CHECK(part.offset == own.begin);
              CHECK(part.count() == own.count);
              CHECK(own.skip == covered);
              CHECK(part.trainable == tensor.trainable);
              covered += part.count();
            }
          }
        }
        CHECK(covered == tensor.count());
      }
    }
  }
}

TEST_CASE("a group of one owns everything") {
  cpu::device device{1};
  cpu::stream stream{device};
  comm::single_communicator<cpu::device> group;
  auto const units = some_units();
  zero::sharded_store<cpu::device, float, comm::single_communicator<cpu::device>> store{
      device, stream, units,
      {},     &group, {nullptr, [](void*, int, zero::unit_gradient) {}, [](void*, int, cpu::stream&) {}}};
  auto const buffers = store.acquire(1, pass::backward);
  stream.synchronize();
  CHECK(static_cast<float const*>(buffers.weights)[3] == 0.0F);
  for (int i = 0; i < 16; ++i) { static_cast<float*>(buffers.gradient)[i] = static_cast<float>(i); }
  store.release(1, pass::backward);
  store.reduce(1);
  store.settle();
  stream.synchronize();
  for (int i = 0; i < 16; ++i) {
    CHECK(static_cast<float const*>(store.gradient(1).data)[i] == (i < 15 ? static_cast<float>(i) : 0.0F));
  }
}

}  // namespace
