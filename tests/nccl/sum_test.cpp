// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/comm/sum.hpp>
#include <superoffload/nccl/sum.hpp>

#include <doctest/doctest.h>

#include "conformance/communicator.hpp"
#include "nccl/groups.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

using namespace superoffload;
using conformance::require;

/// The sum of `ranks` parts, with the part of `rank` stored separately (-1: none is), against that of the
/// CPU.
template <element From, element To>
void sums(cuda::device& device, int ranks, int rank, std::int64_t count, std::size_t offset) {
  cuda::stream stream{device};
  auto const elements = static_cast<std::size_t>(count) + offset;
  auto const part_bytes = elements * sizeof(From);
  std::vector<std::vector<From>> parts;
  std::vector<std::byte const*> at;
  std::vector<From> others;
  for (int r = 0; r < ranks; ++r) {
    parts.push_back(conformance::numbers_of<From>(r, 7, elements));
    at.push_back(reinterpret_cast<std::byte const*>(parts.back().data() + offset));
    if (r != rank) {
      others.insert(others.end(), parts.back().begin(), parts.back().end());
    }
  }
  for (bool const accumulate : {false, true}) {
    auto expected = conformance::numbers_of<To>(50, 7, elements);
    conformance::array<cuda::device, From> const there{device, stream, others};
    conformance::array<cuda::device, From> const own{device, stream,
                                                     parts[static_cast<std::size_t>(rank < 0 ? 0 : rank)]};
    conformance::array<cuda::device, To> to{device, stream, expected};
    launch(stream,
           nccl::sum_of_parts<From, To>{.others = reinterpret_cast<std::byte const*>(there.data() + offset),
                                        .part_bytes = part_bytes,
                                        .own = rank < 0 ? nullptr : own.data() + offset,
                                        .rank = rank,
                                        .ranks = ranks,
                                        .to = to.data() + offset,
                                        .count = count,
                                        .accumulate = accumulate});
    comm::sum_in_order<From>(at, expected.data() + offset, count, accumulate);
    require(to.holds(expected), "the sum of ", ranks, " parts of ", count, " ", name_of(dtype_of<From>),
            " as ", name_of(dtype_of<To>), ", of which ", rank, " is separate");
  }
}

TEST_SUITE("one_gpu") {
  TEST_CASE("a GPU sums the parts of ranks with the bits of the CPU") {
    test::gpu_processes alone;
    conformance::all_succeeded(alone.run(1, [](auto& device, auto&) {
      for (int const ranks : {1, 2, 3, 8}) {
        for (int const rank : {-1, 0, ranks - 1}) {
          for (std::int64_t const count : {0, 1, 7, 8, 9, 30011}) {
            for (std::size_t const offset : {0, 1}) {  // aligned and not
              sums<float, float>(device, ranks, rank, count, offset);
              sums<float, bfloat16>(device, ranks, rank, count, offset);
              sums<bfloat16, bfloat16>(device, ranks, rank, count, offset);
              sums<bfloat16, float>(device, ranks, rank, count, offset);
              sums<double, double>(device, ranks, rank, count, offset);
            }
          }
        }
      }
    }));
  }
}

}  // namespace
