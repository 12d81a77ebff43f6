// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/host_group.hpp>
#include <superoffload/io/train_checkpoint.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace superoffload::train {

// Checkpoints that all ranks of a run read, each from the directory that it sees. Every rank calls these, and
// has the same result or error.

/// Opens a checkpoint. \throws comm::agreed_error if a rank cannot; bad_input if manifests differ.
io::checkpoint_reader open_on_all_ranks(comm::host_group const& ranks,
                                        std::filesystem::path const& directory);

/// As io::newest_checkpoint, of those that any rank has under `root`: one that another rank lacks, or has
/// with another manifest, is rejected. `take` may communicate, and throws on all ranks or on none.
std::optional<io::checkpoint_reader> newest_on_all_ranks(
    comm::host_group const& ranks, std::filesystem::path const& root,
    std::function<void(std::string const& reason)> const& on_rejected,
    std::function<void(io::checkpoint_reader const&)> const& take);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/common_checkpoint_inl.hpp>
#endif
