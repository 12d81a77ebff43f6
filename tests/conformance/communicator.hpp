// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The contract of every communicator, as functions for doctest cases that have a way to run a group:
//   struct my_group {
//     std::vector<std::string> run(int ranks, Body body);   // body(device&, communicator&) as each rank
//   };
// `run` gives for each rank "" or what() of the exception that ended its body. A body runs in its own thread
// or process and reports failures by `require`.

#include <superoffload/comm/communicator.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace superoffload::conformance {

template <class... Parts>
void require(bool condition, Parts const&... parts) {
  expect(condition, exit_code::internal, parts...);
}

inline void all_succeeded(std::vector<std::string> const& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    CAPTURE(rank);
    CHECK(outcomes[rank] == "");
  }
}

/// Numbers of rank `rank` in collective `seed`. Their sum depends on the order of adding, and every process
/// can compute those of every rank.
template <element T>
std::vector<T> numbers_of(int rank, std::uint32_t seed, std::size_t count) {
  std::mt19937 random{seed * 1009 + static_cast<std::uint32_t>(rank)};
  std::vector<T> values;
  values.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    auto const exponent = static_cast<int>(random() % 20) - 10;
    auto const fraction = static_cast<double>(random() % 2001) / 1000.0 - 1.0;
    values.push_back(T(static_cast<wide<T>>(fraction * std::pow(2.0, exponent))));
  }
  return values;
}

/// The expected result by the contract, element by element.
template <element To, element From>
To sum_of(std::vector<From> const& values, To const* addend) {
  auto sum = static_cast<wide<From>>(values[0]);
  for (std::size_t r = 1; r < values.size(); ++r) { sum += static_cast<wide<From>>(values[r]); }
  if (addend != nullptr) {
    sum += static_cast<wide<From>>(*addend);
  }
  return To(sum);
}

/// Device memory with given contents, to be compared with expected contents.
template <device_policy D, class T>
class array {
public:
  array(D& device, typename D::stream& stream, std::vector<T> const& values)
      : stream_{&stream},
        there_{device, values.size() * sizeof(T)},
        here_{device, values.size() * sizeof(T), memory::host},
        size_{values.size()} {
    if (!values.empty()) {
      std::memcpy(here_.data(), values.data(), there_.bytes());
      stream.copy(there_.data(), here_.data(), there_.bytes());
    }
  }
  array(array const&) = delete;
  array& operator=(array const&) = delete;
  ~array() { drain(*stream_); }

  [[nodiscard]] T* data() const { return there_.template as<T>(); }
  /// Queues nothing else; waits for the stream.
  [[nodiscard]] bool holds(std::vector<T> const& expected) {
    if (size_ != 0) {
      stream_->copy(here_.data(), there_.data(), there_.bytes());
    }
    stream_->synchronize();
    return expected.size() == size_ &&
           (size_ == 0 || std::memcmp(here_.data(), expected.data(), there_.bytes()) == 0);
  }

private:
  typename D::stream* stream_;
  buffer<D> there_, here_;
  std::size_t size_;
};

