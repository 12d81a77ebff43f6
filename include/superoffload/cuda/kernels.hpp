// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/stream.hpp>
#include <superoffload/kernel/catalogue.hpp>

namespace superoffload::cuda {

namespace detail {

template <class Arguments>
struct kernel_entry {
  void (*launch)(stream&, Arguments const&);
};

using kernel_table = kernel::table<kernel_entry>;

/// Defined in kernels.cu, the one source that nvcc compiles.
extern kernel_table const kernels;

}  // namespace detail

/// Has the device a kernel for these arguments?
template <class Arguments>
concept kernel_arguments = kernel::in_table<Arguments, detail::kernel_entry>;

/// Queues the kernel on `stream`. What the arguments point to must live until it has run. Empty matrices and
/// arrays are allowed. Throws `error` (device) when the launch is refused.
template <kernel_arguments Arguments>
void launch(stream& stream, Arguments const& arguments) {
  detail::kernel_entry<Arguments> const& kernel = detail::kernels;
  kernel.launch(stream, arguments);
}

}  // namespace superoffload::cuda
