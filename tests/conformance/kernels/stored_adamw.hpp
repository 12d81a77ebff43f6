// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/adamw.hpp>
#include <superoffload/kernel/stored_state.hpp>

#include "conformance/kernels/adamw.hpp"

#include <algorithm>
#include <bit>
#include <span>

namespace superoffload::conformance {

inline std::uint32_t word_of(float x) { return std::bit_cast<std::uint32_t>(x); }
inline float float_of(std::uint32_t x) { return std::bit_cast<float>(x); }

/// Steps whose scalars differ as those of a training do.
inline kernel::adamw_step stored_step(int t, float factor = 1.0F) {
  return {.decay = 1.0F - 1e-4F * static_cast<float>(t % 7),
          .beta1 = 0.9F,
          .beta2 = 0.999F,
          .one_minus_beta1 = 0.1F,
          .one_minus_beta2 = 0.001F,
          .step_size = static_cast<float>(1e-3 / (1.0 - std::pow(0.9, t))),
          .inverse_root2 = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(0.999, t))),
          .epsilon = 1e-8F,
          .factor = factor,
          .noise = kernel::noise_key(t, 3)};
}

/// The reference: state in format F as floats, one element at a time. Compile without contraction of products
/// and sums.
template <element T, state_format F>
struct stored_reference {
  std::vector<float> master, m, v;

  /// The nearest state that the format has.
  stored_reference(std::vector<float> master0, std::vector<float> m0, std::vector<float> v0)
      : master{std::move(master0)}, m{std::move(m0)}, v{std::move(v0)} {
    for (auto& x : v) { x = std::fabs(x); }
    auto const middle = [](std::int64_t) { return 0x80008000U; };
    for (auto& x : master) {
      x = without_payload(float_of(kernel::rounded_master<T, F>(word_of(without_payload(x)), 0U)));
    }
    round_moments(middle);
  }

  template <class G>
  void advance(std::vector<G> const& gradient, kernel::adamw_step const& step, std::int64_t index) {
    auto const noise = [&](std::int64_t i) {
      return kernel::noise_of(static_cast<std::uint32_t>(index + i), step.noise);
    };
    for (std::size_t i = 0; i < master.size(); ++i) {
      adamw_reference(master[i], m[i], v[i], float{T(gradient[i])}, step);
      master[i] =
          float_of(kernel::rounded_master<T, F>(word_of(master[i]), noise(static_cast<std::int64_t>(i))));
    }
    round_moments(noise);
  }
  [[nodiscard]] std::vector<T> weights() const { return split_masters<T>{master}.weight; }

private:
  template <class Noise>
  void round_moments(Noise const& noise) {
    round_moment<kernel::moment::m>(m, noise);
    round_moment<kernel::moment::v>(v, noise);
  }
  template <kernel::moment Of, class Noise>
  static void round_moment(std::vector<float>& values, Noise const& noise) {
    if constexpr (F == state_format::bf16) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        auto const bits = word_of(without_payload(values[i]));
        values[i] = float_of(kernel::moment_code<F, Of>::rounded(bits, noise(static_cast<std::int64_t>(i))));
      }
    } else if constexpr (F == state_format::int8) {
      using code = kernel::moment_code<F, Of>;
      constexpr auto block = static_cast<std::size_t>(kernel::state_block);
      for (std::size_t begin = 0; begin < values.size(); begin += block) {
        std::uint32_t greatest = 0;
        for (auto i = begin; i < begin + block; ++i) {
          values[i] = without_payload(values[i]);
          greatest = std::max(greatest, word_of(values[i]) & 0x7FFFFFFFU);
        }
        auto const base = code::base(code::exponent(greatest));
        for (auto i = begin; i < begin + block; ++i) {
          auto const stored = code::encoded(word_of(values[i]), base, noise(static_cast<std::int64_t>(i)));
          values[i] = float_of(code::decoded(stored, base));
        }
      }
    }
  }
};

/// A moment in the device's memory.
template <state_format F, kernel::moment Of, device_policy D>
class stored_moment {
public:
  stored_moment(lab<D>& in, std::vector<float> const& values)
      : numbers_{in, numbers(values)}, exponents_{in, exponents(values)} {}

