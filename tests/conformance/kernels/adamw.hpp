// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/adamw.hpp>

#include "conformance/kernels/lab.hpp"

#include <bit>
#include <type_traits>

namespace superoffload::conformance {

inline float without_payload(float x) { return std::isnan(x) ? std::bit_cast<float>(0x7FC00000U) : x; }

inline std::vector<std::uint32_t> bits_of(std::vector<float> const& values) {
  std::vector<std::uint32_t> bits;
  for (auto const value : values) { bits.push_back(std::bit_cast<std::uint32_t>(value)); }
  return bits;
}

/// Random numbers with every kind of float among them.
template <device_policy D>
std::vector<float> any_floats(lab<D>& in, std::int64_t count) {
  std::uint32_t const special[] = {0,          0x80000000, 1,          0x80000001, 0x007FFFFF, 0x00800000,
                                   0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
                                   0xFFFFFFFF, 0x3F800000, 0x33800000, 0x7F7F7FFF};
  auto values = in.template normal<float>(count, 0.1);
  for (auto& value : values) {
    auto const die = in.random() % 8;
    if (die == 0) {
      value = std::bit_cast<float>(special[in.random() % std::size(special)]);
    } else if (die == 1) {
      value = std::bit_cast<float>(static_cast<std::uint32_t>(in.random()));
    }
  }
  return values;
}

/// Masters as the kernel takes them: working weights of T and their low halves.
template <element T>
struct split_masters {
  std::vector<T> weight;
  std::vector<std::uint16_t> low;  ///< as many elements, although float needs none

  explicit split_masters(std::vector<float> const& masters) : low(masters.size()) {
    for (std::size_t i = 0; i < masters.size(); ++i) {
      if constexpr (std::same_as<T, bfloat16>) {
        weight.push_back(bfloat16::of_master(masters[i]));
        low[i] = bfloat16::low_of_master(masters[i]);
      } else {
        weight.push_back(masters[i]);
      }
    }
  }
};

template <element T, device_policy D>
struct adamw_arrays {
  array<D, T> weight;
  array<D, std::uint16_t> low;
  array<D, float> m, v;

  adamw_arrays(lab<D>& in, std::vector<float> const& masters, std::vector<float> const& m0,
               std::vector<float> const& v0)
      : adamw_arrays{in, split_masters<T>{masters}, m0, v0} {}
  adamw_arrays(lab<D>& in, split_masters<T> const& split, std::vector<float> const& m0,
               std::vector<float> const& v0)
      : weight{in, split.weight}, low{in, split.low}, m{in, m0}, v{in, v0} {}

