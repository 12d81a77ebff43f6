// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/nn/attention.hpp>
#include <superoffload/nn/rms_norm.hpp>
#include <superoffload/nn/rotary.hpp>

#include <doctest/doctest.h>

#include "support/graph.hpp"

#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <vector>

namespace {

using superoffload::autograd::unit_layout;
using superoffload::test::check_function;
using superoffload::test::graph;
namespace nn = superoffload::nn;

/// The documents of a batch on the CPU, whose device memory is host memory.
struct documents {
  explicit documents(std::vector<std::int32_t> lengths) {
    starts.push_back(0);
    for (auto const length : lengths) {
      for (std::int32_t i = 0; i < length; ++i) { positions.push_back(i); }
      starts.push_back(starts.back() + length);
      batch.longest = std::max(batch.longest, length);
    }
    batch.rows = starts.back();
    batch.documents = static_cast<std::int64_t>(lengths.size());
    batch.starts = starts.data();
    batch.positions = positions.data();
  }
  std::vector<std::int32_t> starts, positions;
  nn::batch batch;
};

TEST_CASE("rotary and attention have the gradient of their formula") {
  constexpr nn::attention_heads heads{4, 2, 6};
  constexpr int columns = (4 + 2 * 2) * 6;
  std::vector<double> const frequencies{1.0, 0.3, 0.05};
  unit_layout unit{0, "unit"};
  nn::rms_norm const norm{unit.add_vector("w", columns), 1e-5};  // a copy, for functions that work in place
  graph g{{unit}};
  nn::rotary_table<superoffload::cpu::device, double> const table{g.device, g.stream, frequencies, 16};
  SUBCASE("one document") {
    documents const d{{7}};
    check_function(g, g.random(7 * columns), columns, [&](graph::variable x) {
      return nn::attention(nn::rotary(norm(x), d.batch, table, heads), d.batch, heads);
    });
  }
  SUBCASE("two thirds of each head are turned") {
    documents const d{{7}};
    nn::rotary_table<superoffload::cpu::device, double> const part{g.device, g.stream, {1.0, 0.3}, 16};
    CHECK(part.turned() == 4);
    check_function(g, g.random(7 * columns), columns, [&](graph::variable x) {
      return nn::attention(nn::rotary(norm(x), d.batch, part, heads), d.batch, heads);
    });
  }
  SUBCASE("several documents do not see each other") {
    documents const d{{3, 1, 4}};
    check_function(g, g.random(8 * columns), columns, [&](graph::variable x) {
      return nn::attention(nn::rotary(norm(x), d.batch, table, heads), d.batch, heads);
    });
  }
  SUBCASE("dropout of weights") {
    documents const d{{3, 5}};
    auto const dropout = superoffload::kernel::dropout_mask::with(0.3, 5);
    check_function(g, g.random(8 * columns), columns,
                   [&](graph::variable x) { return nn::attention(norm(x), d.batch, heads, {}, dropout); });
  }
  SUBCASE("a sliding window") {
    documents const d{{8}};
    nn::attention_heads windowed = heads;
    windowed.window = 3;
    check_function(g, g.random(8 * columns), columns,
                   [&](graph::variable x) { return nn::attention(norm(x), d.batch, windowed); });
  }
}

TEST_CASE("sinks have the gradient of their formula") {
  constexpr nn::attention_heads heads{4, 2, 6};
  constexpr int columns = (4 + 2 * 2) * 6;
  unit_layout unit{0, "unit"};
  auto const sinks = unit.add_vector("sinks", 4);
  graph g{{unit}};
  SUBCASE("several documents") {
    documents const d{{3, 1, 0, 4}};
    check_function(g, g.random(8 * columns), columns,
                   [&](graph::variable x) { return nn::attention(x, d.batch, heads, sinks); });
  }
  SUBCASE("more rows than one block has, in a window") {
    documents const d{{70, 3}};
    nn::attention_heads windowed = heads;
    windowed.window = 5;
    check_function(g, g.random(73 * columns), columns,
                   [&](graph::variable x) { return nn::attention(x, d.batch, windowed, sinks); });
  }
}

/// Where threads exchange, as ranks that share rows do.
class meeting {
public:
  explicit meeting(int ranks) : ranks_{ranks}, from_(static_cast<std::size_t>(ranks)), arrived_{ranks} {}

  void exchange(int rank, void const* from, void* to, std::size_t bytes) {
    from_[static_cast<std::size_t>(rank)] = static_cast<std::byte const*>(from);
    arrived_.arrive_and_wait();
    for (std::size_t i = 0; i < from_.size(); ++i) {
      std::memcpy(static_cast<std::byte*>(to) + i * bytes, from_[i] + static_cast<std::size_t>(rank) * bytes,
                  bytes);
    }
    arrived_.arrive_and_wait();
  }
  [[nodiscard]] int ranks() const { return ranks_; }

private:
  int ranks_;
  std::vector<std::byte const*> from_;
  std::barrier<> arrived_;
};

/// A store with a vector of sinks, whose ranks share rows.
template <class T>
struct sharing_store {
  using device = superoffload::cpu::device;
  superoffload::zero::resident_store<device, T>* resident;
  device::stream* stream;
  meeting* at;
  int rank;

