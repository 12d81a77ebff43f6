// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/train/run/breakdown.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace superoffload::train {
namespace detail {

/// Seconds of `seen` in which at least one of the spans ran.
SUPEROFFLOAD_INLINE double covered(recording const& seen, std::vector<span> spans) {
  std::sort(spans.begin(), spans.end(), [](span const& a, span const& b) { return a.begin < b.begin; });
  double sum = 0.0, until = seen.begin;
  for (auto const& s : spans) {
    double const begin = std::max(until, s.begin);
    double const end = std::min(seen.end, s.end);
    if (begin < end) {
      sum += end - begin;
      until = end;
    }
  }
  return sum;
}

}  // namespace detail

SUPEROFFLOAD_INLINE breakdown break_down(recording const& seen, std::vector<track> const& tracks,
                                         std::size_t units) {
  breakdown b{.seconds = seen.end - seen.begin, .busy = {}, .waits = std::vector<double>(units)};
  std::array<std::vector<span>, resources> spans;
  auto const take = [&](span const& s) {
    auto const of = tracks[static_cast<std::size_t>(s.track)].of;
    spans[static_cast<std::size_t>(of)].push_back(s);
    if (of == resource::waiting) {
      b.waits[static_cast<std::size_t>(s.unit)] += seen.seconds_of(s);
    }
  };
  std::for_each(seen.spans.begin(), seen.spans.end(), take);
  std::for_each(seen.going_on.begin(), seen.going_on.end(), take);
  if (b.seconds <= 0.0) {
    return b;
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    double busy = 0.0;
    if (static_cast<resource>(i) == resource::cpu_adam) {
      auto const threads = std::count_if(tracks.begin(), tracks.end(),
                                         [](track const& t) { return t.of == resource::cpu_adam; });
      for (auto const& s : spans[i]) { busy += seen.seconds_of(s) / static_cast<double>(threads); }
    } else {
      busy = detail::covered(seen, spans[i]);
    }
    b.busy[i] = std::min(1.0, busy / b.seconds);
  }
  return b;
}

SUPEROFFLOAD_INLINE std::string describe(breakdown const& b, std::vector<std::string> const& units) {
  auto const percent = [&](resource r) {
    return concat(std::lround(100.0 * b.busy[static_cast<std::size_t>(r)]), " %");
  };
  auto const milliseconds = [](double seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f ms", 1e3 * seconds);
    return std::string{text};
  };
  auto text = concat("busy: device ", percent(resource::device), ", its Adam ",
                     percent(resource::device_adam), ", CPU Adam ", percent(resource::cpu_adam),
                     ", link down ", percent(resource::link_down), ", up ", percent(resource::link_up),
                     "; waited for weights ", milliseconds(b.waited()), " of ", milliseconds(b.seconds));
  if (b.busy[static_cast<std::size_t>(resource::collective)] > 0.0) {
    text += concat(", collectives ", percent(resource::collective));
  }
  auto const longest = std::max_element(b.waits.begin(), b.waits.end());
  if (longest != b.waits.end() && *longest > 0.0) {
    text += concat(", longest for ", units[static_cast<std::size_t>(longest - b.waits.begin())], " ",
                   milliseconds(*longest));
  }
  return text;
}

}  // namespace superoffload::train
