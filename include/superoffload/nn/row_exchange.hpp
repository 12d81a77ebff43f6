// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/kernel/column_parts.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

/// Exchanges between ranks that share the rows of a micro-batch (DeepSpeed Ulysses, arXiv 2309.14509): each
/// rank has a part of the rows with all columns, or all rows with a part of the columns.
namespace superoffload::nn {

using autograd::tape;
using autograd::variable;

/// Columns of a matrix in up to three segments, such as queries, keys and values; 0: there is none. Each rank
/// has an equal piece of every segment, in the order of ranks.
using column_segments = std::array<std::int64_t, 3>;

/// The tape's function behind columns_of_rank and rows_of_rank. Its results are worth keeping or not apart
/// from those of attention.
template <device_policy D, element T>
struct row_exchange_function {
  variable<D, T> x;         ///< read by this function only
  int ranks;                ///< that share the rows; divide every segment
  column_segments columns;  ///< of the matrix with all columns
  bool to_rows;             ///< from all rows to all columns
  variable<D, T> y{};       ///< as many elements as x

  void forward(tape<D, T>& t) {
    y = to_rows ? t.make(x.rows() / ranks, x.columns() * ranks)
                : t.make(x.rows() * ranks, x.columns() / ranks);
    exchange(t, to_rows, x.value(), y.value());
  }

  /// \throws error(internal) when another function has written the gradient of x.
  void backward(tape<D, T>& t) {
    auto const to = t.gradient_of(x);
    expect(!to.accumulate, exit_code::internal, "what ranks exchange has one use only");
    exchange(t, !to_rows, y.gradient(), to.gradient);
  }

  [[nodiscard]] autograd::work forward_work() const {
    auto const bytes = static_cast<double>(sizeof(T)) * static_cast<double>(x.count());
    return {.bytes = 2.0 * bytes, .exchanged = bytes * (1.0 - 1.0 / ranks)};
  }

private:
  void exchange(tape<D, T>& t, bool joins, T const* from, T* to) const {
    auto const before = t.mark();
    auto* const parts_of_ranks = t.template allocate<T>(x.count());
    kernel::column_parts const parts{.from = joins ? parts_of_ranks : from,
                                     .to = joins ? to : parts_of_ranks,
                                     .piece_bytes = {piece_bytes(0), piece_bytes(1), piece_bytes(2)},
                                     .rows = (to_rows ? y : x).rows(),
                                     .parts = ranks,
                                     .joins = joins};
    auto const bytes = static_cast<std::size_t>(parts.row_bytes() * parts.rows);
    if (joins) {
      t.exchange(from, parts_of_ranks, bytes);
    }
    t.launch(parts);
    if (!joins) {
      t.exchange(parts_of_ranks, to, bytes);
    }
    t.release(before);
  }

  [[nodiscard]] std::int64_t piece_bytes(std::size_t segment) const {
    return columns[segment] / ranks * static_cast<std::int64_t>(sizeof(T));
  }
};

/// All rows of this rank's piece of every segment: [rows, columns] -> [ranks * rows, columns / ranks].
template <device_policy D, element T>
variable<D, T> columns_of_rank(variable<D, T> x, int ranks, column_segments const& columns) {
  return x.on().run(row_exchange_function<D, T>{x, ranks, columns, false});
}

/// The reverse: [ranks * rows, columns / ranks] -> [rows, columns].
template <device_policy D, element T>
variable<D, T> rows_of_rank(variable<D, T> x, int ranks, column_segments const& columns) {
  return x.on().run(row_exchange_function<D, T>{x, ranks, columns, true});
}

}  // namespace superoffload::nn
