// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cpu/stream.hpp>
#include <superoffload/kernel/catalogue.hpp>

#include <cstddef>
#include <cstdint>

namespace superoffload::cpu {

class device;

namespace detail {

/// A kernel compiled for one instruction set. Work is cut into items by the arguments alone, so that results
/// do not depend on the number of threads.
template <class Arguments>
struct kernel_entry {
  std::int64_t (*items)(Arguments const&);
  void (*run)(Arguments const&, std::int64_t begin, std::int64_t end);
};

/// The kernel of the active instruction set.
#ifdef SUPEROFFLOAD_COMPILED
using kernel_table = kernel::table<kernel_entry, kernel::host_catalogue>;
kernel_table const& active_kernels();
template <class Arguments>
kernel_entry<Arguments> const& active_kernel() {
  return active_kernels();
}
#else
// Header-only, a kernel that nothing launches is not compiled.
template <class Arguments>
kernel_entry<Arguments> const& active_kernel();
#endif

}  // namespace detail

/// Does the device have a kernel for these arguments?
template <class Arguments>
concept kernel_arguments = kernel::in_table<Arguments, detail::kernel_entry, kernel::host_catalogue>;

/// Queues the kernel on `stream`; it runs on the stream's threads. What the arguments point to must live
/// until it has run. Empty matrices and arrays are allowed.
template <kernel_arguments Arguments>
void launch(stream& stream, Arguments const& arguments) {
  auto const& kernel = detail::active_kernel<Arguments>();
  stream.enqueue([arguments, &kernel, &threads = stream.threads()] {
    threads.parallel_for(kernel.items(arguments), 1,
                         [&](std::int64_t first, std::int64_t last) { kernel.run(arguments, first, last); });
  });
}

/// 0: kernels of this device keep their scratch data on the stacks of the threads.
template <kernel_arguments Arguments>
  requires requires(Arguments const& arguments) { arguments.scratch; }
constexpr std::size_t scratch_bytes(device const&, Arguments const&) noexcept {
  return 0;
}

/// Runs the kernel at once, on the calling thread alone.
template <kernel_arguments Arguments>
void run(Arguments const& arguments) {
  auto const& kernel = detail::active_kernel<Arguments>();
  kernel.run(arguments, 0, kernel.items(arguments));
}

}  // namespace superoffload::cpu

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cpu/impl/dispatch_inl.hpp>
#endif
