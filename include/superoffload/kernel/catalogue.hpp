// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/adamw.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/kernel/column_parts.hpp>
#include <superoffload/kernel/cross_entropy.hpp>
#include <superoffload/kernel/deferred_adamw.hpp>
#include <superoffload/kernel/dropout.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/kernel/embedding.hpp>
#include <superoffload/kernel/expert_swiglu.hpp>
#include <superoffload/kernel/float8.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/kernel/grouped_gemm.hpp>
#include <superoffload/kernel/head_norm.hpp>
#include <superoffload/kernel/load_balancing.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/kernel/rms_norm.hpp>
#include <superoffload/kernel/rotary.hpp>
#include <superoffload/kernel/routing.hpp>
#include <superoffload/kernel/swiglu.hpp>

#include <type_traits>

namespace superoffload::kernel {

template <class... Arguments>
/// A list of types; it holds no values.
struct list {};
/// Both lists, joined: for decltype alone, never defined.
template <class... A, class... B>
list<A..., B...> operator+(list<A...>, list<B...>);

namespace detail {

template <element T>
using of_one_type =
    list<add<T>, attention_backward<T>, attention_forward<T>, attention_sinks_backward<T>, column_sum<T>,
         combine_rows<T>, convert<T, bfloat16>, convert<T, double>, convert<T, float>, cross_entropy<T>,
         dropout_add<T>, embedding_backward<T>, embedding_forward<T>, expert_load<T>,
         expert_swiglu_backward<T>, expert_swiglu_forward<T>, gather_rows<T>, gemm<T>, grouped_column_sum<T>,
         grouped_gemm<T>, grouped_outer<T>, head_norm_backward<T>, head_norm_forward<T>,
         load_balancing_backward<T>, rms_norm_backward<T>, rms_norm_forward<T>, rotary<T>, route_backward<T>,
         route_forward<T>, square_sum<T>, sum<T>, swiglu_backward<T>, swiglu_forward<T>>;

using of_two_types =
    list<column_sum<bfloat16, float>, column_sum<float, bfloat16>, embedding_backward<bfloat16, float>,
         gemm<bfloat16, float>, grouped_column_sum<bfloat16, float>, grouped_outer<bfloat16, float>,
         square_sum<bfloat16, float>>;

using of_no_type = list<column_parts, group_choices, load_balancing_loss>;

using of_float8 = list<float8_gemm<bfloat16>, float8_gemm<float>, largest_magnitude, quantize>;

template <state_format F>
using of_the_optimizer =
    list<adamw<bfloat16, bfloat16, F>, adamw<bfloat16, float, F>, adamw<float, float, F>>;

template <element T, state_format F>
using of_host_state =
    list<adamw_commit<T, F>, adamw_commit_speculate<T, F>, adamw_commit_update<T, F>, adamw_next_state<T, F>,
         adamw_speculate<T, F>, adamw_update<T, F>, resend_weights<T, F>>;
template <state_format F>
using of_host_states = decltype(of_host_state<bfloat16, F>{} + of_host_state<float, F>{});

}  // namespace detail

/// Every kernel that a device must have.
using catalogue =
    decltype(detail::of_one_type<bfloat16>{} + detail::of_one_type<float>{} + detail::of_one_type<double>{} +
             detail::of_two_types{} + detail::of_no_type{} + detail::of_float8{} +
             detail::of_the_optimizer<state_format::float32>{} +
             detail::of_the_optimizer<state_format::bf16>{} + detail::of_the_optimizer<state_format::int8>{});

/// Every kernel that the processor must have: those above, and those it runs for other devices.
using host_catalogue =
    decltype(catalogue{} + detail::of_host_states<state_format::float32>{} +
             detail::of_host_states<state_format::bf16>{} + detail::of_host_states<state_format::int8>{});

/// Products of bfloat16 matrices: what an instruction for pairs of bfloat16 makes faster.
using bfloat16_products = list<gemm<bfloat16>, gemm<bfloat16, float>, grouped_gemm<bfloat16>,
                               grouped_outer<bfloat16>, grouped_outer<bfloat16, float>>;

namespace detail {

template <template <class> class Entry, class List>
struct table;
template <template <class> class Entry, class... Arguments>
struct table<Entry, list<Arguments...>> : Entry<Arguments>... {};

}  // namespace detail

/// A device's kernels: one Entry<Arguments> for each kernel of a catalogue, found by its type.
template <template <class> class Entry, class Catalogue = catalogue>
using table = detail::table<Entry, Catalogue>;

/// Is there a kernel for these arguments?
template <class Arguments, template <class> class Entry, class Catalogue = catalogue>
concept in_table = std::is_base_of_v<Entry<Arguments>, table<Entry, Catalogue>>;

}  // namespace superoffload::kernel
