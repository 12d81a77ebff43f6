// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/core/policy.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <vector>

/// Which activations of a forward are kept for the backward, where, and which are recomputed.
namespace superoffload::recompute {

/// automatic: as little is recomputed as the memory allows, or as the plan says; offload: what blocks keep
/// goes to host memory.
enum class choice { none, every_block, automatic, offload };

/// Does a micro-batch smaller than the planned one keep more, and offload less, than the planned one?
constexpr bool adapts(choice c) { return c == choice::automatic || c == choice::offload; }

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

/// What blocks keep goes to host memory: by default their inputs, else what the configuration says.
struct offload {
  using policy_category = category::recompute;                    ///< makes it a recompute_policy
  static constexpr choice of(choice) { return choice::offload; }  ///< always offload
};
static_assert(recompute_policy<offload>);

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

/// Only the inputs of blocks are kept, in host memory.
inline constexpr autograd::activation_offloading inputs_offloaded{.buffers = 3, .kept = 0};

/// How many functions of a block can keep their results beside the block's result.
int most_kept(std::vector<autograd::activation> const& activations);

/// Blocks take turns in buffers, as `how` says. If they have as many buffers as there are blocks, nothing
/// leaves the device.
autograd::activation_checkpointing offloaded(std::vector<autograd::activation> const& activations,
                                             double flops_per_byte,
                                             autograd::activation_offloading const& how);

}  // namespace superoffload::recompute

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/recompute_inl.hpp>
#endif
