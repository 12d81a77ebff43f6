// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/described_device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/policy.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/nn/batch.hpp>
#include <superoffload/nn/cross_entropy.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace superoffload::model {

/// The number of pairs of a query and a key visible to it in a batch, when attention sees the last `window`
/// tokens of a document, or all of it (0).
using visible_pairs = std::function<std::int64_t(std::int32_t window)>;

/// The forward of A on D in T, and the constant tables that it reads; a dry pass has empty ones.
template <class A, class D, class T>
concept forward_of =
    std::default_initializable<typename A::template tables<D, T>> &&
    requires(A const& a, D& device, typename D::stream& stream, std::int64_t positions,
             autograd::tape<D, T>& tape, nn::batch const& batch, typename A::template tables<D, T> const* t) {
      { a.template table_bytes<T>(positions) } -> std::convertible_to<std::size_t>;
      {
        a.template make_tables<D, T>(device, stream, positions)
      } -> std::same_as<typename A::template tables<D, T>>;
      { a.template loss<D, T>(tape, batch, t) } -> std::same_as<nn::loss_sum>;
      { a.template logits<D, T>(tape, batch, t) } -> std::same_as<autograd::variable<D, T>>;
    };

/// A family of decoders. An architecture
/// 1. is built from a checked configuration and lays out its parameters in units, in the order in which
///    forward uses them;
/// 2. defines its forward once, as templates over device and element type:
///    `loss<D, T>(tape, batch, tables)` -> nn::loss_sum, and `logits<D, T>(tape, batch, tables)` -> variable;
/// 3. builds the constant tables that its forward needs: `make_tables<D, T>(device, stream, positions)` ->
///    `tables<D, T>`, which take `table_bytes<T>(positions)`;
/// 4. counts the FLOPs of its forward.
template <class A>
concept architecture = policy_of<A, category::architecture> && std::constructible_from<A, config const&> &&
                       forward_of<A, described_device, bfloat16> &&
                       requires(A& a, A const& c, std::int64_t n, visible_pairs const& visible) {
                         { A::model_type() } -> std::convertible_to<std::string>;
                         { c.settings() } -> std::same_as<config const&>;
                         { a.units() } -> std::same_as<std::vector<autograd::unit_layout>&>;
                         { c.units() } -> std::same_as<std::vector<autograd::unit_layout> const&>;
                         { c.forward_flops(n, visible) } -> std::same_as<double>;
                         a.apply_freeze();
                       };

}  // namespace superoffload::model
