// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/log.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace superoffload::test {

/// Collects the lines that are logged during its life.
struct collected {
  std::vector<std::string> lines;
  log_sink before;

  explicit collected(bool live = false)
      : before{set_log_sink({[](void* self, log_level level, std::string_view line) noexcept {
                               static_cast<collected*>(self)->lines.push_back(
                                   concat(static_cast<int>(level), " ", line));
                             },
                             this, live})} {}
  collected(collected const&) = delete;
  collected& operator=(collected const&) = delete;
  ~collected() { set_log_sink(before); }
};

}  // namespace superoffload::test