using bytes = std::vector<std::uint8_t>;
inline bytes bytes_of(int rank, std::uint32_t seed, std::size_t count) {
  std::mt19937 random{seed * 31 + static_cast<std::uint32_t>(rank)};
  bytes values(count);
  for (auto& value : values) { value = static_cast<std::uint8_t>(random()); }
  return values;
}
inline bytes joined(bytes a, bytes const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Every division of so many ranks into subsets.
inline std::vector<comm::division> divisions_of(int ranks) {
  std::vector<comm::division> all{{}};
  for (int size = 1; size <= ranks; ++size) {
    if (ranks % size == 0) {
      all.push_back(comm::neighbours(size));
      all.push_back(comm::counterparts(size));
    }
  }
  return all;
}
/// For messages: "among 2 neighbours".
inline std::string text_of(comm::division const& among, int runs) {
  return concat(" of ", runs, " runs among ", among.neighbours,
                among.counterparts ? " counterparts" : " neighbours");
}

/// Checks all_to_all with parts of `count` bytes among the members of a division.
template <device_policy D, comm::communicator<D> C>
void exchanges_parts(D& device, C& group, std::uint32_t seed, std::size_t count,
                     comm::division const& among) {
  typename D::stream stream{device};
  auto const members = among.of(group.rank(), group.ranks());
  auto const all = static_cast<std::size_t>(members.number) * count;
  auto const own = static_cast<std::size_t>(members.index_of(group.rank())) * count;
  bytes expected;
  for (int i = 0; i < members.number; ++i) {
    auto const sent = bytes_of(members.rank(i), seed, all);
    auto const mine = sent.begin() + static_cast<std::ptrdiff_t>(own);
    expected.insert(expected.end(), mine, mine + static_cast<std::ptrdiff_t>(count));
  }
  array<D, std::uint8_t> from{device, stream, bytes_of(group.rank(), seed, all)};
  array<D, std::uint8_t> to{device, stream, bytes(all, 0xEE)};
  group.queue(stream, comm::all_to_all{from.data(), to.data(), count, among});
  require(to.holds(expected), "all_to_all of ", count, " bytes", text_of(among, 1));
}

/// Checks all_gather with `runs` runs of `count` bytes among the members of a division.
template <device_policy D, comm::communicator<D> C>
void gathers_runs(D& device, C& group, std::uint32_t seed, std::size_t count, comm::division const& among,
                  int runs) {
  typename D::stream stream{device};
  auto const members = among.of(group.rank(), group.ranks());
  auto const all = static_cast<std::size_t>(runs) * count;
  bytes expected;
  for (int k = 0; k < runs; ++k) {
    for (int i = 0; i < members.number; ++i) {
      auto const of_member = bytes_of(members.rank(i), seed, all);
      auto const run = of_member.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(k) * count);
      expected.insert(expected.end(), run, run + static_cast<std::ptrdiff_t>(count));
    }
  }
  array<D, std::uint8_t> from{device, stream, bytes_of(group.rank(), seed, all)};
  array<D, std::uint8_t> to{device, stream, bytes(expected.size(), 0xEE)};
  group.queue(stream, comm::all_gather{from.data(), to.data(), count, among, runs});
  require(to.holds(expected), "all_gather of ", count, " bytes", text_of(among, runs));
  if (runs == 1) {
    auto const own = static_cast<std::size_t>(members.index_of(group.rank())) * count;
    auto alone = bytes(expected.size(), 0xEE);
    std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(own), count,
                alone.begin() + static_cast<std::ptrdiff_t>(own));
    array<D, std::uint8_t> inside{device, stream, alone};
    group.queue(stream, comm::all_gather{inside.data() + own, inside.data(), count, among});
    require(inside.holds(expected), "all_gather in place of ", count, " bytes", text_of(among, runs));
  }
}

/// Checks reduce_scatter with `runs` runs of `count` elements among the members of a division.
template <element From, element To, device_policy D, comm::communicator<D> C>
void reduces(D& device, C& group, std::uint32_t seed, std::size_t count, comm::division const& among = {},
             int runs = 1) {
  typename D::stream stream{device};
  auto const members = among.of(group.rank(), group.ranks());
  auto const number = static_cast<std::size_t>(members.number), times = static_cast<std::size_t>(runs);
  auto const own = static_cast<std::size_t>(members.index_of(group.rank()));
  std::vector<std::vector<From>> all;
  for (int i = 0; i < members.number; ++i) {
    all.push_back(numbers_of<From>(members.rank(i), seed, times * number * count));
  }
  array<D, From> from{device, stream, all[own]};
  for (bool const accumulate : {false, true}) {
    auto const before = numbers_of<To>(group.rank() + 50, seed, times * count);
    array<D, To> to{device, stream, before};
    comm::reduce_scatter<From, To> sum{.from = from.data(),
                                       .to = to.data(),
                                       .count = static_cast<std::int64_t>(count),
                                       .accumulate = accumulate,
                                       .among = among,
                                       .runs = runs};
    buffer<D> const scratch{device, group.scratch_bytes(sum)};
    sum.scratch = scratch.data();
    group.queue(stream, sum);
    std::vector<To> expected;
    for (std::size_t k = 0; k < times; ++k) {
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<From> values;
        for (auto const& of_member : all) { values.push_back(of_member[(k * number + own) * count + i]); }
        expected.push_back(sum_of<To>(values, accumulate ? &before[k * count + i] : nullptr));
      }
    }
    require(to.holds(expected), "reduce_scatter of ", count, " ", name_of(dtype_of<From>), " to ",
            name_of(dtype_of<To>), accumulate ? ", added" : "", text_of(among, runs));
  }
  require(from.holds(all[own]), "reduce_scatter changed what it sums");
}

