// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/host_name.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/train/planning/host_share.hpp>
#include <superoffload/train/run/output_place.hpp>

#include <algorithm>
#include <iterator>
#include <optional>

namespace superoffload::train {

SUPEROFFLOAD_INLINE output_place place_of_output(comm::host_group const& ranks, bool on_each_host) {
  // Also without the flag: ranks that differ in it are told so later.
  auto const here = ranks_of_this_host(ranks);
  if (!on_each_host || std::ssize(here) == ranks.ranks()) {
    return {};
  }
  return {
      .keeper = here.front(), .host = host_name(), .share = static_cast<double>(here.size()) / ranks.ranks()};
}

SUPEROFFLOAD_INLINE void expect_apart(comm::host_group const& ranks, output_place const& place,
                                      std::filesystem::path const& output) {
  // Named as the draft of a checkpoint: the next save removes what a killed process leaves.
  auto const mark = concat(".tmp-host-", io::random_suffix());
  std::optional<io::staging_directory> left;
  comm::together(ranks, [&] {
    if (ranks.rank() == place.keeper) {
      io::make_directories(output);
      left.emplace(output / mark);
    }
  });
  auto const marks = comm::gather_texts(ranks, left ? mark : std::string{});
  comm::together(ranks, [&] {
    for (auto const& name : io::list_directory(output)) {
      auto const keeper = std::find(marks.begin(), marks.end(), name) - marks.begin();
      expect(keeper == std::ssize(marks) || keeper == place.keeper, exit_code::bad_input, io::shown(output),
             ": is the directory of rank ", keeper,
             " as well; expected one of this host alone, or no --save_on_each_node");
    }
  });
}

}  // namespace superoffload::train
