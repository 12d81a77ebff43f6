// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// The optimizer on state in the formats of fewer bytes: every kernel against a reference on one element at a
// time, and the kernels against each other. Compiled without contraction of products and sums.
#include "conformance/kernels/stored_adamw.hpp"

#include <superoffload/cpu/kernels.hpp>
#include <superoffload/kernel/deferred_adamw.hpp>

#include "cpu/every_set.hpp"

#include <optional>
#include <vector>

using namespace superoffload;
using namespace superoffload::cpu;

namespace {

using conformance::any_floats;
using conformance::array;
using conformance::bits_of;
using conformance::stored_reference;
using conformance::stored_step;
using lab = conformance::lab<device>;

template <element T, state_format F>
struct whole_masters {
  array<device, bfloat16> high;
  array<device, std::uint8_t> low;
  array<device, float> whole;

  whole_masters(lab& in, std::vector<float> const& values)
      : high{in, conformance::split_masters<bfloat16>{values}.weight},
        low{in, conformance::split_state_arrays<bfloat16, state_format::int8, device>::low_of(values)},
        whole{in, values} {}
  [[nodiscard]] kernel::masters<T, F> data() const {
    if constexpr (kernel::short_master<T, F>) {
      return {high.data(), low.data()};
    } else {
      return whole.data();
    }
  }
  [[nodiscard]] std::vector<float> values() const {
    if constexpr (kernel::short_master<T, F>) {
      std::vector<float> all;
      auto const upper = high.values();
      auto const rest = low.values();
      for (std::size_t i = 0; i < rest.size(); ++i) {
        all.push_back(bfloat16::master_of(upper[i], static_cast<std::uint16_t>(rest[i] << 8)));
      }
      return all;
    } else {
      return whole.values();
    }
  }
};

/// Whole state in format F.
template <element T, state_format F>
struct whole_state {
  whole_masters<T, F> master;
  conformance::stored_moment<F, kernel::moment::m, device> m;
  conformance::stored_moment<F, kernel::moment::v, device> v;

