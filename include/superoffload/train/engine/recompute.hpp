// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/core/policy.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <vector>

/// What of a forward is kept for the backward, and what is computed again.
namespace superoffload::recompute {

/// automatic: as little is computed again as the memory allows.
enum class choice { none, every_block, automatic };

/// What an engine does of what its options say: `of(wanted)`.
template <class P>
concept recompute_policy = policy_of<P, category::recompute> && requires(choice wanted) {
  { P::of(wanted) } -> std::same_as<choice>;
};

/// Every activation is kept.
struct none {
  using policy_category = category::recompute;
  static constexpr choice of(choice) { return choice::none; }
};
static_assert(recompute_policy<none>);

/// Of every block, only the input is kept.
struct every_block {
  using policy_category = category::recompute;
  static constexpr choice of(choice) { return choice::every_block; }
};
static_assert(recompute_policy<every_block>);

/// engine_options::recompute decides.
struct configured {
  using policy_category = category::recompute;
  static constexpr choice of(choice wanted) { return wanted; }
};
static_assert(recompute_policy<configured>);

/// Of every block, only the input is kept.
autograd::activation_checkpointing inputs_only(std::vector<autograd::activation> const& activations);

/// Keeps what is dearest to compute again for its size, until `peak_of(retention)` would exceed `budget`
/// bytes. `flops_per_byte` is the device's rate of matrix products over that of its memory.
autograd::activation_checkpointing fit(
    std::vector<autograd::activation> const& activations, double flops_per_byte, std::size_t budget,
    std::function<std::size_t(autograd::activation_checkpointing const&)> const& peak_of);

}  // namespace superoffload::recompute

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/recompute_inl.hpp>
#endif
