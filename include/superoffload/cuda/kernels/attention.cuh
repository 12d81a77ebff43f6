// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cuda/kernels/flash_attention.cuh>
#include <superoffload/cuda/kernels/generic_attention.cuh>
#include <superoffload/cuda/kernels/hopper_attention_backward.cuh>
#include <superoffload/cuda/kernels/hopper_attention_forward.cuh>

namespace superoffload::cuda::kernels {

/// By Hopper's own kernels where the device and the build have them; those know of no dropout.
template <int Dim, class Arguments>
void run_flash(stream& on, Arguments const& a) {
  if (a.shape.dropout.dropped > 0 || !hopper::run<Dim>(on, a)) {
    flash::run<Dim>(on, a);
  }
}

template <element T>
void run(stream& on, kernel::attention_forward<T> const& a) {
  auto const& s = a.shape;
  check_attention(s);
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (flash::serves(s, a.qkv, a.out)) {
      s.head_dim == 64 ? run_flash<64>(on, a) : run_flash<128>(on, a);
      return;
    }
  }
  auto const tiles = pieces_of(s.longest, attention_rows<T>);
  start(on, attention_forward_kernel<T>, s.documents * s.heads * tiles, attention_threads,
        attention_forward_bytes<T>(s.head_dim), a, static_cast<int>(tiles));
}

template <element T>
void run(stream& on, kernel::attention_backward<T> const& a) {
  auto const& s = a.shape;
  check_attention(s);
  if constexpr (std::is_same_v<T, bfloat16>) {
    if (flash::serves(s, a.qkv, a.out, a.d_out, a.d_qkv)) {
      s.head_dim == 64 ? run_flash<64>(on, a) : run_flash<128>(on, a);
      return;
    }
  }
  start(on, attention_delta_kernel<T>, pieces_of(s.rows * s.heads, attention_warps), attention_threads, 0, a);
  auto const tiles = pieces_of(s.longest, attention_rows<T>);
  start(on, attention_d_query_kernel<T>, s.documents * s.heads * tiles, attention_threads,
        attention_d_query_bytes<T>(s.head_dim), a, static_cast<int>(tiles));
  start(on, attention_d_key_kernel<T>, s.documents * s.kv_heads * tiles, attention_threads,
        attention_d_key_bytes<T>(s.head_dim), a, static_cast<int>(tiles));
}

}  // namespace superoffload::cuda::kernels
