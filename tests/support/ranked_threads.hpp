// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include "comm/groups.hpp"
#include "conformance/communicator.hpp"
#include "support/ranked_training.hpp"

#include <mutex>
#include <optional>

namespace superoffload::test::ranked {

/// What train_rank(device, group) returns on every rank, which must be the same. Ranks are threads.
template <class TrainRank>
record on_threads(int ranks, TrainRank const& train_rank) {
  threads_of_a_process groups;
  groups.settings.piece_bytes = 1U << 18;
  std::optional<record> all;
  std::mutex mutex;
  conformance::all_succeeded(groups.run(ranks, [&](auto& device, auto& group) {
    auto const r = train_rank(device, group);
    std::lock_guard const lock{mutex};
    conformance::require(!all || *all == r, "ranks differ");
    all = r;
  }));
  REQUIRE(all);
  return *all;
}

}  // namespace superoffload::test::ranked
