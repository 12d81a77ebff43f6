// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/cpu/kernels/streaming.hpp>
#include <superoffload/kernel/deferred_adamw.hpp>

#include <type_traits>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// A vector of the optimizer's state.
struct adamw_state {
  exact_floats master, m, v;

  template <class Arguments, class Extent>
  static adamw_state load_from(Arguments const& a, int64_t i, Extent extent) {
    return {load<float>(a.master + i, extent), load<float>(a.m + i, extent), load<float>(a.v + i, extent)};
  }
  void advance(exact_floats gradient, kernel::adamw_step const& step) {
    kernel::adamw_rule(master, m, v, gradient, step, [](exact_floats x) { return sqrt(x); });
  }
  template <class Arguments, class Extent>
  void store_to(Arguments const& a, int64_t i, Extent extent) const {
    store(a.master + i, without_nan_payload(master), extent);
    store(a.m + i, without_nan_payload(m), extent);
    store(a.v + i, without_nan_payload(v), extent);
  }
};

/// Stores the working weights of masters.
template <bool PastCaches, element T, class Extent>
void store_weight(T* to, vector<float> master, Extent extent) {
  if constexpr (PastCaches && std::same_as<Extent, whole>) {
    store_past_caches(to, master);
  } else if constexpr (std::same_as<T, bfloat16>) {
    store<rounding::half_away>(to, master, extent);
  } else {
    store(to, master, extent);
  }
}

/// Calls pass(std::true_type) when the weights at `to` are best stored around the caches, which they are not
/// where a gradient was just read.
template <element T, class Pass>
void choosing_stores(T const* to, T const* pending, T const* gradient, Pass const& pass) {
  if (to != pending && to != gradient && stores_past_caches(to)) {
    pass(std::true_type{});
    finish_stores();
  } else {
    pass(std::false_type{});
  }
}

template <element T>
int64_t items(kernel::adamw_update<T> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T>
void run(kernel::adamw_update<T> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, nullptr, a.gradient, [&](auto past_caches) {
    for_streamed_vectors(
        first, last, a.count,
        [&](int64_t i, auto extent) {
          auto state = adamw_state::load_from(a, i, extent);
          state.advance(load<float>(a.gradient + i, extent), a.step);
          state.store_to(a, i, extent);
          store_weight<past_caches>(a.weight + i, without_nan_payload(state.master), extent);
        },
        a.master, a.m, a.v, a.gradient);
  });
}

template <element T>
int64_t items(kernel::adamw_speculate<T> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T>
void run(kernel::adamw_speculate<T> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, nullptr, a.gradient, [&](auto past_caches) {
    for_streamed_vectors(
        first, last, a.count,
        [&](int64_t i, auto extent) {
          auto state = adamw_state::load_from(a, i, extent);
          state.advance(load<float>(a.gradient + i, extent), a.step);
          store_weight<past_caches>(a.weight + i, without_nan_payload(state.master), extent);
        },
        a.master, a.m, a.v, a.gradient);
  });
}

template <element T>
int64_t items(kernel::adamw_commit<T> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T>
void run(kernel::adamw_commit<T> const& a, int64_t first, int64_t last) {
  for_streamed_vectors(
      first, last, a.count,
      [&](int64_t i, auto extent) {
        auto state = adamw_state::load_from(a, i, extent);
        state.advance(load<float>(a.pending + i, extent), a.record);
        state.store_to(a, i, extent);
      },
      a.master, a.m, a.v, a.pending);
}

template <element T>
int64_t items(kernel::adamw_commit_speculate<T> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T>
void run(kernel::adamw_commit_speculate<T> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, a.pending, a.gradient, [&](auto past_caches) {
    for_streamed_vectors(
        first, last, a.count,
        [&](int64_t i, auto extent) {
          auto state = adamw_state::load_from(a, i, extent);
          state.advance(load<float>(a.pending + i, extent), a.record);
          state.store_to(a, i, extent);
          state.advance(load<float>(a.gradient + i, extent), a.step);
          store_weight<past_caches>(a.weight + i, without_nan_payload(state.master), extent);
        },
        a.master, a.m, a.v, a.pending, a.gradient);
  });
}

template <element T>
int64_t items(kernel::adamw_commit_update<T> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T>
void run(kernel::adamw_commit_update<T> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, a.pending, a.gradient, [&](auto past_caches) {
    for_streamed_vectors(
        first, last, a.count,
        [&](int64_t i, auto extent) {
          auto state = adamw_state::load_from(a, i, extent);
          state.advance(load<float>(a.pending + i, extent), a.record);
          state.advance(load<float>(a.gradient + i, extent), a.step);
          state.store_to(a, i, extent);
          store_weight<past_caches>(a.weight + i, without_nan_payload(state.master), extent);
        },
        a.master, a.m, a.v, a.pending, a.gradient);
  });
}

template <element T>
int64_t items(kernel::resend_weights<T> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T>
void run(kernel::resend_weights<T> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, nullptr, nullptr, [&](auto past_caches) {
    for_streamed_vectors(
        first, last, a.count,
        [&](int64_t i, auto extent) {
          store_weight<past_caches>(a.weight + i, load<float>(a.master + i, extent), extent);
        },
        a.master);
  });
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
