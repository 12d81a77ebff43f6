// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/adamw.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/kernel/cross_entropy.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/kernel/embedding.hpp>
#include <superoffload/kernel/gemm.hpp>
#include <superoffload/kernel/reduction.hpp>
#include <superoffload/kernel/rms_norm.hpp>
#include <superoffload/kernel/rotary.hpp>
#include <superoffload/kernel/swiglu.hpp>

#include <type_traits>

namespace superoffload::kernel {

template <class... Arguments>
struct list {};
template <class... A, class... B>
list<A..., B...> operator+(list<A...>, list<B...>);

namespace detail {

template <element T>
using of_one_type =
    list<add<T>, attention_backward<T>, attention_forward<T>, column_sum<T>, convert<T, bfloat16>,
         convert<T, double>, convert<T, float>, cross_entropy<T>, embedding_backward<T>, embedding_forward<T>,
         gemm<T>, rms_norm_backward<T>, rms_norm_forward<T>, rotary<T>, square_sum<T>, sum<T>,
         swiglu_backward<T>, swiglu_forward<T>>;

using of_two_types = list<column_sum<bfloat16, float>, column_sum<float, bfloat16>,
                          embedding_backward<bfloat16, float>, gemm<bfloat16, float>>;

using of_the_optimizer = list<adamw<bfloat16>, adamw<float>, emit_weights>;

}  // namespace detail

/// Every kernel that a device has to have.
using catalogue =
    decltype(detail::of_one_type<bfloat16>{} + detail::of_one_type<float>{} + detail::of_one_type<double>{} +
             detail::of_two_types{} + detail::of_the_optimizer{});

namespace detail {

template <template <class> class Entry, class List>
struct table;
template <template <class> class Entry, class... Arguments>
struct table<Entry, list<Arguments...>> : Entry<Arguments>... {};

}  // namespace detail

/// How a device keeps its kernels: one Entry<Arguments> for each of the catalogue, found by its type.
template <template <class> class Entry>
using table = detail::table<Entry, catalogue>;

/// Is there a kernel for these arguments?
template <class Arguments, template <class> class Entry>
concept in_table = std::is_base_of_v<Entry<Arguments>, table<Entry>>;

}  // namespace superoffload::kernel
