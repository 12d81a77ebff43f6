// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/scratch.hpp>
#include <superoffload/cpu/kernels/simd.hpp>

#if !defined(EIGEN_DONT_PARALLELIZE)
#define EIGEN_DONT_PARALLELIZE
#endif
#if !defined(EIGEN_NO_DEBUG)
#define EIGEN_NO_DEBUG
#endif
#include <Eigen/Core>

#include <cstddef>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// The matrix op(m) of [rows, columns]; m lies row by row, or column by column when transposed, `stride`
/// elements apart.
template <class T>
struct operand {
  T const* data;
  int64_t rows, columns, stride;
  bool transposed = false;

  [[nodiscard]] T const* at(int64_t row, int64_t column) const {
    return data + (transposed ? column * stride + row : row * stride + column);
  }
  /// The block [height, width] from (row, column) on.
  [[nodiscard]] operand block(int64_t row, int64_t column, int64_t height, int64_t width) const {
    return {at(row, column), height, width, stride, transposed};
  }
};

/// c (+)= a b, on the calling thread. c is row-major, [a.rows, b.columns].
template <class W>
void multiply(operand<W> const& a, operand<W> const& b, W* c, int64_t c_stride, bool accumulate) {
  using by_rows = Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using by_columns = Eigen::Matrix<W, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;
  using stride = Eigen::OuterStride<>;
  Eigen::Map<by_rows, 0, stride> out{c, a.rows, b.columns, stride{c_stride}};
  if (!accumulate) {
    out.setZero();
  }
  if (a.columns == 0) {
    return;
  }
  auto const with_left = [&](auto const& left) {
    if (b.transposed) {
      Eigen::Map<by_columns const, 0, stride> right{b.data, b.rows, b.columns, stride{b.stride}};
      out.noalias() += left * right;
    } else {
      Eigen::Map<by_rows const, 0, stride> right{b.data, b.rows, b.columns, stride{b.stride}};
      out.noalias() += left * right;
    }
  };
  if (a.transposed) {
    with_left(Eigen::Map<by_columns const, 0, stride>{a.data, a.rows, a.columns, stride{a.stride}});
  } else {
    with_left(Eigen::Map<by_rows const, 0, stride>{a.data, a.rows, a.columns, stride{a.stride}});
  }
}

/// Cuts a thread's scratch memory in arrays.
class arrays {
public:
  explicit arrays(std::size_t bytes) : next_{static_cast<std::byte*>(detail::thread_scratch(bytes))} {}

  static constexpr std::size_t bytes_of(int64_t count, std::size_t element) {
    return (static_cast<std::size_t>(count) * element + 63) / 64 * 64;
  }
  template <class W>
  W* take(int64_t count) {
    auto* const array = reinterpret_cast<W*>(next_);
    next_ += bytes_of(count, sizeof(W));
    return array;
  }

private:
  std::byte* next_;
};

/// `from` in wide<T>, dense in its own order, in `to`.
template <element T>
operand<wide<T>> widened(operand<T> const& from, wide<T>* to, wide<T> factor = 1) {
  using W = wide<T>;
  auto const lines = from.transposed ? from.columns : from.rows;
  auto const length = from.transposed ? from.rows : from.columns;
  vector<W> const scale(factor);
  for (int64_t line = 0; line < lines; ++line) {
    auto const* const source = from.data + line * from.stride;
    for_vectors<W>(length, [&](int64_t i, auto extent) {
      store(to + line * length + i, load<W>(source + i, extent) * scale, extent);
    });
  }
  return {to, from.rows, from.columns, length, from.transposed};
}

/// The products of a tile of at most `rows` x `columns`, in panels of `depth`: of wide<T>, widened where T is
/// not.
template <element T>
class tile_product {
  using W = wide<T>;
  static constexpr bool widens = !std::same_as<T, W>;

public:
  /// The tile's memory is a multiple of these.
  static constexpr int64_t row_grid = 1, column_grid = 1;
  /// The largest tile, and the number of tiles below which a GEMM is cut into smaller ones.
  static constexpr int64_t tile_rows = 192, tile_columns = 256, wanted_tiles = 64;
  static constexpr int64_t depth_of(int64_t k) { return widens && k > 256 ? 256 : k; }
  static constexpr std::size_t scratch_bytes(int64_t rows, int64_t columns, int64_t depth) {
    return widens ? arrays::bytes_of((rows + columns) * depth, sizeof(W)) : 0;
  }

  tile_product(arrays& scratch, int64_t rows, int64_t columns, int64_t depth)
      : left_{widens ? scratch.take<W>((rows + columns) * depth) : nullptr},
        right_{widens ? left_ + rows * depth : nullptr} {}

  /// c (+)= a b.
  void operator()(operand<T> const& a, operand<T> const& b, W* c, int64_t c_stride, bool accumulate) const {
    if constexpr (widens) {
      multiply<W>(widened<T>(a, left_), widened<T>(b, right_), c, c_stride, accumulate);
    } else {
      multiply<W>(a, b, c, c_stride, accumulate);
    }
  }

private:
  W* left_;
  W* right_;
};

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
