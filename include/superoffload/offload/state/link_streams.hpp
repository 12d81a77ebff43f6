// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>

namespace superoffload::offload {

/// What is copied between host and device, in one stream each way. With several, a copy engine that has begun
/// with one stays with it for as long as it finds work there: weights would wait until state that is always
/// queued a few buckets ahead has come to its end.
template <device_policy D>
struct link_streams {
  explicit link_streams(D& device) : down{device}, up{device} {}

  typename D::stream down;  ///< to the host
  typename D::stream up;    ///< to the device
};

}  // namespace superoffload::offload
