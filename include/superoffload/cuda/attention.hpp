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

/// Does this build have Hopper's own attention kernels in bfloat16 for the device and this head dimension?
/// They are faster than cuDNN's; the other kernels of this library are slower. Defined in kernels.cuh.
bool has_hopper_attention(device const& device, std::int32_t head_dim);

/// A library's attention in bfloat16, which a device may use in place of its own kernels; see
/// device::attend_with.
class attention_backend {
public:
  virtual ~attention_backend() = default;

  /// The name in a plan, with the version.
  [[nodiscard]] virtual std::string name() const = 0;

  /// Does it compute attention of this shape? A forward and its backward have the same shape, so it computes
  /// both or neither.
  [[nodiscard]] virtual bool supports(kernel::attention_shape const& shape) const = 0;
  /// Is called for a forward that it does not compute; the device's own kernels do.
  virtual void declined(kernel::attention_shape const&) {}

  /// Scratch memory that is enough for any shape it computes with these heads and no more rows or longer
  /// documents.
  [[nodiscard]] virtual std::size_t scratch_bytes(kernel::attention_forward<bfloat16> const&) const = 0;
  /// The same for a backward.
  [[nodiscard]] virtual std::size_t scratch_bytes(kernel::attention_backward<bfloat16> const&) const = 0;

  /// The layout of its log_sum_exp, as attention_sinks_backward::rows_together.
  [[nodiscard]] virtual std::int64_t rows_together(kernel::attention_shape const& shape) const = 0;

  /// Queues the kernels. Throws `error` (device) when the library fails.
  virtual void launch(stream& on, kernel::attention_forward<bfloat16> const&) = 0;
  /// The same for a backward; log_sum_exp is that of its own forward.
  virtual void launch(stream& on, kernel::attention_backward<bfloat16> const&) = 0;

protected:
  attention_backend() = default;
  attention_backend(attention_backend const&) = default;             ///< for derived classes
  attention_backend& operator=(attention_backend const&) = default;  ///< for derived classes
};

}  // namespace superoffload::cuda
