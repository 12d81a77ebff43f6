// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/core/state_format.hpp>
#include <superoffload/kernel/stored_state.hpp>
#include <superoffload/offload/state/state_bytes.hpp>
#include <superoffload/offload/state/step_record.hpp>

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace superoffload::offload {

/// Is part of a master kept beside its working weight T? For bfloat16 yes; a float is the master itself.
template <element T>
inline constexpr bool splits_master = std::same_as<T, bfloat16>;

namespace detail {
/// Calls work(array, its elements) for each array of numbers that `array` consists of.
template <class Array, class Work>
void each_array(Array array, std::int64_t count, Work const& work) {
  if constexpr (std::same_as<Array, kernel::block_codes>) {
    work(array.codes, count);
    work(array.exponents, count / kernel::state_block);
  } else if constexpr (std::same_as<Array, kernel::short_masters>) {
    work(array.high, count);
    work(array.low, count);
  } else {
    work(array, count);
  }
}
}  // namespace detail

/// The arrays of a bucket's state beside its working weights, in memory of state_layout::split bytes.
template <element T, state_format F>
struct split_arrays {
  kernel::moments<F> m{}, v{};
  kernel::low_bits<F>* low = nullptr;  ///< null for float

  /// The arrays of `count` elements in memory that begins at `memory`.
  static split_arrays at(std::byte* memory, std::int64_t count) {
    split_arrays a;
    auto const take = [&]<class U>(std::int64_t n, U*& array) {
      array = reinterpret_cast<U*>(std::exchange(memory, memory + n * static_cast<std::int64_t>(sizeof(U))));
    };
    if constexpr (F == state_format::int8) {
      take(count, a.m.codes);
      take(count, a.v.codes);
    } else {
      take(count, a.m);
      take(count, a.v);
    }
    if constexpr (splits_master<T>) {
      take(count, a.low);
    }
    if constexpr (F == state_format::int8) {
      take(count / kernel::state_block, a.m.exponents);
      take(count / kernel::state_block, a.v.exponents);
    }
    return a;
  }
  /// m or v.
  [[nodiscard]] kernel::moments<F> moment(state_part part) const { return part == state_part::m ? m : v; }
  /// Calls work(array, its elements) for each array of a bucket of `count` elements.
  template <class Work>
  void each(std::int64_t count, Work const& work) const {
    detail::each_array(m, count, work);
    detail::each_array(v, count, work);
    if (low != nullptr) {
      work(low, count);
    }
  }
  /// From element `first` on.
  [[nodiscard]] kernel::low_bits<F>* low_at(std::int64_t first) const {
    return low == nullptr ? nullptr : low + first;
  }
};

/// Calls work(split_arrays) with those of `count` elements in memory that begins at `memory`.
template <element T, class Work>
void with_split_arrays(state_format format, std::byte* memory, std::int64_t count, Work const& work) {
  with_format(format, [&]<state_format F>() { work(split_arrays<T, F>::at(memory, count)); });
}

/// The arrays of a bucket's whole state, in memory of state_layout::whole bytes.
template <element T, state_format F>
struct whole_arrays {
  kernel::masters<T, F> master{};
  kernel::moments<F> m{}, v{};

  /// The arrays of `count` elements in memory that begins at `memory`.
  static whole_arrays at(std::byte* memory, std::int64_t count) {
    whole_arrays a;
    if constexpr (kernel::short_master<T, F>) {
      a.master.high = reinterpret_cast<bfloat16*>(memory);
      auto const rest =
          split_arrays<T, F>::at(memory + count * static_cast<std::int64_t>(sizeof(bfloat16)), count);
      a.master.low = rest.low;
      a.m = rest.m;
      a.v = rest.v;
    } else {
      a.master = reinterpret_cast<float*>(memory);
      auto const rest =
          split_arrays<float, F>::at(memory + count * static_cast<std::int64_t>(sizeof(float)), count);
      a.m = rest.m;
      a.v = rest.v;
    }
    return a;
  }
  /// m or v.
  [[nodiscard]] kernel::moments<F> moment(state_part part) const { return part == state_part::m ? m : v; }
  /// Calls work(array, its elements) for each array of a bucket of `count` elements.
  template <class Work>
  void each(std::int64_t count, Work const& work) const {
    detail::each_array(master, count, work);
    detail::each_array(m, count, work);
    detail::each_array(v, count, work);
  }
};

// Values of arrays that the processor can read. A value is rounded to the nearest that the format has; what
// was read is written without loss.
// ---------------------------------------------------------------------------------------------------------

namespace detail {

/// Noise that rounds to nearest, ties up.
inline constexpr std::uint32_t no_noise = 0x80008000U;

/// Rewrites the block of int8 that element `first` is in, with as many of `from` as it has.
/// \returns their number
template <kernel::moment Of>
std::size_t write_block(kernel::block_codes to, std::int64_t first, std::span<float const> from) {
  using code = kernel::moment_code<state_format::int8, Of>;
  constexpr auto block = static_cast<std::size_t>(kernel::state_block);
  auto const inside = static_cast<std::size_t>(first) % block;
  auto const n = std::min(from.size(), block - inside);
  to = to + (first - static_cast<std::int64_t>(inside));
  std::uint32_t bits[block];
  auto const old = code::base(std::uint32_t{*to.exponents});
  std::uint32_t greatest = 0;
  for (std::size_t i = 0; i < block; ++i) {
    bool const is_new = i >= inside && i < inside + n;
    bits[i] = is_new ? std::bit_cast<std::uint32_t>(from[i - inside])
                     : code::decoded(std::uint32_t{to.codes[i]}, old);
    greatest = std::max(greatest, bits[i] & 0x7FFFFFFFU);
  }
  auto const exponent = code::exponent(greatest);
  *to.exponents = static_cast<std::uint8_t>(exponent);
  for (std::size_t i = 0; i < block; ++i) {
    to.codes[i] = static_cast<std::uint8_t>(code::encoded(bits[i], code::base(exponent), no_noise));
  }
  return n;
}

}  // namespace detail

/// @{
/// Elements [first, first + size) of a moment.
template <state_format F, kernel::moment Of>
void read_moment(kernel::moments<F> from, std::int64_t first, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    auto const at = first + static_cast<std::int64_t>(i);
    if constexpr (F == state_format::int8) {
      using code = kernel::moment_code<F, Of>;
      auto const base = code::base(std::uint32_t{from.exponents[at / kernel::state_block]});
      to[i] = std::bit_cast<float>(code::decoded(std::uint32_t{from.codes[at]}, base));
    } else {
      to[i] = float{from[at]};
    }
  }
}
template <state_format F, kernel::moment Of>
void write_moment(kernel::moments<F> to, std::int64_t first, std::span<float const> from) {
  if constexpr (F == state_format::int8) {
    while (!from.empty()) {
      auto const n = detail::write_block<Of>(to, first, from);
      first += static_cast<std::int64_t>(n);
      from = from.subspan(n);
    }
  } else {
    std::transform(from.begin(), from.end(), to + first, [](float value) {
      if constexpr (F == state_format::bf16) {
        return bfloat16{value};
      } else {
        return value;
      }
    });
  }
}
/// @}
/// @{
/// The same for either moment.
template <state_format F>
void read_moment(kernel::moments<F> from, state_part part, std::int64_t first, std::span<float> to) {
  part == state_part::m ? read_moment<F, kernel::moment::m>(from, first, to)
                        : read_moment<F, kernel::moment::v>(from, first, to);
}
template <state_format F>
void write_moment(kernel::moments<F> to, state_part part, std::int64_t first, std::span<float const> from) {
  part == state_part::m ? write_moment<F, kernel::moment::m>(to, first, from)
                        : write_moment<F, kernel::moment::v>(to, first, from);
}
/// @}

