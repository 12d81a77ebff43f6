// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/kernel/rotary.hpp>
#include <superoffload/nn/attention.hpp>
#include <superoffload/nn/batch.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

namespace superoffload::nn {

using autograd::tape;
using autograd::variable;

/// Cosines and sines of every position and frequency, [positions, frequencies] each, in device memory.
template <device_policy D, class W>
class rotary_table {
public:
  /// A table without values, for a dry tape.
  rotary_table() = default;

  /// `inverse_frequencies`, one for two elements of a head that are turned, after the model's scaling rule;
  /// cosines and sines are multiplied by `attention_scaling`. The angle is multiplied in single precision, as
  /// in Hugging Face transformers, with which the published models were trained.
  rotary_table(D& device, typename D::stream& stream, std::vector<double> const& inverse_frequencies,
               std::int64_t positions, double attention_scaling = 1.0)
      : half_{static_cast<std::int64_t>(inverse_frequencies.size())},
        positions_{positions},
        values_{device, bytes(half_, positions)} {
    std::vector<W> host(static_cast<std::size_t>(2 * positions * half_));
    for (std::int64_t p = 0; p < positions; ++p) {
      for (std::int64_t j = 0; j < half_; ++j) {
        auto const frequency = inverse_frequencies[static_cast<std::size_t>(j)];
        auto const angle = static_cast<double>(static_cast<float>(p) * static_cast<float>(frequency));
        auto const at = static_cast<std::size_t>(p * half_ + j);
        host[at] = static_cast<W>(std::cos(angle) * attention_scaling);
        host[at + static_cast<std::size_t>(positions * half_)] =
            static_cast<W>(std::sin(angle) * attention_scaling);
      }
    }
    stream.copy(values_.data(), host.data(), values_.bytes());
    stream.synchronize();
  }

  /// Bytes of device memory of a table; `half` is the number of frequencies.
  static std::size_t bytes(std::int64_t half, std::int64_t positions) {
    return static_cast<std::size_t>(2 * half * positions) * sizeof(W);
  }
  /// [positions, frequencies].
  [[nodiscard]] W const* cosines() const noexcept { return values_.template as<W>(); }
  /// [positions, frequencies].
  [[nodiscard]] W const* sines() const noexcept { return cosines() + positions_ * half_; }
  /// Positions 0 to positions() - 1 are in the table.
  [[nodiscard]] std::int64_t positions() const noexcept { return positions_; }
  /// The elements of a head that are turned.
  [[nodiscard]] std::int32_t turned() const noexcept { return static_cast<std::int32_t>(2 * half_); }

private:
  std::int64_t half_ = 0;
  std::int64_t positions_ = 0;
  buffer<D> values_;
};

/// Rotates the first `heads` heads of each row in place: the result shares x's memory.
template <device_policy D, element T>
struct rotary_function {
  static constexpr bool in_place = true;  ///< the result shares x's memory
  variable<D, T> x;                       ///< [rows, columns], overwritten by y
  batch const* b;                         ///< for the positions; must outlive the backward
  wide<T> const* cosines;                 ///< [table length, turned / 2]
  wide<T> const* sines;                   ///< [table length, turned / 2]
  std::int32_t heads,                     ///< heads from the start of a row that are rotated
      head_dim,                           ///< elements of a head
      turned;                             ///< of them, those that are rotated; even
  variable<D, T> y{};                     ///< [rows, columns], in x's memory

  /// Rotates x.
  void forward(tape<D, T>& t) {
    y = t.make_at(x.value(), x.rows(), x.columns());
    turn(t, x.value(), false);
  }
  /// Rotates y's gradient back, in place; it becomes x's.
  void backward(tape<D, T>& t) {
    turn(t, y.gradient(), true);
    x.adopt_gradient(y.gradient());
  }

private:
  void turn(tape<D, T>& t, T* values, bool inverse) {
    t.launch(kernel::rotary<T>{values, b->positions, cosines, sines, x.rows(), x.columns(), heads, head_dim,
                               turned, inverse});
  }
};

/// Rotates the queries and keys of qkv [rows, (heads + 2 kv_heads) * head_dim]: of each head, two elements
/// for every frequency of the table. Takes over its input's memory.
template <device_policy D, element T>
variable<D, T> rotary(variable<D, T> qkv, batch const& b, rotary_table<D, wide<T>> const& table,
                      attention_heads h) {
  return qkv.on().run(rotary_function<D, T>{qkv, &b, table.cosines(), table.sines(), h.heads + h.kv_heads,
                                            h.head_dim, table.turned()});
}

}  // namespace superoffload::nn
