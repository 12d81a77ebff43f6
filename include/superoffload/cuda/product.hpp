// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/kernel/gemm.hpp>

#include <memory>
#include <string>

namespace superoffload::cuda::detail {

/// Matrix products of one stream through cuBLASLt: its handle, a workspace, and the algorithm for each kind
/// of product. Large ones are measured at their first use and remembered by the device's `tuning`; only
/// algorithms whose sums have a fixed order are taken. So runs with the same choices repeat bit for bit.
class products {
public:
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

  /// `name` of the stream is for messages.
  products(device& device, CUstream_st* stream, std::string name);
  ~products();

  /// Queues the product, unless cuBLASLt cannot do it as asked: then false, and nothing was done.
  template <element T, element Out>
  bool run(CUstream_st* stream, kernel::gemm<T, Out> const& product);

private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace superoffload::cuda::detail