  template <class G>
  void update(lab<D>& in, array<D, G> const& gradient, std::int64_t count,
              kernel::adamw_step const& step) const {
    launch(in.stream, kernel::adamw<T, G>{.weight = weight.data(),
                                          .low = std::same_as<T, float> ? nullptr : low.data(),
                                          .m = m.data(),
                                          .v = v.data(),
                                          .gradient = gradient.data(),
                                          .count = count,
                                          .step = step});
    in.stream.synchronize();
  }
  /// The arrays hold the state, bit for bit.
  void check(std::vector<float> const& masters, std::vector<float> const& m1,
             std::vector<float> const& v1) const {
    split_masters<T> const split{masters};
    auto const weights = weight.values();
    CHECK(bits_of({weights.begin(), weights.end()}) == bits_of({split.weight.begin(), split.weight.end()}));
    if (std::same_as<T, bfloat16>) {
      CHECK(low.values() == split.low);
    }
    CHECK(bits_of(m.values()) == bits_of(m1));
    CHECK(bits_of(v.values()) == bits_of(v1));
  }
};

/// The reference: AdamW on whole masters, one element at a time. Compile without contraction of products and
/// sums.
inline void adamw_reference(float& master, float& m, float& v, float gradient,
                            kernel::adamw_step const& step) {
  kernel::adamw_rule(master, m, v, gradient, step, [](float x) { return std::sqrt(x); });
  master = without_payload(master);
  m = without_payload(m);
  v = without_payload(v);
}

/// Checks that the kernel gives the bits of the reference, for every kind of float.
template <element T, element G = T, device_policy D>
void check_adamw(lab<D>& in, std::int64_t count) {
  kernel::adamw_step const step{.decay = 0.9999F,
                                .beta1 = 0.9F,
                                .beta2 = 0.999F,
                                .one_minus_beta1 = 0.1F,
                                .one_minus_beta2 = 0.001F,
                                .step_size = 0.013F,
                                .inverse_root2 = 3.1F,
                                .epsilon = 1e-8F,
                                .factor = 0.7F};
  auto master = any_floats(in, count);
  auto m = any_floats(in, count);
  auto v = any_floats(in, count);
  std::vector<G> gradient;
  for (auto const value : any_floats(in, count)) { gradient.push_back(G(value)); }
  adamw_arrays<T, D> const arrays{in, master, m, v};
  arrays.update(in, array<D, G>{in, gradient}, count, step);
  for (std::size_t i = 0; i < master.size(); ++i) {
    adamw_reference(master[i], m[i], v[i], float{T(gradient[i])}, step);
  }
  arrays.check(master, m, v);
}

/// Checks that hundreds of steps give the bits of steps on whole masters: no part of a master is lost.
template <element T, device_policy D>
void check_adamw_over_steps(lab<D>& in, int steps) {
  constexpr std::int64_t count = 1003;
  auto master = in.template normal<float>(count, 0.02);
  std::vector<float> m(count), v(count);
  adamw_arrays<T, D> const arrays{in, master, m, v};
  for (int t = 1; t <= steps; ++t) {
    auto const gradient = in.template normal<T>(count, 1e-3);
    kernel::adamw_step const step{
        .decay = 0.99999F,
        .beta1 = 0.9F,
        .beta2 = 0.999F,
        .one_minus_beta1 = 0.1F,
        .one_minus_beta2 = 0.001F,
        .step_size = static_cast<float>(1e-5 / (1.0 - std::pow(0.9, t))),
        .inverse_root2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(0.999, t))),
        .epsilon = 1e-8F,
        .factor = t % 3 == 0 ? 0.37F : 1.0F};
    arrays.update(in, array<D, T>{in, gradient}, count, step);
    for (std::size_t i = 0; i < count; ++i) {
      adamw_reference(master[i], m[i], v[i], float{gradient[i]}, step);
    }
  }
  arrays.check(master, m, v);
}

/// Checks that a step on numbers made of integers gives the same bits on every processor. `expected` is the
/// first processor's result.
template <element T, device_policy D>
void check_adamw_digest(lab<D>& in, std::uint64_t expected) {
  constexpr std::int64_t count = 10007;
  std::mt19937 random{2024};
  auto const numbers = [&](std::uint32_t exponent, std::uint32_t mask) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) {
      auto const bits = static_cast<std::uint32_t>(random());
      auto const scale = exponent + static_cast<std::uint32_t>(random() % 16);
      values.push_back(std::bit_cast<float>((bits & mask) | scale << 23));
    }
    return values;
  };
  auto const master = numbers(110, 0x807FFFFFU);
  auto const m = numbers(100, 0x807FFFFFU);
  auto const v = numbers(80, 0x007FFFFFU);
  std::vector<T> gradient;
  for (auto const value : numbers(100, 0x807F0000U)) { gradient.push_back(T(value)); }
  adamw_arrays<T, D> const arrays{in, master, m, v};
  arrays.update(in, array<D, T>{in, gradient}, count,
                {0.9999F, 0.9F, 0.999F, 0.1F, 0.001F, 0.013F, 3.1F, 1e-8F, 0.7F});
  std::uint64_t digest = 14695981039346656037U;
  auto const take_in = [&](auto const& values) {
    for (auto const value : values) {
      auto bits = std::bit_cast<std::conditional_t<sizeof(value) == 2, std::uint16_t, std::uint32_t>>(value);
      digest = (digest ^ bits) * 1099511628211U;
    }
  };
  take_in(arrays.weight.values());
  take_in(arrays.m.values());
  take_in(arrays.v.values());
  if (std::same_as<T, bfloat16>) {
    take_in(arrays.low.values());
  }
  CHECK(digest == expected);
}

template <device_policy D>
void check_adamw(lab<D>& in) {
  for (std::int64_t count = 0; count <= 67; ++count) {
    check_adamw<float>(in, count);
    check_adamw<bfloat16>(in, count);
    check_adamw<bfloat16, float>(in, count);
  }
  check_adamw<float>(in, 40001);
  check_adamw<bfloat16>(in, 40001);
  check_adamw<bfloat16, float>(in, 40001);
  check_adamw_over_steps<float>(in, 300);
  check_adamw_over_steps<bfloat16>(in, 300);
  check_adamw_digest<float>(in, 2787567939912082503U);
  check_adamw_digest<bfloat16>(in, 4723455678530621091U);
}

}  // namespace superoffload::conformance
