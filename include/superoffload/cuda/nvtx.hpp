// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/profile.hpp>

namespace superoffload::profile {

/// Ranges become NVTX ranges of the domain "superoffload", for Nsight Systems and Nsight Compute. While any
/// engine with this policy lives, the ranges of all engines of the process do.
struct nvtx {
  using policy_category = category::profile;  ///< see core/policy.hpp

  /// While one lives, ranges go to NVTX; it replaces any other listener.
  class session {
  public:
    session();
    session(session const&) = delete;
    session& operator=(session const&) = delete;
    ~session();
  };
};
static_assert(profile_policy<nvtx>);

}  // namespace superoffload::profile

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/cuda/impl/nvtx_inl.hpp>
#endif