  [[nodiscard]] kernel::moments<F> data() const {
    if constexpr (F == state_format::int8) {
      return {numbers_.data(), exponents_.data()};
    } else {
      return numbers_.data();
    }
  }
  /// As floats.
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> all;
    auto const stored = numbers_.values();
    if constexpr (F == state_format::int8) {
      auto const of_blocks = exponents_.values();
      for (std::size_t i = 0; i < stored.size(); ++i) {
        auto const base = code::base(std::uint32_t{of_blocks[i / kernel::state_block]});
        all.push_back(float_of(code::decoded(std::uint32_t{stored[i]}, base)));
      }
    } else {
      all.assign(stored.begin(), stored.end());
    }
    return all;
  }

private:
  using code = kernel::moment_code<F == state_format::int8 ? F : state_format::int8, Of>;
  using number = std::conditional_t<F == state_format::float32, float,
                                    std::conditional_t<F == state_format::bf16, bfloat16, std::uint8_t>>;

  static std::vector<std::uint8_t> exponents(std::vector<float> const& values) {
    std::vector<std::uint8_t> all;
    if constexpr (F == state_format::int8) {
      for (std::size_t begin = 0; begin < values.size(); begin += kernel::state_block) {
        std::uint32_t greatest = 0;
        for (auto i = begin; i < begin + kernel::state_block; ++i) {
          greatest = std::max(greatest, word_of(values[i]) & 0x7FFFFFFFU);
        }
        all.push_back(static_cast<std::uint8_t>(code::exponent(greatest)));
      }
    }
    return all;
  }
  static std::vector<number> numbers(std::vector<float> const& values) {
    std::vector<number> all;
    auto const of_blocks = exponents(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if constexpr (F == state_format::int8) {
        auto const base = code::base(std::uint32_t{of_blocks[i / kernel::state_block]});
        all.push_back(static_cast<std::uint8_t>(code::encoded(word_of(values[i]), base, 0U)));
      } else {
        all.push_back(number(values[i]));
      }
    }
    return all;
  }

  array<D, number> numbers_;
  array<D, std::uint8_t> exponents_;
};

/// State in format F beside working weights.
template <element T, state_format F, device_policy D>
struct split_state_arrays {
  array<D, T> weight;
  array<D, kernel::low_bits<F>> low;
  stored_moment<F, kernel::moment::m, D> m;
  stored_moment<F, kernel::moment::v, D> v;

  split_state_arrays(lab<D>& in, stored_reference<T, F> const& of)
      : weight{in, of.weights()}, low{in, low_of(of.master)}, m{in, of.m}, v{in, of.v} {}

  static std::vector<kernel::low_bits<F>> low_of(std::vector<float> const& masters) {
    std::vector<kernel::low_bits<F>> all;
    for (auto const master : masters) {
      all.push_back(static_cast<kernel::low_bits<F>>(word_of(master) >> (F == state_format::int8 ? 8 : 0)));
    }
    return all;
  }
  template <class G>
  [[nodiscard]] kernel::adamw<T, G, F> step(array<D, G> const& gradient, std::int64_t count,
                                            kernel::adamw_step const& s, std::int64_t index) const {
    return {.weight = weight.data(),
            .low = std::same_as<T, float> ? nullptr : low.data(),
            .m = m.data(),
            .v = v.data(),
            .gradient = gradient.data(),
            .count = count,
            .step = s,
            .index = index};
  }
  void check(stored_reference<T, F> const& of) const {
    auto const weights = weight.values();
    auto const expected = of.weights();
    CHECK(bits_of({weights.begin(), weights.end()}) == bits_of({expected.begin(), expected.end()}));
    if (std::same_as<T, bfloat16>) {
      CHECK(low.values() == low_of(of.master));
    }
    CHECK(bits_of(m.values()) == bits_of(of.m));
    CHECK(bits_of(v.values()) == bits_of(of.v));
  }
};

