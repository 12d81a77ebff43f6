// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/float8.hpp>
#include <superoffload/kernel/float8.hpp>

#include <cstddef>
#include <cstdint>

namespace superoffload::offload {

/// A matrix in 8 bits, and its transposed copy, for measurements of FP8 GEMMs.
template <device_policy D>
class float8_operand {
public:
  /// Rounds `from` [rows, columns] in device memory; waits for `stream`.
  float8_operand(D& device, typename D::stream& stream, bfloat16 const* from, std::int64_t rows,
                 std::int64_t columns)
      : values_{device, static_cast<std::size_t>(rows * columns)},
        transposed_{device, values_.bytes()},
        inverse_{device, sizeof(float)} {
    buffer<D> const largest{device, sizeof(std::uint32_t)};
    drain_at_end const drained{stream};
    stream.fill_zero(largest.data(), largest.bytes());
    launch(stream, kernel::largest_magnitude{from, largest.template as<std::uint32_t>(), rows * columns});
    launch(stream, kernel::quantize{.x = from,
                                    .largest = largest.template as<std::uint32_t>(),
                                    .out = values_.template as<float8>(),
                                    .transposed = transposed_.template as<float8>(),
                                    .inverse = inverse_.template as<float>(),
                                    .rows = rows,
                                    .columns = columns,
                                    .stride = rows});
  }

  /// [rows, columns]
  [[nodiscard]] float8 const* values() const { return values_.template as<float8>(); }
  /// [columns, rows]
  [[nodiscard]] float8 const* transposed() const { return transposed_.template as<float8>(); }
  /// One number: float8_scale::inverse.
  [[nodiscard]] float const* inverse() const { return inverse_.template as<float>(); }

private:
  buffer<D> values_, transposed_, inverse_;
};

}  // namespace superoffload::offload
