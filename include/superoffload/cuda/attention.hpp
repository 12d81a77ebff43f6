// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/kernel/attention.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace superoffload::cuda {

class device;
class stream;

/// Has the device, in this build, Hopper's own kernels for attention in bfloat16 of this head dimension? They
/// are faster than cuDNN's; what is there else is slower. Defined in kernels.cuh.
bool has_hopper_attention(device const& device, std::int32_t head_dim);

/// A library's attention that a device may use in place of its own kernels, in bfloat16; see
/// device::attend_with.
class attention_backend {
public:
  virtual ~attention_backend() = default;

  /// As a plan names it, with its version.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Is attention of this shape left to it? A forward and its backward have the same shape, so both are or
  /// neither.
  [[nodiscard]] virtual bool serves(kernel::attention_shape const& shape) const = 0;
  /// Is told of a forward that it does not serve, and that the device's own kernels compute.
  virtual void leaves(kernel::attention_shape const&) {}

  /// Scratch memory for any shape that it serves of as many heads, and of no more rows and no longer
  /// documents.
  [[nodiscard]] virtual std::size_t scratch_bytes(kernel::attention_forward<bfloat16> const&) const = 0;
  [[nodiscard]] virtual std::size_t scratch_bytes(kernel::attention_backward<bfloat16> const&) const = 0;

  /// How its log_sum_exp lies, as attention_sinks_backward::rows_together.
  [[nodiscard]] virtual std::int64_t rows_together(kernel::attention_shape const& shape) const = 0;

  /// Queues it. Throws `error` (device) when the library fails.
  virtual void launch(stream& on, kernel::attention_forward<bfloat16> const&) = 0;
  virtual void launch(stream& on, kernel::attention_backward<bfloat16> const&) = 0;

protected:
  attention_backend() = default;
  attention_backend(attention_backend const&) = default;
  attention_backend& operator=(attention_backend const&) = default;
};

}  // namespace superoffload::cuda