/// Checks the results of every operation, in every type and in sizes from zero to several pieces.
template <class Group>
void communicator_computes_what_it_says(Group& groups, int ranks) {
  CAPTURE(ranks);
  all_succeeded(groups.run(ranks, [ranks](auto& device, auto& group) {
    require(group.ranks() == ranks && group.rank() >= 0 && group.rank() < ranks, "rank ", group.rank(),
            " of ", group.ranks());
    std::uint32_t seed = 1;
    for (std::size_t const count : {0UL, 1UL, 3UL, 64UL, 1000UL, 4096UL, 4097UL, 30011UL}) {
      gathers_runs(device, group, seed++, count, {}, 1);
      for (auto const& among : divisions_of(ranks)) { exchanges_parts(device, group, seed++, count, among); }
      reduces<float, float>(device, group, seed++, count);
      reduces<float, bfloat16>(device, group, seed++, count);
      reduces<bfloat16, bfloat16>(device, group, seed++, count);
      reduces<bfloat16, float>(device, group, seed++, count);
      reduces<double, double>(device, group, seed++, count);
    }
  }));
}

/// Checks every operation among the members of every division of the ranks, also in several runs.
template <class Group>
void communicator_divides_its_ranks(Group& groups, int ranks) {
  CAPTURE(ranks);
  all_succeeded(groups.run(ranks, [](auto& device, auto& group) {
    std::uint32_t seed = 1;
    for (auto const& among : divisions_of(group.ranks())) {
      for (std::size_t const count : {0UL, 1UL, 65UL, 4097UL}) {
        exchanges_parts(device, group, seed++, count, among);
        for (int const runs : {1, 3}) {
          gathers_runs(device, group, seed++, count, among, runs);
          reduces<bfloat16, float>(device, group, seed++, count, among, runs);
          reduces<float, float>(device, group, seed++, count, among, runs);
        }
      }
    }
  }));
}

/// Checks collectives of the host, also while streams run operations.
template <class Group>
void communicator_agrees_on_the_host(Group& groups, int ranks) {
  CAPTURE(ranks);
  all_succeeded(groups.run(ranks, [](auto& device, auto& group) {
    using D = std::remove_reference_t<decltype(device)>;
    typename D::stream stream{device};
    array<D, std::uint8_t> mine{device, stream, bytes_of(group.rank(), 1, 5000)};
    array<D, std::uint8_t> gathered{device, stream, bytes(5000 * static_cast<std::size_t>(group.ranks()))};
    for (std::size_t const count : {0UL, 1UL, 8UL, 16384UL, 50001UL}) {
      for (int i = 0; i < 3; ++i) {
        group.queue(stream, comm::all_gather{mine.data(), gathered.data(), 5000});
      }
      group.barrier();
      auto const own = bytes_of(group.rank(), 2, count);
      bytes all(count * static_cast<std::size_t>(group.ranks()));
      group.gather(own.data(), all.data(), count);
      bytes expected;
      for (int r = 0; r < group.ranks(); ++r) { expected = joined(expected, bytes_of(r, 2, count)); }
      require(all == expected, "gather of ", count, " bytes");
      group.check();
    }
    bytes expected;
    for (int r = 0; r < group.ranks(); ++r) { expected = joined(expected, bytes_of(r, 1, 5000)); }
    require(gathered.holds(expected), "all_gather beside the host's collectives");
  }));
}

/// Passes a value around on two streams that are ordered by events only. Work queued after an operation must
/// see its result.
template <class Group>
void communicator_keeps_the_order_of_streams(Group& groups, int ranks) {
  CAPTURE(ranks);
  all_succeeded(groups.run(ranks, [](auto& device, auto& group) {
    using D = std::remove_reference_t<decltype(device)>;
    constexpr int rounds = 200;
    constexpr std::size_t count = 700;
    typename D::stream compute{device};
    typename D::stream transfer{device};
    typename D::event ready{device};
    typename D::event done{device};
    auto const all = count * static_cast<std::size_t>(group.ranks());
    array<D, float> shard{device, compute, std::vector<float>(count, static_cast<float>(group.rank() + 1))};
    array<D, float> whole{device, compute, std::vector<float>(all)};
    for (int i = 0; i < rounds; ++i) {
      auto& on = i % 3 == 2 ? compute : transfer;  // both queue operations
      compute.record(ready);
      on.wait(ready);
      group.queue(on, comm::all_gather{shard.data(), whole.data(), count * sizeof(float)});
      on.record(done);
      compute.wait(done);
      auto const next = static_cast<std::size_t>((group.rank() + 1) % group.ranks());
      compute.copy(shard.data(), whole.data() + next * count, count * sizeof(float));
    }
    auto const value = static_cast<float>((group.rank() + rounds) % group.ranks() + 1);
    require(shard.holds(std::vector<float>(count, value)), "the value did not go around");
    transfer.synchronize();
  }));
}

