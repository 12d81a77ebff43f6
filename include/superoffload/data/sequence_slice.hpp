// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/batch.hpp>

#include <cstdint>

namespace superoffload::data {

/// Rows of each of `ranks` ranks that share a micro-batch of `rows` rows.
constexpr std::int64_t rows_of_slice(std::int64_t rows, int ranks) { return (rows + ranks - 1) / ranks; }

/// The rows of one of several ranks that share a micro-batch, of which each has as many, one after the other.
/// `starts` stay those of all rows: the result's last start is `ranks` times its rows. Where `rows`, of all
/// ranks together, are more than the batch has, they end with padding, in documents of at most `longest`
/// rows. Each slice has noise of its own.
batch slice_of(batch whole, std::int64_t rows, int rank, int ranks, std::int64_t longest);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/sequence_slice_inl.hpp>
#endif
