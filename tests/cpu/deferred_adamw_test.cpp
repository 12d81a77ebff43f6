// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The optimizer on host memory: every kernel against the rule on one element at a time, and the kernels
// against each other. Compiled without contraction of products and sums.
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/kernel/deferred_adamw.hpp>

#include "conformance/kernels/adamw.hpp"
#include "cpu/every_set.hpp"

#include <span>
#include <vector>

using namespace superoffload;
using namespace superoffload::cpu;

namespace {

using conformance::adamw_reference;
using conformance::any_floats;
using conformance::array;
using conformance::bits_of;
using lab = conformance::lab<device>;

kernel::adamw_step step_of(int t, float factor) {
  return {.decay = 1.0F - 1e-3F * static_cast<float>(t),
          .beta1 = 0.9F,
          .beta2 = 0.999F,
          .one_minus_beta1 = 0.1F,
          .one_minus_beta2 = 0.001F,
          .step_size = 0.013F / static_cast<float>(t),
          .inverse_root2 = 3.1F,
          .epsilon = 1e-8F,
          .factor = factor};
}

struct state {
  std::vector<float> master, m, v;

  template <element T>
  void advance(std::vector<T> const& gradient, kernel::adamw_step const& step) {
    for (std::size_t i = 0; i < master.size(); ++i) {
      adamw_reference(master[i], m[i], v[i], float{gradient[i]}, step);
    }
  }
  template <element T>
  [[nodiscard]] std::vector<T> weights() const {
    std::vector<T> all;
    for (auto const value : master) {
      if constexpr (std::same_as<T, bfloat16>) {
        all.push_back(bfloat16::of_master(value));
      } else {
        all.push_back(value);
      }
    }
    return all;
  }
};

template <element T>
std::vector<T> any_gradient(lab& in, std::int64_t count) {
  std::vector<T> gradient;
  for (auto const value : any_floats(in, count)) { gradient.push_back(T(value)); }
  return gradient;
}

template <element T>
std::vector<std::uint32_t> bits_of_weights(std::vector<T> const& weights) {
  return bits_of({weights.begin(), weights.end()});
}

/// State and gradients in the layout of the kernels.
template <element T>
struct bucket {
  state expected;
  std::vector<T> first_gradient, second_gradient;
  std::int64_t count;
  std::int64_t shift;  ///< of the weights: kernels store differently to addresses of different alignment
  array<device, float> master, m, v;
  array<device, T> pending, gradient, weight;
  kernel::adamw_step const record = step_of(1, 0.7F), step = step_of(2, 1.0F);

  bucket(lab& in, std::int64_t n, std::int64_t shifted = 0)
      : bucket{in, n, shifted, any_floats(in, n), any_floats(in, n), any_floats(in, n)} {}
  bucket(lab& in, std::int64_t n, std::int64_t shifted, std::vector<float> master0, std::vector<float> m0,
         std::vector<float> v0)
      : expected{std::move(master0), std::move(m0), std::move(v0)},
        first_gradient{any_gradient<T>(in, n)},
        second_gradient{any_gradient<T>(in, n)},
        count{n},
        shift{shifted},
        master{in, expected.master},
        m{in, expected.m},
        v{in, expected.v},
        pending{in, first_gradient},
        gradient{in, second_gradient},
        weight{in, std::vector<T>(static_cast<std::size_t>(n + shift), T{1.0F})} {}

