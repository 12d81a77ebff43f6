// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/batch.hpp>
#include <superoffload/data/example_set.hpp>

#include <cstdint>
#include <span>

namespace superoffload::data {

/// The rows of one sequence of a batch: a single one, unless rows are packed.
using sequence = std::span<std::int64_t const>;

enum class pad_to { none, longest, max_length };

/// How sequences become a micro-batch.
struct collation {
  pad_to padding = pad_to::none;  ///< none, to the longest of the micro-batch, or all to `max_length`
  bool packing = false;           ///< each row is its own document
  std::int64_t max_length = 0;    ///< tokens; the width of pad_to::max_length
  std::int32_t pad_id = 0;        ///< fills the padding, which follows all real tokens
  bool learn_padding = false;     ///< padding is a target like other tokens; otherwise it is none
};

/// The micro-batch of `sequences`, which may be empty.
/// Not packed: a sequence is one document, with its padding at its end; positions count from 0 through it.
/// Packed: every row is a document; only `pad_to::max_length` pads, by one more document after the rows.
batch collate(example_set const& examples, std::span<sequence const> sequences, collation const& options);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/collate_inl.hpp>
#endif