/// For groups of two and more: `culprit` fails in every way that its communicator can see. All others must
/// end with its name and the reason.
template <class Group>
void communicator_ends_together(Group& groups, int ranks, int culprit) {
  CAPTURE(ranks);
  CAPTURE(culprit);
  // Bodies run until they are ended.
  auto const work = [](auto& device, auto& group, auto&& between) {
    using D = std::remove_reference_t<decltype(device)>;
    typename D::stream stream{device};
    array<D, std::uint8_t> own{device, stream, bytes(1)};
    array<D, std::uint8_t> all{device, stream, bytes(static_cast<std::size_t>(group.ranks()))};
    comm::abort_on_exception const guard{group};
    for (int i = 0;; ++i) {
      group.queue(stream, comm::all_gather{own.data(), all.data(), 1});
      if (i % 4 == 3) {
        stream.synchronize();
      }
      between(stream, i);
    }
  };
  auto const check = [&](std::vector<std::string> const& outcomes, std::string_view own,
                         std::vector<std::string> const& seen) {
    for (int r = 0; r < ranks; ++r) {
      auto const& said = outcomes[static_cast<std::size_t>(r)];
      CAPTURE(r);
      CAPTURE(said);
      if (r == culprit) {
        CHECK(said.find(own) != std::string::npos);
      } else {
        for (auto const& part : seen) { CHECK(said.find(part) != std::string::npos); }
      }
    }
  };
  auto const name = concat("rank ", culprit, " ");

  // An exception between operations.
  check(groups.run(ranks,
                   [=](auto& device, auto& group) {
                     work(device, group,
                          [&](auto&, int i) { require(i != 9 || group.rank() != culprit, "no more"); });
                   }),
        "no more", {name, "failed", "exception"});
  // It gives the reason itself, while the others wait on the host.
  check(groups.run(ranks,
                   [=](auto&, auto& group) {
                     if (group.rank() == culprit) {
                       group.abort("the disk is full\n");
                     }
                     while (true) { group.barrier(); }
                   }),
        "disk is full", {name, "failed", "the disk is full\\x0a"});
  // It leaves too early.
  check(groups.run(ranks,
                   [=](auto&, auto& group) {
                     for (int i = 0; i < 5 || group.rank() != culprit; ++i) { group.barrier(); }
                   }),
        "", {name, "has left", "barrier (call 6"});
  // It calls another operation, with another size or type, or with accumulation.
  for (int const difference : {0, 1, 2, 3}) {
    CAPTURE(difference);
    auto const outcomes = groups.run(ranks, [=](auto& device, auto& group) {
      using D = std::remove_reference_t<decltype(device)>;
      work(device, group, [&](auto& stream, int i) {
        if (i == 6) {
          auto const other = group.rank() == culprit ? difference : -1;
          array<D, double> data{device, stream, std::vector<double>(256)};
          auto const sum = [&]<element T>(T* from, std::int64_t count, bool accumulate) {
            comm::reduce_scatter<T> r{
                .from = from, .to = from + 128, .count = count, .accumulate = accumulate};
            array<D, std::uint8_t> const scratch{device, stream, bytes(group.scratch_bytes(r))};
            r.scratch = scratch.data();
            group.queue(stream, r);
            stream.synchronize();
          };
          if (other == 0) {
            group.queue(stream, comm::all_gather{data.data(), data.data() + 128, 8});
          } else if (other == 2) {
            sum(reinterpret_cast<float*>(data.data()), 4, false);
          } else {
            sum(data.data(), other == 1 ? 5 : 4, other == 3);
          }
          stream.synchronize();
        }
      });
    });
    for (auto const& said : outcomes) {
      CAPTURE(said);
      CHECK(said.find(name) != std::string::npos);
      CHECK(said.find("call 8") != std::string::npos);
      CHECK(said.find("ranks must make the same calls") != std::string::npos);
      if (difference == 0) {
        CHECK(said.find("all_gather of 8 bytes") != std::string::npos);
        CHECK(said.find("reduce_scatter of 4 F64") != std::string::npos);
      }
    }
  }
}

}  // namespace superoffload::conformance
