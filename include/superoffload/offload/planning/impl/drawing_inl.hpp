// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/offload/planning/drawing.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <vector>

namespace superoffload::offload {
namespace detail {

/// By activity.
inline constexpr std::array<char const*, activities> colors{
    "#4c78a8", "#2f4b7c", "#72b7b2", "#f58518", "#54a24b", "#88d27a", "#ff9da6",
    "#d67195", "#b279a2", "#9467bd", "#17a2b8", "#0b6e7d", "#a0cbe8", "#7f9fd1",
    "#e45756", "#eeca3b", "#9d755d", "#d6a21e", "#b23a3a"};
inline constexpr std::array<char const*, lanes> lane_names{"device",         "device Adam", "device to host",
                                                           "host to device", "CPU Adam",    "between ranks"};

/// In pixels: the margins, the width of the plot, the height of a row and of a box in it.
struct picture_layout {
  double left = 130, plot = 1440, top = 76, row = 46, box = 34, right = 30;
};
inline constexpr picture_layout layout;

SUPEROFFLOAD_INLINE std::string escaped(std::string const& text) {
  std::string out;
  for (char const c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

/// \returns 1, 2 or 5 times a power of ten, so that an axis of `span` has about ten ticks.
SUPEROFFLOAD_INLINE double tick_of(double span) {
  double const rough = span / 10.0;
  double const power = std::pow(10.0, std::floor(std::log10(rough)));
  for (double const times : {1.0, 2.0, 5.0}) {
    if (rough <= times * power) {
      return times * power;
    }
  }
  return 10.0 * power;
}

/// \returns the intervals by lane and time; equal neighbours closer than a fraction of a pixel are joined.
SUPEROFFLOAD_INLINE std::vector<interval> joined(std::vector<interval> all, double seconds_per_pixel) {
  std::stable_sort(all.begin(), all.end(), [](interval const& a, interval const& b) {
    return a.where != b.where ? a.where < b.where : a.begin < b.begin;
  });
  std::vector<interval> out;
  for (auto const& i : all) {
    if (!out.empty() && out.back().where == i.where && out.back().what == i.what &&
        out.back().unit == i.unit && i.begin - out.back().end < 0.3 * seconds_per_pixel) {
      out.back().end = i.end;
    } else {
      out.push_back(i);
    }
  }
  return out;
}

/// The SVG text of one timeline, written from top to bottom.
class picture {
public:
  explicit picture(timeline const& t)
      // The last lane is for several ranks.
      : t_{t},
        several_ranks_{std::any_of(t.intervals.begin(), t.intervals.end(),
                                   [](interval const& i) { return i.where == lane::collective; })},
        lanes_{several_ranks_ ? lanes : lanes - 1},
        axis_{layout.top + layout.row * lanes_} {
    double end = 0.0;
    for (auto const& i : t.intervals) { end = std::max(end, i.end); }
    end_ = end > 0.0 ? end : 1.0;
    scale_ = layout.plot / end_;
  }

  std::string draw(std::string const& title) && {
    begin(title);
    summarize();
    draw_axis();
    draw_lanes();
    for (auto const& i : joined(t_.intervals, 1.0 / scale_)) { draw_interval(i); }
    draw_legend();
    text_ += "</svg>\n";
    return std::move(text_);
  }

private:
  [[gnu::format(printf, 2, 3)]] void add(char const* format, ...) {
    char line[480];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    text_ += line;
  }

  void begin(std::string const& title) {
    add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        layout.left + layout.plot + layout.right, axis_ + 92);
    text_ += "<text x=\"20\" y=\"30\" font-size=\"17\">" + escaped(title) + "</text>\n";
  }

  void summarize() {
    auto const busy = [&](lane l) { return 100.0 * t_.busy[static_cast<std::size_t>(l)]; };
    add("<text x=\"20\" y=\"52\" fill=\"#555\">%.1f ms a step; busy: device %.0f %%, CPU Adam %.0f %%, link "
        "down %.0f %%, up %.0f %%; buckets a step: %.1f speculated, %.1f committed, %.1f updated, %.1f "
        "resent",
        1e3 * t_.step_time, busy(lane::compute) + busy(lane::device_adam), busy(lane::cpu), busy(lane::down),
        busy(lane::up), t_.speculated, t_.committed, t_.updated, t_.resent);
    if (several_ranks_) {
      add("; between ranks %.0f %%, %.1f ms waited for", busy(lane::collective), 1e3 * t_.waited_for_ranks);
    }
    text_ += "</text>\n";
  }

  void draw_axis() {
    double const tick = tick_of(1e3 * end_);
    for (int i = 0; tick * i <= 1e3 * end_; ++i) {
      double const x = layout.left + 1e-3 * tick * i * scale_;
      add("<line x1=\"%.1f\" y1=\"%.0f\" x2=\"%.1f\" y2=\"%.0f\" stroke=\"#ddd\"/><text x=\"%.1f\" "
          "y=\"%.0f\" "
          "text-anchor=\"middle\" fill=\"#555\">%g</text>\n",
          x, layout.top - 6, x, axis_ + 4, x, axis_ + 20, tick * i);
    }
    add("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\" fill=\"#555\">ms since the gradient check</text>\n",
        layout.left + layout.plot, axis_ + 38);
  }

  void draw_lanes() {
    for (int i = 0; i < lanes_; ++i) {
      double const y = layout.top + layout.row * i;
      add("<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%s</text><rect x=\"%.0f\" y=\"%.0f\" "
          "width=\"%.0f\" "
          "height=\"%.0f\" fill=\"#f6f6f6\"/>\n",
          layout.left - 10, y + 0.5 * layout.box + 4, lane_names[static_cast<std::size_t>(i)], layout.left, y,
          layout.plot, layout.box);
    }
  }

  void draw_interval(interval const& i) {
    auto const what = static_cast<std::size_t>(i.what);
    seen_[what] = true;
    double const x = layout.left + i.begin * scale_, width = std::max(0.1, (i.end - i.begin) * scale_);
    double const y = layout.top + layout.row * static_cast<int>(i.where);
    add("<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\" fill=\"%s\"><title>%s, unit %d: %.3f to "
        "%.3f ms</title></rect>\n",
        x, y, width, layout.box, colors[what], activity_names[what], i.unit, 1e3 * i.begin, 1e3 * i.end);
    if (width > 9.0 + 7.0 * static_cast<double>(std::to_string(i.unit).size())) {
      add("<text x=\"%.2f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"white\" "
          "pointer-events=\"none\">%d</text>\n",
          x + 0.5 * width, y + 0.5 * layout.box + 4, i.unit);
    }
  }

  void draw_legend() {
    double x = layout.left;
    for (std::size_t i = 0; i < colors.size(); ++i) {
      if (seen_[i]) {
        add("<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%.0f\" "
            "y=\"%.0f\">%s</text>\n",
            x, axis_ + 54, colors[i], x + 17, axis_ + 64, activity_names[i]);
        x += 34 + 7.0 * static_cast<double>(std::string{activity_names[i]}.size());
      }
    }
  }

  timeline const& t_;
  bool several_ranks_;
  int lanes_;
  double axis_;  // y of the time axis
  double end_ = 1.0, scale_ = 1.0;
  std::array<bool, colors.size()> seen_{};
  std::string text_;
};

}  // namespace detail

SUPEROFFLOAD_INLINE std::string draw(timeline const& t, std::string const& title) {
  return detail::picture{t}.draw(title);
}

}  // namespace superoffload::offload
