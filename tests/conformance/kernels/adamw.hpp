// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/adamw.hpp>

#include "conformance/kernels/lab.hpp"

#include <bit>

namespace superoffload::conformance {

inline float without_payload(float x) { return std::isnan(x) ? std::bit_cast<float>(0x7FC00000U) : x; }

inline std::vector<std::uint32_t> bits_of(std::vector<float> const& values) {
  std::vector<std::uint32_t> bits;
  for (auto const value : values) { bits.push_back(std::bit_cast<std::uint32_t>(value)); }
  return bits;
}

/// Random numbers among which anything that a float can be turns up.
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

/// Bit for bit what the rule gives one element at a time. Compile without contraction of products and sums.
template <element T, device_policy D>
void check_adamw(lab<D>& in, std::int64_t count, bool in_place) {
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
  std::vector<T> gradient;
  for (auto const value : any_floats(in, count)) { gradient.push_back(T(value)); }
  array<D, float> const device_master{in, master};
  array<D, float> const device_m{in, m};
  array<D, float> const device_v{in, v};
  array<D, T> const device_gradient{in, gradient};
  array<D, T> const device_weight{in, count};
  auto* weight = device_weight.data();
  if constexpr (std::same_as<T, float>) {
    weight = in_place ? device_master.data() : weight;
  }
  launch(in.stream, kernel::adamw<T>{.master = device_master.data(),
                                     .m = device_m.data(),
                                     .v = device_v.data(),
                                     .gradient = device_gradient.data(),
                                     .weight = weight,
                                     .count = count,
                                     .step = step});
  std::vector<float> weights;
  for (std::size_t i = 0; i < master.size(); ++i) {
    kernel::adamw_rule(master[i], m[i], v[i], float{gradient[i]}, step, [](float x) { return std::sqrt(x); });
    master[i] = without_payload(master[i]);
    m[i] = without_payload(m[i]);
    v[i] = without_payload(v[i]);
    weights.push_back(std::same_as<T, float> ? master[i] : float{bfloat16::of_master(master[i])});
  }
  CHECK(bits_of(device_master.values()) == bits_of(master));
  CHECK(bits_of(device_m.values()) == bits_of(m));
  CHECK(bits_of(device_v.values()) == bits_of(v));
  if (!in_place) {
    auto const written = device_weight.values();
    CHECK(bits_of({written.begin(), written.end()}) == bits_of(weights));
  }
}

template <device_policy D>
void check_adamw(lab<D>& in) {
  for (std::int64_t count = 0; count <= 67; ++count) {
    check_adamw<float>(in, count, count % 2 == 0);
    check_adamw<bfloat16>(in, count, false);
  }
  check_adamw<float>(in, 40001, false);
  check_adamw<bfloat16>(in, 40001, false);
}

}  // namespace superoffload::conformance
