// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/shared_segment.hpp>

namespace superoffload::comm {

/// The shared-memory segment of the ranks of a run: the launcher's, or else one that rank 0 creates and hands
/// to the others through an abstract socket. The socket's name is made of the user's id and the job's name;
/// processes of other users get no answer. `with.ranks` is set here; `with.gathering` is how long ranks wait
/// for each other to come.
///
/// Throws `error`: bad_input when ranks are on several hosts, when nothing names the job, or when the ranks'
/// settings differ; rank_failed when not all of them come.
[[nodiscard]] shared_segment rendezvous(environment const& run, shared_segment::settings with = {});

}  // namespace superoffload::comm

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/comm/impl/rendezvous_inl.hpp>
#endif
