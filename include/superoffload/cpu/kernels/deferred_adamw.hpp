// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/kernels/adamw_state.hpp>
#include <superoffload/cpu/kernels/simd.hpp>
#include <superoffload/cpu/kernels/staged_state.hpp>
#include <superoffload/cpu/kernels/streaming.hpp>
#include <superoffload/kernel/deferred_adamw.hpp>

namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET {

/// Stores the working weights of masters.
template <element T, class Extent>
SUPEROFFLOAD_ALWAYS_INLINE inline void store_weight(T* to, vector<float> master, Extent extent,
                                                    bool past_caches) {
  if constexpr (std::same_as<Extent, whole>) {
    if (past_caches) {
      store_past_caches(to, master);
      return;
    }
  }
  if constexpr (std::same_as<T, bfloat16>) {
    store<rounding::half_away>(to, master, extent);
  } else {
    store(to, master, extent);
  }
}
/// The same for a group's weights, at element `i`.
template <element T, state_format F, class Extent>
SUPEROFFLOAD_ALWAYS_INLINE inline void store_weights(T* to, adamw_group<T, F> const& state, int64_t i,
                                                     Extent extent, bool past_caches) {
  for (int k = 0; k < state.n; ++k) {
    store_weight(to + i + state.at(k), state.stored_master(k), extent, past_caches);
  }
}

/// Calls pass(past_caches): are the weights at `to` best stored around the caches? Not where a gradient was
/// just read. A pass decides at each store: one for each answer is no faster, and twice as much to compile.
template <element T, class Pass>
void choosing_stores(T const* to, T const* pending, T const* gradient, Pass const& pass) {
  bool const past_caches = to != pending && to != gradient && stores_past_caches(to);
  pass(past_caches);
  if (past_caches) {
    finish_stores();
  }
}

/// A group's state before the step.
template <element T, state_format F, class Arguments, class Extent>
SUPEROFFLOAD_ALWAYS_INLINE inline adamw_group<T, F> loaded(Arguments const& a, int64_t i, Extent extent) {
  adamw_group<T, F> state;
  state.load_masters(a.master, i, extent);
  state.load_moments(a, i, extent);
  return state;
}

template <element T, state_format F>
int64_t items(kernel::adamw_update<T, F> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T, state_format F>
void run(kernel::adamw_update<T, F> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, nullptr, a.gradient, [=](bool past_caches) {
    for_streamed_groups<F>(
        first, last, a.count,
        [=](int64_t i, auto extent) SUPEROFFLOAD_ALWAYS_INLINE {
          auto state = loaded<T, F>(a, i, extent);
          state.advance(a.gradient, i, a.step, a.index, extent);
          state.store_masters(a.master, i, extent);
          state.store_moments(a, i, a.step, extent);
          store_weights(a.weight, state, i, extent, past_caches);
        },
        a.master, a.m, a.v, a.gradient);
  });
}

template <element T, state_format F>
int64_t items(kernel::adamw_next_state<T, F> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T, state_format F>
void run(kernel::adamw_next_state<T, F> const& a, int64_t first, int64_t last) {
  staged<kernel::masters<T, F>> master;
  staged<kernel::moments<F>> m, v;
  auto const mine = range_of(first, last, elements_of_item, a.count);
  auto begin = mine.begin;  // the first element that is staged
  auto const leave = [&](int64_t end) {
    master.leave(a.next_master + begin, end - begin);
    m.leave(a.next_m + begin, end - begin);
    v.leave(a.next_v + begin, end - begin);
    begin = end;
  };
  choosing_stores<T>(a.weight, nullptr, a.gradient, [&](bool past_caches) {
    for_streamed_groups<F>(
        first, last, a.count,
        [&](int64_t i, auto extent) SUPEROFFLOAD_ALWAYS_INLINE {
          if (i - begin == staged_elements) {
            leave(i);
          }
          auto state = loaded<T, F>(a, i, extent);
          state.advance(a.gradient, i, a.step, a.index, extent);
          state.store_masters(master.data(), i - begin, extent);
          state.store_moments_to(m.data(), v.data(), i - begin, group_noise<F>{a.index + i, a.step}, extent);
          store_weights(a.weight, state, i, extent, past_caches);
        },
        a.master, a.m, a.v, a.gradient);
    leave(mine.end);
  });
  finish_stores();
}

template <element T, state_format F>
int64_t items(kernel::adamw_speculate<T, F> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T, state_format F>
void run(kernel::adamw_speculate<T, F> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, nullptr, a.gradient, [=](bool past_caches) {
    for_streamed_groups<F>(
        first, last, a.count,
        [=](int64_t i, auto extent) SUPEROFFLOAD_ALWAYS_INLINE {
          auto state = loaded<T, F>(a, i, extent);
          state.advance(a.gradient, i, a.step, a.index, extent);
          store_weights(a.weight, state, i, extent, past_caches);
        },
        a.master, a.m, a.v, a.gradient);
  });
}

template <element T, state_format F>
int64_t items(kernel::adamw_commit<T, F> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T, state_format F>
void run(kernel::adamw_commit<T, F> const& a, int64_t first, int64_t last) {
  for_streamed_groups<F>(
      first, last, a.count,
      [=](int64_t i, auto extent) SUPEROFFLOAD_ALWAYS_INLINE {
        auto state = loaded<T, F>(a, i, extent);
        state.advance(a.pending, i, a.record, a.index, extent);
        state.store_masters(a.master, i, extent);
        state.store_moments(a, i, a.record, extent);
      },
      a.master, a.m, a.v, a.pending);
}

template <element T, state_format F>
int64_t items(kernel::adamw_commit_speculate<T, F> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T, state_format F>
void run(kernel::adamw_commit_speculate<T, F> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, a.pending, a.gradient, [=](bool past_caches) {
    for_streamed_groups<F>(
        first, last, a.count,
        [=](int64_t i, auto extent) SUPEROFFLOAD_ALWAYS_INLINE {
          auto state = loaded<T, F>(a, i, extent);
          state.advance(a.pending, i, a.record, a.index, extent);
          state.store_masters(a.master, i, extent);
          state.store_moments(a, i, a.record, extent);
          state.advance(a.gradient, i, a.step, a.index, extent);
          store_weights(a.weight, state, i, extent, past_caches);
        },
        a.master, a.m, a.v, a.pending, a.gradient);
  });
}

template <element T, state_format F>
int64_t items(kernel::adamw_commit_update<T, F> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T, state_format F>
void run(kernel::adamw_commit_update<T, F> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, a.pending, a.gradient, [=](bool past_caches) {
    for_streamed_groups<F>(
        first, last, a.count,
        [=](int64_t i, auto extent) SUPEROFFLOAD_ALWAYS_INLINE {
          auto state = loaded<T, F>(a, i, extent);
          state.advance(a.pending, i, a.record, a.index, extent);
          if constexpr (F != state_format::float32) {
            state.store_moments(a, i, a.record, extent);  // rounds them
          }
          state.advance(a.gradient, i, a.step, a.index, extent);
          state.store_masters(a.master, i, extent);
          state.store_moments(a, i, a.step, extent);
          store_weights(a.weight, state, i, extent, past_caches);
        },
        a.master, a.m, a.v, a.pending, a.gradient);
  });
}

template <element T, state_format F>
int64_t items(kernel::resend_weights<T, F> const& a) {
  return pieces_of(a.count, elements_of_item);
}
template <element T, state_format F>
void run(kernel::resend_weights<T, F> const& a, int64_t first, int64_t last) {
  choosing_stores<T>(a.weight, nullptr, nullptr, [=](bool past_caches) {
    for_streamed_groups<F>(
        first, last, a.count,
        [=](int64_t i, auto extent) SUPEROFFLOAD_ALWAYS_INLINE {
          adamw_group<T, F> state;
          state.load_masters(a.master, i, extent);
          for (int k = 0; k < state.n; ++k) {  // as they are, which advance() has not changed
            store_weight(a.weight + i + state.at(k), vector<float>{state.master[k]}, extent, past_caches);
          }
        },
        a.master);
  });
}

}  // namespace superoffload::cpu::SUPEROFFLOAD_KERNEL_SET
