// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/nn/rotary.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace superoffload::model {

/// The rotary tables of a configuration. There is one, except with longrope: its second table has the long
/// factors, for micro-batches with a document of more than original_positions tokens. As in transformers, the
/// longest document of a micro-batch decides for all of its documents.
template <device_policy D, class W>
class rope_tables {
public:
  using table = nn::rotary_table<D, W>;  ///< cosines and sines for one set of frequencies

  /// A table without values, for a dry tape.
  rope_tables() = default;

  /// For positions 0 to `positions` - 1; waits for the copies. \throws error(bad_input) where frequencies
  /// would depend on the micro-batches before: with dynamic scaling beyond max_positions.
  rope_tables(D& device, typename D::stream& stream, config const& c, std::int64_t positions)
      : short_positions_{short_positions(c)},
        usual_{device, stream, inverse_frequencies(c), checked(c, std::min(positions, short_positions_)),
               c.scaling.attention_factor} {
    if (positions > short_positions_) {
      long_ = table{device, stream, inverse_frequencies(c, positions), positions, c.scaling.attention_factor};
    }
  }

  /// Bytes of device memory of tables for `positions` positions.
  static std::size_t bytes(config const& c, std::int64_t positions) {
    auto const limit = short_positions(c);
    auto const half = c.rotated() / 2;
    return table::bytes(half, std::min(positions, limit)) +
           (positions > limit ? table::bytes(half, positions) : 0);
  }

  /// The table for the documents of a micro-batch.
  [[nodiscard]] table const& of(nn::batch const& b) const noexcept {
    return b.longest > short_positions_ ? long_ : usual_;
  }

private:
  static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

  static std::int64_t short_positions(config const& c) {
    return c.scaling.kind == rope_scaling::rule::longrope ? c.scaling.original_positions : unlimited;
  }
  static std::int64_t checked(config const& c, std::int64_t positions) {
    expect(c.scaling.kind != rope_scaling::rule::dynamic || positions <= c.max_positions,
           exit_code::bad_input, "documents of ", positions,
           " tokens, but rope scaling 'dynamic' is supported up to max_position_embeddings, ",
           c.max_positions, ": beyond it, transformers' frequencies depend on the batches before");
    return positions;
  }

  std::int64_t short_positions_ = unlimited;  ///< of the longest document for which `usual_` is
  table usual_, long_;
};

}  // namespace superoffload::model
