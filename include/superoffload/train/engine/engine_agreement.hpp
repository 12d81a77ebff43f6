// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/train/engine/engine_options.hpp>

#include <cstddef>
#include <vector>

namespace superoffload::train {

/// Compares what must be the same in all ranks' engines, before a collective depends on it.
/// \throws comm::agreed_error(bad_input) on every rank, with what differs.
void expect_same_engines(comm::host_group const& ranks, std::vector<autograd::unit_layout> const& units,
                         dtype type, engine_options const& o);

/// Arguments of a step that all ranks must give alike.
struct step_arguments {
  double rate = 0.0;
  double label_tokens = 0.0;
};

/// to[r] = rank r's `count` numbers, as comm::host_group::gather. The ranks' arguments come along, and are
/// compared. \throws comm::agreed_error(bad_input) on all ranks if they differ: each would update its shards
/// by its own.
void gather_with_arguments(comm::host_group const& ranks, step_arguments const& own, double const* from,
                           double* to, std::size_t count);

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/engine_agreement_inl.hpp>
#endif