  void prefetch(int unit, superoffload::autograd::pass p) noexcept { resident->prefetch(unit, p); }
  superoffload::autograd::unit_buffers acquire(int unit, superoffload::autograd::pass p) {
    return resident->acquire(unit, p);
  }
  void release(int unit, superoffload::autograd::pass p) noexcept { resident->release(unit, p); }
  void reduce(int unit) { resident->reduce(unit); }
  void exchange(void const* from, void* to, std::size_t bytes) {
    stream->enqueue([=, this] { at->exchange(rank, from, to, bytes); });
  }
};

/// Results of attention and its gradients, on one rank.
template <class T>
struct attention_results {
  std::vector<T> y, d_qkv, d_sinks;
};

template <class T>
attention_results<T> run_attention(nn::batch batch, nn::attention_heads heads, std::vector<T> const& qkv,
                                   std::vector<T> const& d_y, meeting& at, int rank) {
  namespace so = superoffload;
  batch.rows /= at.ranks();
  batch.sequence_ranks = at.ranks();
  batch.sequence_rank = rank;
  so::cpu::device device{1};
  so::cpu::stream stream{device};
  unit_layout unit{0, "unit"};
  auto const sinks = unit.add_vector("sinks", heads.heads);
  std::vector<unit_layout> const units{unit};
  so::zero::resident_store<so::cpu::device, T> resident{
      device, stream, units, {}, nullptr, {nullptr, [](void*, int, so::zero::unit_gradient) {}}};
  stream.synchronize();
  for (int h = 0; h < heads.heads; ++h) { resident.weights(0)[h] = T(0.25F * static_cast<float>(h)); }
  sharing_store<T> store{&resident, &stream, &at, rank};
  so::buffer<so::cpu::device> const memory{device, std::size_t{1} << 22};
  so::autograd::tape<so::cpu::device, T> tape{
      device, stream, {memory.data(), memory.bytes()}, so::autograd::unit_access::to(store), 1};
  tape.reset();
  auto const x = tape.make(batch.rows, std::int64_t{heads.heads + 2 * heads.kv_heads} * heads.head_dim);
  auto const first = static_cast<std::size_t>(rank * x.count());
  stream.copy(x.value(), qkv.data() + first, static_cast<std::size_t>(x.count()) * sizeof(T));
  auto const y =
      tape.scope({0}, so::autograd::pass::forward, [&] { return nn::attention(x, batch, heads, sinks); });
  auto const d = tape.gradient_of(y).gradient;
  stream.copy(d, d_y.data() + static_cast<std::size_t>(rank * y.count()),
              static_cast<std::size_t>(y.count()) * sizeof(T));
  tape.backward();
  stream.synchronize();
  auto const* const of_sinks = static_cast<T const*>(resident.gradient(0).data);
  return {{y.value(), y.value() + y.count()},
          {x.gradient(), x.gradient() + x.count()},
          {of_sinks, of_sinks + heads.heads}};
}

TEST_CASE_TEMPLATE("ranks that share rows give attention the bits of one", T, float, superoffload::bfloat16) {
  documents const d{{7, 1, 20, 4, 64}};
  for (auto const& heads : {nn::attention_heads{4, 4, 16}, nn::attention_heads{8, 4, 8, 5}}) {
    graph g{{}};
    auto const numbers = [&](std::int64_t count) {
      std::vector<T> all;
      for (auto const x : g.random(count)) { all.emplace_back(static_cast<float>(x)); }
      return all;
    };
    auto const rows = d.batch.rows;
    auto const qkv = numbers(rows * (heads.heads + 2 * heads.kv_heads) * heads.head_dim);
    auto const d_y = numbers(rows * heads.heads * heads.head_dim);
    meeting one{1};
    auto const whole = run_attention(d.batch, heads, qkv, d_y, one, 0);
    for (int const ranks : {2, 4}) {
      CAPTURE(ranks);
      meeting all{ranks};
      std::vector<attention_results<T>> of_ranks(static_cast<std::size_t>(ranks));
      std::vector<std::thread> threads;
      for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
          of_ranks[static_cast<std::size_t>(rank)] = run_attention(d.batch, heads, qkv, d_y, all, rank);
        });
      }
      for (auto& thread : threads) { thread.join(); }
      attention_results<T> joined{{}, {}, std::vector<T>(whole.d_sinks.size())};
      for (auto const& part : of_ranks) {
        joined.y.insert(joined.y.end(), part.y.begin(), part.y.end());
        joined.d_qkv.insert(joined.d_qkv.end(), part.d_qkv.begin(), part.d_qkv.end());
        for (std::size_t h = 0; h < part.d_sinks.size(); ++h) {  // zero for heads of other ranks
          joined.d_sinks[h] = T(static_cast<float>(joined.d_sinks[h]) + static_cast<float>(part.d_sinks[h]));
        }
      }
      auto const same = [](std::vector<T> const& a, std::vector<T> const& b) {
        return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
      };
      CHECK(same(joined.y, whole.y));
      CHECK(same(joined.d_qkv, whole.d_qkv));
      CHECK(same(joined.d_sinks, whole.d_sinks));
    }
  }
}

}  // namespace