/// Masters and m of any kind of float, v from 0 on.
template <element T, state_format F, device_policy D>
stored_reference<T, F> any_state(lab<D>& in, std::int64_t count) {
  return {any_floats(in, count), any_floats(in, count), any_floats(in, count)};
}

/// Checks that steps in format F give the bits of the reference, for every kind of float.
template <element T, element G, state_format F, device_policy D>
void check_stored_adamw(lab<D>& in, std::int64_t count, int steps = 2) {
  auto reference = any_state<T, F>(in, count);
  split_state_arrays<T, F, D> const arrays{in, reference};
  arrays.check(reference);
  std::int64_t const index = (std::int64_t{1} << 32) - kernel::state_block;
  for (int t = 1; t <= steps; ++t) {
    std::vector<G> gradient;
    for (auto const value : any_floats(in, count)) { gradient.push_back(G(value)); }
    auto const step = stored_step(t, 0.7F);
    array<D, G> const on_device{in, gradient};
    launch(in.stream, arrays.step(on_device, count, step, index));
    in.stream.synchronize();
    reference.advance(gradient, step, index);
    arrays.check(reference);
  }
}

/// Gradients of a training: most of usual size, many of them zero, some far smaller or larger.
template <element G, device_policy D>
std::vector<G> training_gradient(lab<D>& in, std::int64_t count) {
  std::vector<G> values;
  for (auto value : in.template normal<float>(count, 1e-3)) {
    auto const die = in.random() % 64;
    if (die < 8) {
      value *= 0.0F;
    } else if (die == 8) {
      value = std::ldexp(value, -static_cast<int>(in.random() % 120));
    } else if (die == 9 && in.random() % 8 == 0) {
      value = std::ldexp(value, static_cast<int>(in.random() % 80));
    }
    values.push_back(G(value));
  }
  return values;
}

/// Checks that steps from zero moments on give the bits of the reference, with scalars as trainings have them
/// and with extreme ones.
template <element T, element G, state_format F, device_policy D>
void check_stored_training(lab<D>& in, std::int64_t count) {
  auto const zeros = std::vector<float>(static_cast<std::size_t>(count));
  stored_reference<T, F> reference{in.template normal<float>(count, 0.02), zeros, zeros};
  split_state_arrays<T, F, D> const arrays{in, reference};
  int t = 0;
  for (auto const epsilon : {1e-8F, 1e-8F, 1e-6F, 0.0F, 1e-30F, 4.0F, 1e-8F}) {
    auto step = stored_step(++t);
    step.epsilon = epsilon;
    if (t == 7) {
      step.inverse_root2 = 0x1p30F;
    }
    auto const gradient = training_gradient<G>(in, count);
    array<D, G> const on_device{in, gradient};
    launch(in.stream, arrays.step(on_device, count, step, 0));
    in.stream.synchronize();
    reference.advance(gradient, step, 0);
    arrays.check(reference);
  }
}

template <device_policy D>
void check_stored_adamw(lab<D>& in) {
  auto const check = [&]<state_format F>(std::int64_t count) {
    check_stored_adamw<float, float, F>(in, count);
    check_stored_adamw<bfloat16, bfloat16, F>(in, count);
    check_stored_adamw<bfloat16, float, F>(in, count);
  };
  for (std::int64_t const count : {0, 1, 7, 16, 63, 65}) {
    check.template operator()<state_format::bf16>(count);
  }
  for (std::int64_t const blocks : {0, 1, 2, 5, 255, 256, 257, 600}) {
    check.template operator()<state_format::bf16>(blocks * kernel::state_block);
    check.template operator()<state_format::int8>(blocks * kernel::state_block);
  }
  auto const train = [&]<state_format F>(std::int64_t count) {
    check_stored_training<float, float, F>(in, count);
    check_stored_training<bfloat16, bfloat16, F>(in, count);
    check_stored_training<bfloat16, float, F>(in, count);
  };
  train.template operator()<state_format::bf16>(300 * kernel::state_block);
  train.template operator()<state_format::int8>(300 * kernel::state_block);
}

}  // namespace superoffload::conformance
