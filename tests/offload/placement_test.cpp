// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/offload/placement.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace {

using namespace superoffload;

TEST_CASE("buckets cover every trainable unit once, on the grid of the norm, and have one size") {
  std::vector<autograd::unit_layout> units;
  units.emplace_back(0, "small").add_vector("a", 10);
  units.emplace_back(1, "large").add_matrix({{"b", 1000}}, 1999);
  units.emplace_back(2, "frozen").add_vector("c", 500);
  units[2].tensors()[0].trainable = false;
  for (std::int64_t const most :
       {std::int64_t{1}, kernel::norm_grid, 7 * kernel::norm_grid + 5, std::int64_t{1} << 40}) {
    CAPTURE(most);
    auto const all = offload::buckets_of(units, most);
    REQUIRE(all.front() == offload::bucket{.unit = 0, .count = 128});
    std::int64_t expected = 0, smallest = units[1].elements(), largest = 0;
    for (std::size_t i = 1; i < all.size(); ++i) {
      auto const& b = all[i];
      CHECK(b.unit == 1);
      CHECK(b.offset == expected);
      CHECK(b.offset % kernel::norm_grid == 0);
      CHECK(b.count > 0);
      CHECK(b.count <= std::max(most, kernel::norm_grid));
      expected += b.count;
      if (i + 1 < all.size()) {
        smallest = std::min(smallest, b.count);
        largest = std::max(largest, b.count);
      }
    }
    CHECK(expected == units[1].elements());
    CHECK(largest - smallest <= kernel::norm_grid);
  }
}

double share(offload::placement const& buckets, offload::tier where) {
  double here = 0.0, all = 0.0;
  for (auto const& b : buckets) {
    all += static_cast<double>(b.count);
    here += b.where == where ? static_cast<double>(b.count) : 0.0;
  }
  return here / all;
}

TEST_CASE("shares are met within a bucket; the first units and the last stay on the device") {
  std::vector<autograd::unit_layout> units;
  for (int i = 0; i < 10; ++i) { units.emplace_back(i, "unit").add_matrix({{"w", 1024}}, 1024); }
  auto buckets = offload::buckets_of(units, 4 * kernel::norm_grid);
  for (double const ratio : {0.0, 0.3, 0.9, 1.0}) {
    for (double const device_updated : {0.0, 0.4, 1.0}) {
      offload::place_by_share(buckets, ratio, device_updated);
      CHECK(share(buckets, offload::tier::resident) == doctest::Approx(1.0 - ratio).epsilon(0.03));
      CHECK(share(buckets, offload::tier::device_updated) ==
            doctest::Approx(ratio * device_updated).epsilon(0.05));
    }
  }
  offload::place_by_share(buckets, 0.6, 0.5);
  for (auto const& b : buckets) {
    CHECK((b.where == offload::tier::resident) == (b.unit < 3 || b.unit == 9));
  }
}

}  // namespace
