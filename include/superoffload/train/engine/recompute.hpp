// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/core/policy.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <vector>

/// Which activations of a forward are kept for the backward, and which are recomputed.
namespace superoffload::recompute {

/// automatic: as little is recomputed as the memory allows.
enum class choice { none, every_block, automatic };

/// `of(wanted)` is what an engine does if its options say `wanted`.
template <class P>
concept recompute_policy = policy_of<P, category::recompute> && requires(choice wanted) {
  { P::of(wanted) } -> std::same_as<choice>;
};

/// Every activation is kept.
struct none {
  using policy_category = category::recompute;                 ///< makes it a recompute_policy
  static constexpr choice of(choice) { return choice::none; }  ///< always none
};
static_assert(recompute_policy<none>);

/// Only the input of every block is kept.
struct every_block {
  using policy_category = category::recompute;                        ///< makes it a recompute_policy
  static constexpr choice of(choice) { return choice::every_block; }  ///< always every_block
};
static_assert(recompute_policy<every_block>);

/// engine_options::recompute decides.
struct configured {
  using policy_category = category::recompute;                  ///< makes it a recompute_policy
  static constexpr choice of(choice wanted) { return wanted; }  ///< as wanted
};
static_assert(recompute_policy<configured>);

/// Drops all of `activations`: only the input of every block is kept.
autograd::activation_checkpointing inputs_only(std::vector<autograd::activation> const& activations);

/// Keeps the activations with the most recompute work for their size, as many as fit: `peak_of(result)` is at
/// most `budget` bytes. `flops_per_byte` is the device's GEMM rate over its memory bandwidth.
autograd::activation_checkpointing fit(
    std::vector<autograd::activation> const& activations, double flops_per_byte, std::size_t budget,
    std::function<std::size_t(autograd::activation_checkpointing const&)> const& peak_of);

}  // namespace superoffload::recompute

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/recompute_inl.hpp>
#endif
