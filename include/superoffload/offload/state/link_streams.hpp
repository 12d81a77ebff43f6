// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>

namespace superoffload::offload {

/// The streams of copies between host and device, one for each direction. With several per direction, a copy
/// engine stays with one stream for as long as that has work: weights would wait for all queued state.
template <device_policy D>
struct link_streams {
  /// The device must outlive them.
  explicit link_streams(D& device) : down{device}, up{device} {}

  typename D::stream down;  ///< to the host
  typename D::stream up;    ///< to the device
};

}  // namespace superoffload::offload
