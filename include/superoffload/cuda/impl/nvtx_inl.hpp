// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/cuda/nvtx.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <nvtx3/nvToolsExt.h>

namespace superoffload::profile {

namespace detail {

/// Lives as long as the process: threads may still be in a range when the last session ends.
class nvtx_listener final : public listener {
public:
  void begin(std::string_view what, std::string_view of) noexcept override {
    char name[128];
    auto* at = name;
    for (auto const part : {what, of}) {
      at = std::copy_n(part.data(), std::min(part.size(), static_cast<std::size_t>(name + 127 - at)), at);
    }
    *at = '\0';
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name;
    nvtxDomainRangePushEx(domain_, &attributes);
  }
  void end() noexcept override { nvtxDomainRangePop(domain_); }

private:
  nvtxDomainHandle_t domain_ = nvtxDomainCreateA("superoffload");
};

inline std::mutex sessions_mutex;
inline int sessions = 0;

}  // namespace detail

SUPEROFFLOAD_INLINE nvtx::session::session() {
  static detail::nvtx_listener to_nvtx;
  std::lock_guard const lock{detail::sessions_mutex};
  if (detail::sessions++ == 0) {
    listen(&to_nvtx);
  }
}

SUPEROFFLOAD_INLINE nvtx::session::~session() {
  std::lock_guard const lock{detail::sessions_mutex};
  if (--detail::sessions == 0) {
    listen(nullptr);
  }
}

}  // namespace superoffload::profile
