// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/attention.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/stream.hpp>
#include <superoffload/kernel/catalogue.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>

namespace superoffload::cuda {

namespace detail {

template <class Arguments>
struct kernel_entry {
  void (*launch)(stream&, Arguments const&);
};

using kernel_table = kernel::table<kernel_entry>;

/// Defined in kernels.cuh, which nvcc compiles.
extern kernel_table const kernels;

/// Arguments that an attention_backend may compute instead of the device's own kernels.
template <class Arguments>
concept attention_arguments = std::same_as<Arguments, kernel::attention_forward<bfloat16>> ||
                              std::same_as<Arguments, kernel::attention_backward<bfloat16>>;

}  // namespace detail

/// Does the device have a kernel for these arguments?
template <class Arguments>
concept kernel_arguments = kernel::in_table<Arguments, detail::kernel_entry>;

/// Queues the kernel on `stream`. What the arguments point to must live until it has run. Empty matrices and
/// arrays are allowed. Throws `error` (device) when the launch is refused.
template <kernel_arguments Arguments>
void launch(stream& stream, Arguments const& arguments) {
  if constexpr (detail::attention_arguments<Arguments>) {
    auto* const backend = stream.of().attention();
    if (backend != nullptr) {
      if (backend->supports(arguments.shape)) {
        backend->launch(stream, arguments);
        return;
      }
      if constexpr (std::same_as<Arguments, kernel::attention_forward<bfloat16>>) {
        backend->declined(arguments.shape);
      }
    }
  }
  if constexpr (std::same_as<Arguments, kernel::attention_sinks_backward<bfloat16>>) {
    auto const* const backend = stream.of().attention();
    if (backend != nullptr && backend->supports(arguments.shape)) {
      auto in_its_order = arguments;
      in_its_order.rows_together = backend->rows_together(arguments.shape);
      detail::kernel_entry<Arguments> const& kernel = detail::kernels;
      kernel.launch(stream, in_its_order);
      return;
    }
  }
  detail::kernel_entry<Arguments> const& kernel = detail::kernels;
  kernel.launch(stream, arguments);
}

/// The bytes that the kernel needs as `arguments.scratch`: enough for the backend and for the device's own
/// kernel, since either may compute a batch with fewer rows or shorter documents.
template <kernel_arguments Arguments>
  requires requires(Arguments const& arguments) { arguments.scratch; }
std::size_t scratch_bytes(device const& device, Arguments const& arguments) {
  std::size_t own = 0;
  if constexpr (detail::attention_arguments<Arguments>) {
    if (auto const* const backend = device.attention()) {
      own = std::max(own, backend->scratch_bytes(arguments));
    }
  }
  return own;
}

}  // namespace superoffload::cuda
