// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/stream.hpp>
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

#include <cstdint>
#include <type_traits>

namespace superoffload::cpu {

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

/// A kernel as one instruction set has it: work is cut into items by the arguments alone, so that results do
/// not depend on the number of threads.
template <class Arguments>
struct kernel_entry {
  std::int64_t (*items)(Arguments const&);
  void (*run)(Arguments const&, std::int64_t begin, std::int64_t end);
};

template <class List>
struct kernel_table;
template <class... Arguments>
struct kernel_table<list<Arguments...>> : kernel_entry<Arguments>... {};

/// The kernels of the active instruction set.
kernel_table<all_kernels> const& active_kernels();

/// The items that may run at the same time, from `begin` on, end here.
template <class Arguments>
std::int64_t end_of_wave(Arguments const&, std::int64_t, std::int64_t items) {
  return items;
}

/// A gradient in the memory of wider logits: row r lands where row r / 2 was, which must have been read.
inline std::int64_t end_of_wave(kernel::cross_entropy<bfloat16> const& a, std::int64_t begin,
                                std::int64_t items) {
  if (static_cast<void const*>(a.d_logits) != static_cast<void const*>(a.logits)) {
    return items;
  }
  return begin == 0 ? 1 : begin < items - begin ? 2 * begin : items;
}

}  // namespace detail

/// Has the device a kernel for these arguments?
template <class Arguments>
concept kernel_arguments =
    std::is_base_of_v<detail::kernel_entry<Arguments>, detail::kernel_table<detail::all_kernels>>;

/// Queues the kernel on `stream`; it runs on the threads of the stream. What the arguments point to must live
/// until it has run. Empty matrices and arrays are allowed.
template <kernel_arguments Arguments>
void launch(stream& stream, Arguments const& arguments) {
  detail::kernel_entry<Arguments> const& kernel = detail::active_kernels();
  stream.enqueue([arguments, &kernel, &threads = stream.threads()] {
    auto const items = kernel.items(arguments);
    for (std::int64_t begin = 0; begin < items;) {
      auto const end = detail::end_of_wave(arguments, begin, items);
      threads.parallel_for(end - begin, 1, [&](std::int64_t first, std::int64_t last) {
        kernel.run(arguments, begin + first, begin + last);
      });
      begin = end;
    }
  });
}

}  // namespace superoffload::cpu
