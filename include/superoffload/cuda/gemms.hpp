// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/buffer.hpp>
#include <superoffload/kernel/float8.hpp>
#include <superoffload/kernel/gemm.hpp>

#include <memory>
#include <string>

struct CUstream_st;

namespace superoffload::cuda {

class device;

namespace detail {

/// The GEMMs of one stream through cuBLASLt: its handle, a workspace, and the algorithm for each kind of
/// GEMM. For large ones the algorithms are measured at the first use, and the device's `tuning` keeps the
/// choice. Only algorithms that sum in a fixed order are used. So runs with the same choices repeat bit for
/// bit.
class gemms {
public:
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

  /// `name` is the stream's name in messages.
  gemms(device& device, CUstream_st* stream, std::string name);
  ~gemms();

  /// Queues the GEMM. When cuBLASLt cannot run it as asked, queues nothing and returns false.
  bool run(CUstream_st* stream, kernel::gemm<bfloat16> const& g);
  bool run(CUstream_st* stream, kernel::gemm<bfloat16, float> const& g);
  bool run(CUstream_st* stream, kernel::gemm<float> const& g);
  bool run(CUstream_st* stream, kernel::gemm<double> const& g);
  bool run(CUstream_st* stream, kernel::float8_gemm<bfloat16> const& g);
  bool run(CUstream_st* stream, kernel::float8_gemm<float> const& g);

private:
  template <element T, element Out>
  bool compute(CUstream_st* stream, kernel::gemm<T, Out> const& g);
  template <element Out>
  bool compute(CUstream_st* stream, kernel::float8_gemm<Out> const& g);
  struct kind;
  struct operands;
  bool compute(CUstream_st* stream, kind const& wanted, operands const& o);

  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace detail
}  // namespace superoffload::cuda

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cuda/impl/gemms_inl.hpp>
#endif