  [[nodiscard]] T* weights() const { return weight.data() + shift; }
  void check_state() const {
    CHECK(bits_of(master.values()) == bits_of(expected.master));
    CHECK(bits_of(m.values()) == bits_of(expected.m));
    CHECK(bits_of(v.values()) == bits_of(expected.v));
  }
  void check_weights(array<device, T> const& written, state const& of) const {
    auto weights = of.template weights<T>();
    if (&written == &weight) {
      weights.insert(weights.begin(), static_cast<std::size_t>(shift), T{1.0F});
    }
    CHECK(bits_of_weights(written.values()) == bits_of_weights(weights));
  }
  void check_gradients() const {
    CHECK(bits_of_weights(pending.values()) == bits_of_weights(first_gradient));
    CHECK(bits_of_weights(gradient.values()) == bits_of_weights(second_gradient));
  }
};

template <element T>
void check_all(lab& in, std::int64_t count, std::int64_t shift = 0) {
  {
    INFO("update");
    bucket<T> b{in, count, shift};
    launch(in.stream, kernel::adamw_update<T>{b.master.data(), b.m.data(), b.v.data(), b.pending.data(),
                                              b.weights(), count, b.record});
    b.expected.advance(b.first_gradient, b.record);
    b.check_state();
    b.check_weights(b.weight, b.expected);
    b.check_gradients();
    INFO("in the gradient's memory");
    launch(in.stream, kernel::adamw_update<T>{b.master.data(), b.m.data(), b.v.data(), b.gradient.data(),
                                              b.gradient.data(), count, b.step});
    b.expected.advance(b.second_gradient, b.step);
    b.check_state();
    b.check_weights(b.gradient, b.expected);
  }
  {
    INFO("speculate, commit");
    bucket<T> b{in, count, shift};
    launch(in.stream, kernel::adamw_speculate<T>{b.master.data(), b.m.data(), b.v.data(), b.pending.data(),
                                                 b.weights(), count, b.record});
    b.check_state();
    b.expected.advance(b.first_gradient, b.record);
    b.check_weights(b.weight, b.expected);
    launch(in.stream, kernel::adamw_commit<T>{b.master.data(), b.m.data(), b.v.data(), b.pending.data(),
                                              count, b.record});
    b.check_state();
    b.check_gradients();
  }
  for (bool const reuses : {false, true}) {
    CAPTURE(reuses);
    {
      INFO("commit_emit");
      bucket<T> b{in, count, shift};
      auto const& weight = reuses ? b.pending : b.weight;
      auto* const to = reuses ? b.pending.data() : b.weights();
      launch(in.stream,
             kernel::adamw_commit_speculate<T>{b.master.data(), b.m.data(), b.v.data(), b.pending.data(),
                                               b.gradient.data(), to, count, b.record, b.step});
      b.expected.advance(b.first_gradient, b.record);
      b.check_state();
      auto after = b.expected;
      after.advance(b.second_gradient, b.step);
      b.check_weights(weight, after);
      CHECK(bits_of_weights(b.gradient.values()) == bits_of_weights(b.second_gradient));
    }
    {
      INFO("commit_update");
      bucket<T> b{in, count, shift};
      auto const& weight = reuses ? b.gradient : b.weight;
      auto* const to = reuses ? b.gradient.data() : b.weights();
      launch(in.stream,
             kernel::adamw_commit_update<T>{b.master.data(), b.m.data(), b.v.data(), b.pending.data(),
                                            b.gradient.data(), to, count, b.record, b.step});
      b.expected.advance(b.first_gradient, b.record);
      b.expected.advance(b.second_gradient, b.step);
      b.check_state();
      b.check_weights(weight, b.expected);
    }
  }
  {
    INFO("resend");
    bucket<T> b{in, count, shift};
    launch(in.stream, kernel::resend_weights<T>{b.master.data(), b.weights(), count});
    b.check_state();
    b.check_weights(b.weight, b.expected);
  }
}

TEST_CASE("deferred adamw: every kernel is the rule for any number of elements, on every instruction set") {
  // So few elements are one thread's work.
  for_every_set(across_sets::same_bits,
                [](lab& in) {
                  for (std::int64_t count = 0; count <= 67; ++count) {
                    check_all<float>(in, count);
                    check_all<bfloat16>(in, count);
                  }
                },
                {1});
}

TEST_CASE("deferred adamw: every kernel is the rule, on every instruction set and any number of threads") {
  for_every_set(across_sets::same_bits, [](lab& in) {
    for (std::int64_t const shift : {0, 1, 16}) {
      check_all<float>(in, 40001, shift);
      check_all<bfloat16>(in, 40001, shift);
    }
  });
}

/// Training with speculative steps, commits at any time, and skipped or clipped steps ends with the bits of
/// plain updates, and so does an update of a split master.
template <element T>
void check_training(lab& in) {
  constexpr std::int64_t count = 1003;
  auto const start = in.normal<float>(count, 0.02);
  std::vector<float> const zeros(count);
  array<device, float> const master{in, start}, m{in, zeros}, v{in, zeros};
  array<device, float> const plain_master{in, start}, plain_m{in, zeros}, plain_v{in, zeros};
  array<device, T> const weight{in, count}, plain_weight{in, count};
  conformance::adamw_arrays<T, device> const split{in, start, zeros, zeros};
  struct record {
    kernel::adamw_step step;
    array<device, T> gradient;
  };
  std::optional<record> pending;
  auto const commit = [&] {
    if (pending) {
      run(kernel::adamw_commit<T>{master.data(), m.data(), v.data(), pending->gradient.data(), count,
                                  pending->step});
      pending.reset();
    }
  };
  int counted = 0;
  for (int i = 0; i < 300; ++i) {
    array<device, T> const gradient{in, in.normal<T>(count, 1e-3)};
    array<device, T> const same{in, gradient.values()};
    auto const t = counted + 1;
    kernel::adamw_step guess = step_of(1 + t % 50, 1.0F);
    auto const die = in.random() % 6;
    bool const skipped = die == 0;
    bool const clipped = die == 1;
    bool const speculates = in.random() % 4 != 0;
    if (in.random() % 3 == 0) {
      commit();  // an idle worker
    }
    if (speculates && pending) {
      run(kernel::adamw_commit_speculate<T>{master.data(), m.data(), v.data(), pending->gradient.data(),
                                            gradient.data(), weight.data(), count, pending->step, guess});
      pending.reset();
    } else if (speculates) {
      run(kernel::adamw_speculate<T>{master.data(), m.data(), v.data(), gradient.data(), weight.data(), count,
                                     guess});
    }
    auto truth = guess;
    truth.factor = clipped ? 0.37F : 1.0F;
    if (skipped) {
      if (speculates) {
        run(kernel::resend_weights<T>{master.data(), weight.data(), count});
      }
    } else if (speculates && !clipped) {
      pending.emplace(record{guess, array<device, T>{in, gradient.values()}});
    } else if (pending) {
      run(kernel::adamw_commit_update<T>{master.data(), m.data(), v.data(), pending->gradient.data(),
                                         gradient.data(), weight.data(), count, pending->step, truth});
      pending.reset();
    } else {
      run(kernel::adamw_update<T>{master.data(), m.data(), v.data(), gradient.data(), weight.data(), count,
                                  truth});
    }
    if (!skipped) {
      ++counted;
      run(kernel::adamw_update<T>{plain_master.data(), plain_m.data(), plain_v.data(), same.data(),
                                  plain_weight.data(), count, truth});
      split.update(in, same, count, truth);
      REQUIRE(bits_of_weights(weight.values()) == bits_of_weights(plain_weight.values()));
    }
  }
  CHECK(counted > 200);
  commit();
  CHECK(bits_of(master.values()) == bits_of(plain_master.values()));
  CHECK(bits_of(m.values()) == bits_of(plain_m.values()));
  CHECK(bits_of(v.values()) == bits_of(plain_v.values()));
  split.check(plain_master.values(), plain_m.values(), plain_v.values());
}

TEST_CASE_TEMPLATE(
    "deferred adamw: with any speculated, committed, clipped or skipped steps, the state is that of updates",
    T, float, bfloat16) {
  device on{1};
  lab in{on};
  check_training<T>(in);
}

TEST_CASE("deferred adamw: slices are independent") {
  device on{1};
  lab in{on};
  bucket<bfloat16> b{in, 40001};
  kernel::adamw_commit_update<bfloat16> const whole{b.master.data(),  b.m.data(),        b.v.data(),
                                                    b.pending.data(), b.gradient.data(), b.weights(),
                                                    b.count,          b.record,          b.step};
  for (std::int64_t first = 0; first < b.count; first += 7777) {
    run(whole.slice(first, std::min<std::int64_t>(7777, b.count - first)));
  }
  b.expected.advance(b.first_gradient, b.record);
  b.expected.advance(b.second_gradient, b.step);
  b.check_state();
  b.check_weights(b.weight, b.expected);
}

}  // namespace
