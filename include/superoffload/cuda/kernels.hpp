// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/stream.hpp>
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

namespace superoffload::cuda {

namespace detail {

template <class... Arguments>
struct list {};
template <class... A, class... B>
list<A..., B...> operator+(list<A...>, list<B...>);

template <element T>
using kernels_of_one_type =
    list<kernel::add<T>, kernel::attention_backward<T>, kernel::attention_forward<T>, kernel::column_sum<T>,
         kernel::convert<T, bfloat16>, kernel::convert<T, double>, kernel::convert<T, float>,
         kernel::cross_entropy<T>, kernel::embedding_backward<T>, kernel::embedding_forward<T>,
         kernel::gemm<T>, kernel::rms_norm_backward<T>, kernel::rms_norm_forward<T>, kernel::rotary<T>,
         kernel::square_sum<T>, kernel::sum<T>, kernel::swiglu_backward<T>, kernel::swiglu_forward<T>>;

using kernels_of_two_types = list<kernel::column_sum<bfloat16, float>, kernel::column_sum<float, bfloat16>,
                                  kernel::embedding_backward<bfloat16, float>, kernel::gemm<bfloat16, float>>;

using kernels_of_the_optimizer = list<kernel::adamw<bfloat16>, kernel::adamw<float>, kernel::emit_weights>;

/// Everything that can be launched on this device.
using all_kernels =
    decltype(kernels_of_one_type<bfloat16>{} + kernels_of_one_type<float>{} + kernels_of_one_type<double>{} +
             kernels_of_two_types{} + kernels_of_the_optimizer{});

template <class Arguments>
struct kernel_entry {
  void (*launch)(stream&, Arguments const&);
};

template <class List>
struct kernel_table;
template <class... Arguments>
struct kernel_table<list<Arguments...>> : kernel_entry<Arguments>... {};

/// Defined in kernels.cu, the one source that nvcc compiles.
extern kernel_table<all_kernels> const kernels;

}  // namespace detail

/// Has the device a kernel for these arguments?
template <class Arguments>
concept kernel_arguments =
    std::is_base_of_v<detail::kernel_entry<Arguments>, detail::kernel_table<detail::all_kernels>>;

/// Queues the kernel on `stream`. What the arguments point to must live until it has run. Empty matrices and
/// arrays are allowed. Throws `error` (device) when the launch is refused.
template <kernel_arguments Arguments>
void launch(stream& stream, Arguments const& arguments) {
  detail::kernel_entry<Arguments> const& kernel = detail::kernels;
  kernel.launch(stream, arguments);
}

}  // namespace superoffload::cuda
