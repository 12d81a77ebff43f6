// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/shared_segment.hpp>

namespace superoffload::comm {

/// The region that the ranks of a run share: the one that the launcher has made, or else one that rank 0
/// makes and hands to the others through a socket that has no file. Its name is made of the user's and the
/// job's, and no process of another user is answered. `with.ranks` is set here; with.gathering is how
/// long ranks wait for each other to come.
///
/// Throws `error`: bad_input when ranks are on several hosts, when nothing says what they have in common, or
/// when two of them differ in what they were told; rank_failed when they do not all come.
[[nodiscard]] shared_segment rendezvous(environment const& run, shared_segment::settings with = {});

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/rendezvous_inl.hpp>
#endif