/// @{
/// Of a bfloat16 weight and the low bits that are kept beside it.
constexpr float master_of(bfloat16 weight, std::uint16_t low) { return bfloat16::master_of(weight, low); }
constexpr float master_of(bfloat16 weight, std::uint8_t low) {
  return bfloat16::master_of(weight, static_cast<std::uint16_t>(low << 8));
}
/// Sets both; 24 bits are rounded to the nearest.
inline void split(float master, bfloat16& weight, std::uint16_t& low) {
  weight = bfloat16::of_master(master);
  low = bfloat16::low_of_master(master);
}
inline void split(float master, bfloat16& weight, std::uint8_t& low) {
  auto const bits = (std::bit_cast<std::uint32_t>(master) + 0x80U) & 0xFFFFFF00U;
  auto const rounded = std::bit_cast<float>(bits);
  weight = bfloat16::of_master(rounded);
  low = static_cast<std::uint8_t>(bits >> 8);
}
/// @}

/// @{
/// Elements [first, first + size) of whole masters.
inline void read_masters(float const* from, std::int64_t first, std::span<float> to) {
  std::copy_n(from + first, to.size(), to.begin());
}
inline void read_masters(kernel::short_masters from, std::int64_t first, std::span<float> to) {
  from = from + first;
  for (std::size_t i = 0; i < to.size(); ++i) { to[i] = master_of(from.high[i], from.low[i]); }
}
inline void write_masters(float* to, std::int64_t first, std::span<float const> from) {
  std::copy(from.begin(), from.end(), to + first);
}
inline void write_masters(kernel::short_masters to, std::int64_t first, std::span<float const> from) {
  to = to + first;
  for (std::size_t i = 0; i < from.size(); ++i) { split(from[i], to.high[i], to.low[i]); }
}
/// @}

}  // namespace superoffload::offload
