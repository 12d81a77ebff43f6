// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/policy.hpp>
#include <superoffload/model/config.hpp>

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace superoffload::model {

/// The number of pairs of a query and a key visible to it in a batch, when attention sees the last `window`
/// tokens of a document, or all of it (0).
using visible_pairs = std::function<std::int64_t(std::int32_t window)>;

/// A family of decoders. An architecture
/// 1. is built from a checked configuration and lays out its parameters in units, in the order in which
///    forward uses them;
/// 2. defines its forward once, as templates over device and element type: `loss(tape, batch, tables)` ->
///    nn::loss_sum, and `logits(tape, batch, tables)` -> variable;
/// 3. builds the constant tables that its forward needs: `tables<D, T>(device, stream, positions)`;
/// 4. counts the FLOPs of its forward.
template <class A>
concept architecture = policy_of<A, category::architecture> && std::constructible_from<A, config const&> &&
                       requires(A& a, A const& c, std::int64_t n, visible_pairs const& visible) {
                         { A::model_type() } -> std::convertible_to<std::string>;
                         { c.settings() } -> std::same_as<config const&>;
                         { a.units() } -> std::same_as<std::vector<autograd::unit_layout>&>;
                         { c.units() } -> std::same_as<std::vector<autograd::unit_layout> const&>;
                         { c.forward_flops(n, visible) } -> std::same_as<double>;
                         a.apply_freeze();
                       };

}  // namespace superoffload::model
