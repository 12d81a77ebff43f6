// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/cores.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <sched.h>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace superoffload::cpu {
namespace detail {

/// Whole cores in a quota of `quota` every `period` microseconds.
SUPEROFFLOAD_INLINE int cores_of(std::int64_t quota, std::int64_t period) {
  if (quota <= 0 || period <= 0) {
    return std::numeric_limits<int>::max();
  }
  auto const cores = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<int>(std::min<std::int64_t>(cores, std::numeric_limits<int>::max()));
}

SUPEROFFLOAD_INLINE std::int64_t take_number(std::string_view& text) {
  std::int64_t number = -1;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) {
    return -1;
  }
  text.remove_prefix(std::min<std::size_t>(static_cast<std::size_t>(end - text.data()) + 1, text.size()));
  return number;
}

}  // namespace detail

SUPEROFFLOAD_INLINE int cores_by_quota(std::string_view groups, std::string const& mount) {
  int cores = std::numeric_limits<int>::max();
  while (!groups.empty()) {
    auto const line = groups.substr(0, groups.find('\n'));  // number:controllers:/path
    groups.remove_prefix(std::min(line.size() + 1, groups.size()));
    auto const first = line.find(':');
    auto const second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) {
      continue;
    }
    auto const controllers = "," + std::string{line.substr(first + 1, second - first - 1)} + ",";
    bool const unified = controllers == ",,";
    if (!unified && controllers.find(",cpu,") == std::string::npos) {
      continue;
    }
    auto const top = mount + (unified ? "" : "/cpu");
    for (std::string path{line.substr(second + 1)};; path.resize(path.rfind('/'))) {
      auto const folder = top + path;
      if (unified) {
        auto const text = detail::text_in(folder + "/cpu.max");
        std::string_view rest{text};
        auto const quota = detail::take_number(rest);  // "max" is no number
        cores = std::min(cores, detail::cores_of(quota, detail::take_number(rest)));
      } else {
        auto const quota = detail::text_in(folder + "/cpu.cfs_quota_us");
        auto const period = detail::text_in(folder + "/cpu.cfs_period_us");
        std::string_view quota_text{quota};
        std::string_view period_text{period};
        cores = std::min(cores,
                         detail::cores_of(detail::take_number(quota_text), detail::take_number(period_text)));
      }
      if (path.find('/') == std::string::npos) {
        break;
      }
    }
  }
  return cores;
}

SUPEROFFLOAD_INLINE int usable_cores() {
  cpu_set_t cores[8];  // 8192 processors; one cpu_set_t would fail on larger hosts
  int const allowed = sched_getaffinity(0, sizeof cores, cores) == 0
                          ? CPU_COUNT_S(sizeof cores, cores)
                          : static_cast<int>(std::thread::hardware_concurrency());
  return std::max(1, std::min(allowed, cores_by_quota(detail::text_in("/proc/self/cgroup"))));
}

SUPEROFFLOAD_INLINE int optimizer_threads(double share, int cores) {
  return std::clamp(static_cast<int>(share * static_cast<double>(cores) + 1e-9), 1, std::max(1, cores - 1));
}

SUPEROFFLOAD_INLINE int default_threads() {
  char const* const variable = std::getenv("SUPEROFFLOAD_NUM_THREADS");
  if (variable == nullptr) {
    return usable_cores();
  }
  std::string_view const text{variable};
  int threads = 0;
  auto const [end, status] = std::from_chars(text.data(), text.data() + text.size(), threads);
  expect(status == std::errc{} && end == text.data() + text.size() && threads >= 1 && threads <= 4096,
         exit_code::bad_input, "SUPEROFFLOAD_NUM_THREADS is '", printable(text),
         "': expected a whole number from 1 to 4096; unset it to use every core");
  return threads;
}

}  // namespace superoffload::cpu