  whole_state(lab& in, stored_reference<T, F> const& of) : master{in, of.master}, m{in, of.m}, v{in, of.v} {}
  void check(stored_reference<T, F> const& of) const {
    CHECK(bits_of(master.values()) == bits_of(of.master));
    CHECK(bits_of(m.values()) == bits_of(of.m));
    CHECK(bits_of(v.values()) == bits_of(of.v));
  }
};

template <element T>
void check_weights(array<device, T> const& written, std::vector<T> const& expected) {
  auto const weights = written.values();
  CHECK(bits_of({weights.begin(), weights.end()}) == bits_of({expected.begin(), expected.end()}));
}

template <element T, state_format F>
void check_all(lab& in, std::int64_t count) {
  auto const start = conformance::any_state<T, F>(in, count);
  auto const gradient_of = [&] {
    std::vector<T> gradient;
    for (auto const value : any_floats(in, count)) { gradient.push_back(T(value)); }
    return gradient;
  };
  auto const first = gradient_of(), second = gradient_of();
  auto const record = stored_step(1, 0.7F), step = stored_step(2);
  constexpr std::int64_t index = 12345 * kernel::state_block;
  auto after_first = start;
  after_first.advance(first, record, index);
  auto after_second = after_first;
  after_second.advance(second, step, index);
  struct arrays {
    whole_state<T, F> state;
    array<device, T> pending, gradient, weight;
  };
  auto const made = [&] { return arrays{{in, start}, {in, first}, {in, second}, {in, count}}; };
  {
    INFO("update");
    auto const a = made();
    auto const& s = a.state;
    launch(in.stream, kernel::adamw_update<T, F>{s.master.data(), s.m.data(), s.v.data(), a.pending.data(),
                                                 a.weight.data(), count, record, index});
    s.check(after_first);
    check_weights(a.weight, after_first.weights());
    INFO("in the gradient's memory");
    launch(in.stream, kernel::adamw_update<T, F>{s.master.data(), s.m.data(), s.v.data(), a.gradient.data(),
                                                 a.gradient.data(), count, step, index});
    s.check(after_second);
    check_weights(a.gradient, after_second.weights());
    INFO("resend");
    launch(in.stream, kernel::resend_weights<T, F>{s.master.data(), a.weight.data(), count});
    check_weights(a.weight, after_second.weights());
    s.check(after_second);
  }
  {
    INFO("next_state");
    auto const a = made();
    auto const& s = a.state;
    whole_state<T, F> const next{in, after_second};  // of other values
    launch(in.stream, kernel::adamw_next_state<T, F>{s.master.data(), s.m.data(), s.v.data(),
                                                     a.pending.data(), next.master.data(), next.m.data(),
                                                     next.v.data(), a.weight.data(), count, record, index});
    s.check(start);
    next.check(after_first);
    check_weights(a.weight, after_first.weights());
  }
  {
    INFO("speculate, commit");
    auto const a = made();
    auto const& s = a.state;
    launch(in.stream, kernel::adamw_speculate<T, F>{s.master.data(), s.m.data(), s.v.data(), a.pending.data(),
                                                    a.weight.data(), count, record, index});
    s.check(start);
    check_weights(a.weight, after_first.weights());
    launch(in.stream, kernel::adamw_commit<T, F>{s.master.data(), s.m.data(), s.v.data(), a.pending.data(),
                                                 count, record, index});
    s.check(after_first);
  }
  for (bool const reuses : {false, true}) {
    CAPTURE(reuses);
    {
      INFO("commit_speculate");
      auto const a = made();
      auto const& s = a.state;
      auto const& weight = reuses ? a.pending : a.weight;
      launch(in.stream, kernel::adamw_commit_speculate<T, F>{s.master.data(), s.m.data(), s.v.data(),
                                                             a.pending.data(), a.gradient.data(),
                                                             weight.data(), count, record, step, index});
      s.check(after_first);
      check_weights(weight, after_second.weights());
    }
    {
      INFO("commit_update");
      auto const a = made();
      auto const& s = a.state;
      auto const& weight = reuses ? a.gradient : a.weight;
      launch(in.stream,
             kernel::adamw_commit_update<T, F>{s.master.data(), s.m.data(), s.v.data(), a.pending.data(),
                                               a.gradient.data(), weight.data(), count, record, step, index});
      s.check(after_second);
      check_weights(weight, after_second.weights());
    }
  }
}

TEST_CASE("stored adamw: every instruction set, any number of threads") {
  for_every_set(across_sets::same_bits, [](auto& in) { conformance::check_stored_adamw(in); });
}

TEST_CASE("stored adamw: every kernel on host state is the reference, on every instruction set") {
  for_every_set(across_sets::same_bits, [](lab& in) {
    for (std::int64_t const blocks : {0, 1, 3, 640}) {
      auto const count = blocks * kernel::state_block;
      check_all<float, state_format::bf16>(in, count);
      check_all<bfloat16, state_format::bf16>(in, count);
      check_all<float, state_format::int8>(in, count);
      check_all<bfloat16, state_format::int8>(in, count);
    }
    check_all<float, state_format::bf16>(in, 1003);
    check_all<bfloat16, state_format::bf16>(in, 1003);
  });
}

TEST_CASE("stored adamw: slices are independent") {
  device on{1};
  lab in{on};
  constexpr std::int64_t count = 1000 * kernel::state_block;
  auto reference = conformance::any_state<bfloat16, state_format::int8>(in, count);
  auto const gradient = in.normal<bfloat16>(count);
  conformance::split_state_arrays<bfloat16, state_format::int8, device> const arrays{in, reference};
  array<device, bfloat16> const on_device{in, gradient};
  auto const whole = arrays.step(on_device, count, stored_step(5), 64);
  constexpr auto piece = 77 * kernel::state_block;
  for (std::int64_t first = 0; first < count; first += piece) {
    run(whole.slice(first, std::min(piece, count - first)));
  }
  reference.advance(gradient, stored_step(5), 64);
  arrays.check(reference);
}

}  // namespace
