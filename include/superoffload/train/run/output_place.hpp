// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/host_group.hpp>

#include <filesystem>
#include <string>

namespace superoffload::train {

/// Where a rank writes: in a directory that all ranks see, or in one that only the ranks of its host see.
struct output_place {
  int keeper = 0;  ///< the rank that manages this rank's output directory: the first one, or that of its host
  std::string host;    ///< the name of this host, if each has its own directory; else empty
  double share = 1.0;  ///< the part of all ranks that write to the same directory as this one
};

/// The place of this rank; `on_each_host`: hosts have directories of their own. Every rank calls it. Ranks of
/// one host have one directory in any case.
output_place place_of_output(comm::host_group const& ranks, bool on_each_host);

/// Checks that no two keepers have the same `output`, where they leave files for the time of the call. Every
/// rank calls it. \throws comm::agreed_error: bad_input if they have; io_failure.
void expect_apart(comm::host_group const& ranks, output_place const& place,
                  std::filesystem::path const& output);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/run/impl/output_place_inl.hpp>
#endif
