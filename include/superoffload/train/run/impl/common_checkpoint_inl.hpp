// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/train/run/common_checkpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::train {
namespace detail {

/// The steps of all ranks' checkpoints, ascending.
SUPEROFFLOAD_INLINE std::vector<std::int64_t> steps_of_all(comm::host_group const& ranks,
                                                           std::filesystem::path const& root) {
  std::vector<std::int64_t> own;
  comm::together(ranks, [&] { own = io::checkpoint_steps(root); });
  std::string_view const bytes{reinterpret_cast<char const*>(own.data()), own.size() * sizeof own[0]};
  std::set<std::int64_t> all;
  for (auto const& theirs : comm::gather_texts(ranks, bytes)) {
    for (std::size_t at = 0; at < theirs.size(); at += sizeof(std::int64_t)) {
      std::int64_t step = 0;
      std::memcpy(&step, theirs.data() + at, sizeof step);
      all.insert(step);
    }
  }
  return {all.begin(), all.end()};
}

/// What `open` opens on every rank.
template <class Open>
io::checkpoint_reader opened_by_all(comm::host_group const& ranks, Open const& open) {
  std::optional<io::checkpoint_reader> reader;
  comm::together(ranks, [&] { reader.emplace(open()); });
  comm::expect_same(ranks, concat("the manifest of the checkpoint of step ", reader->step()),
                    reader->digest());
  return *std::move(reader);
}

}  // namespace detail

SUPEROFFLOAD_INLINE io::checkpoint_reader open_on_all_ranks(comm::host_group const& ranks,
                                                            std::filesystem::path const& directory) {
  return detail::opened_by_all(ranks, [&] { return io::checkpoint_reader::open(directory); });
}

SUPEROFFLOAD_INLINE std::optional<io::checkpoint_reader> newest_on_all_ranks(
    comm::host_group const& ranks, std::filesystem::path const& root,
    std::function<void(std::string const& reason)> const& on_rejected,
    std::function<void(io::checkpoint_reader const&)> const& take) {
  auto const open = [&](std::int64_t step) {
    return detail::opened_by_all(ranks, [&] { return io::open_checkpoint(root, step); });
  };
  return io::newest_checkpoint(detail::steps_of_all(ranks, root), open, on_rejected, take);
}

}  // namespace superoffload::train
