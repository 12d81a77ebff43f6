// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/offload/service_order.hpp>

#include <doctest/doctest.h>

#include <optional>
#include <vector>

namespace {

using namespace superoffload::offload;

/// Buckets in the order of the forward; their gradients became final in the opposite order.
std::vector<standing> buckets(std::vector<stage> const& stages) {
  std::vector<standing> all;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    all.push_back(
        {.state = stages[i], .arrival = static_cast<std::int64_t>(stages.size() - i), .on_host = true});
  }
  return all;
}

constexpr service_moment before{.gathering = true, .speculating = true, .free_slots = 1};
constexpr service_moment after{.free_slots = 1};

using enum stage;

TEST_CASE("before the verdict the newest gradient is served first, after it the first of the forward") {
  auto const all = buckets({final, arrived, arrived, fetching});
  CHECK(next_task(all, before) == service_task{service::emit, 1});
  CHECK(next_task(all, after) == service_task{service::update, 1});
  CHECK(next_in(all, final, true) == 0);
  CHECK(next_in(all, emitted, true) == std::nullopt);
}

TEST_CASE("without speculation nothing is served before the verdict; in the immediate mode all is updated") {
  auto const all = buckets({idle, arrived});
  auto now = before;
  now.speculating = false;
  CHECK(next_task(all, now) == std::nullopt);
  now = before;
  now.immediate = true;
  now.free_slots = 0;
  CHECK(next_task(all, now) == service_task{service::update, 1});
}

TEST_CASE("an emission needs a slot for the weights, or the one of a gradient that was kept") {
  auto all = buckets({idle, arrived});
  auto now = before;
  now.free_slots = 0;
  CHECK(next_task(all, now) == std::nullopt);
  all[1].pending = true;
  CHECK(next_task(all, now) == service_task{service::emit, 1});
}

TEST_CASE("weights that must be sent again come before updates") {
  CHECK(next_task(buckets({arrived, refused, refused}), after) == service_task{service::send_again, 1});
}

TEST_CASE("commits are for idle time: what has no new gradient first, then what waits for slots") {
  auto all = buckets({final, idle, idle});
  for (auto& b : all) { b.pending = true; }
  for (auto now : {before, after}) {
    CHECK(next_task(all, now) == service_task{service::commit, 1});
    now.fetching = 1;
    CHECK(next_task(all, now) == std::nullopt);
  }
  auto late = after;
  late.link_is_late = true;
  CHECK(next_task(all, late) == std::nullopt);
  all[1].pending = all[2].pending = false;
  CHECK(next_task(all, before) == service_task{service::commit, 0});
  CHECK(next_task(buckets({final, idle}), before) == std::nullopt);
}

TEST_CASE("what is not the host's, was dropped, or is still being computed is not served") {
  for (int what = 0; what < 3; ++what) {
    CAPTURE(what);
    auto all = buckets({arrived, arrived});
    (what == 0 ? all[0].dropped : all[0].computing) = what < 2;
    all[0].on_host = what != 2;
    CHECK(next_task(all, after) == service_task{service::update, 1});
  }
}

TEST_CASE("of gradients that are queued, the device finishes the oldest first") {
  auto all = buckets({final, final, final});
  CHECK(next_computing(all) == std::nullopt);
  all[0].computing = all[1].computing = true;
  CHECK(next_computing(all) == 1);
}

}  // namespace
