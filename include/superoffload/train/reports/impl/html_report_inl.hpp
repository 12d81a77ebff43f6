// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/version.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/train/reports/html_report.hpp>
#include <superoffload/train/reports/impl/html_page_inl.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <string_view>
#include <utility>

namespace superoffload::train {
namespace detail {

using ordered = nlohmann::ordered_json;

inline constexpr auto rewrite_after = std::chrono::seconds{5};

/// What a box of a timeline is.
struct page_span {
  int row;
  double begin, end;  ///< s since the step began
  std::string kind, unit;
};

inline constexpr std::array<char const*, 6> page_rows{"device",         "device Adam", "device to host",
                                                      "host to device", "CPU Adam",    "between ranks"};
/// By offload::activity: the names that recordings have for it.
inline constexpr std::array<char const*, offload::activities> page_kinds{"forward",
                                                                         "backward",
                                                                         "update",
                                                                         "gradient",
                                                                         "weights",
                                                                         "weights",
                                                                         "sum",
                                                                         "sum",
                                                                         "state",
                                                                         "state",
                                                                         "weights",
                                                                         "gradient",
                                                                         "activations",
                                                                         "activations",
                                                                         "update",
                                                                         "speculative update",
                                                                         "commit",
                                                                         "commit and speculative update",
                                                                         "commit and update"};

/// Boxes that would not be told apart are joined: a step may have thousands.
SUPEROFFLOAD_INLINE ordered timeline_json(std::vector<page_span> spans, double seconds) {
  std::stable_sort(spans.begin(), spans.end(), [](page_span const& a, page_span const& b) {
    return a.row != b.row ? a.row < b.row : a.begin < b.begin;
  });
  std::vector<page_span> joined;
  for (auto& s : spans) {
    if (!joined.empty() && joined.back().row == s.row && joined.back().kind == s.kind &&
        s.begin - joined.back().end < seconds / 2000.0 && s.end - joined.back().begin < seconds / 200.0) {
      joined.back().end = std::max(joined.back().end, s.end);
      if (joined.back().unit != s.unit) {
        joined.back().unit += joined.back().unit.ends_with("...") ? "" : " ...";
      }
    } else {
      joined.push_back(std::move(s));
    }
  }
  auto rows = ordered::array();
  for (auto const name : page_rows) { rows.push_back({{"name", name}, {"spans", ordered::array()}}); }
  for (auto const& s : joined) {
    auto const microseconds = [](double t) { return std::round(1e6 * t) / 1e3; };  // in ms
    rows[static_cast<std::size_t>(s.row)]["spans"].push_back(
        {microseconds(s.begin), microseconds(s.end), s.kind, s.unit});
  }
  return {{"ms", 1e3 * seconds}, {"rows", std::move(rows)}};
}

SUPEROFFLOAD_INLINE ordered planned_json(run_description const& run) {
  auto const& step = run.plan.step;
  std::vector<page_span> spans;
  double seconds = step.step_time;
  for (auto const& i : step.intervals) {
    auto const unit = static_cast<std::size_t>(i.unit);
    spans.push_back({static_cast<int>(i.where), i.begin, i.end, page_kinds[static_cast<std::size_t>(i.what)],
                     i.unit >= 0 && unit < run.units.size() ? run.units[unit] : std::string{}});
    seconds = std::max(seconds, i.end);
  }
  return timeline_json(std::move(spans), seconds);
}

/// The row of a track; -1: it is not drawn. Of the threads of CPU Adam, the first is.
SUPEROFFLOAD_INLINE std::vector<int> rows_of(std::vector<track> const& tracks) {
  std::vector<int> rows;
  bool first_thread = true;
  for (auto const& t : tracks) {
    bool const drawn = t.of != resource::cpu_adam || std::exchange(first_thread, false);
    rows.push_back(!drawn ? -1 : t.of == resource::waiting ? 0 : static_cast<int>(t.of));
  }
  return rows;
}

SUPEROFFLOAD_INLINE ordered measured_json(std::int64_t step, recording const& seen,
                                          std::vector<track> const& tracks,
                                          std::vector<std::string> const& units) {
  auto const rows = rows_of(tracks);
  std::vector<page_span> spans;
  auto const add = [&](span const& s) {
    auto const row = rows[static_cast<std::size_t>(s.track)];
    auto const begin = std::max(s.begin, seen.begin), end = std::min(s.end, seen.end);
    if (row < 0 || begin >= end) {
      return;
    }
    std::string_view kind = s.what;
    for (std::string_view const last : {" of ", " for "}) {
      if (kind.ends_with(last)) {
        kind.remove_suffix(last.size());
      }
    }
    spans.push_back({row, begin - seen.begin, end - seen.begin, std::string{kind},
                     units[static_cast<std::size_t>(s.unit)]});
  };
  std::for_each(seen.spans.begin(), seen.spans.end(), add);
  std::for_each(seen.going_on.begin(), seen.going_on.end(), add);
  auto json = timeline_json(std::move(spans), seen.end - seen.begin);
  json["step"] = step;
  return json;
}

SUPEROFFLOAD_INLINE ordered memory_json(offload::tier_bytes const& t, std::size_t available,
                                        std::size_t peak) {
  return {{"kinds",
           {{"weights", t.weights},
            {"gradients", t.gradients},
            {"optimizer state", t.state},
            {"pinned buffers", t.pinned_buffers},
            {"staging buffers", t.staging_buffers},
            {"activations", t.activations},
            {"workspaces", t.workspaces}}},
          {"total", t.total()},
          {"available", available},
          {"peak", peak}};
}

/// Columns of points; what is not finite is null, and a curve without any value is left out.
SUPEROFFLOAD_INLINE ordered points_json(std::vector<history::point> const& points) {
  static constexpr std::array<char const*, history::curves> names{
      "loss", "grad_norm", "lr", "tokens_per_second", "step_time_ms", "model_tflops", "hit_rate"};
  auto steps = ordered::array();
  for (auto const& p : points) { steps.push_back(p.step); }
  ordered json{{"step", std::move(steps)}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto column = ordered::array();
    bool any = false;
    for (auto const& p : points) {
      any = any || std::isfinite(p.means[i]);
      column.push_back(std::isfinite(p.means[i]) ? ordered(p.means[i]) : ordered(nullptr));
    }
    if (any) {
      json[names[i]] = std::move(column);
    }
  }
  return json;
}

SUPEROFFLOAD_INLINE ordered pairs_json(named_values const& values) {
  auto json = ordered::array();
  for (auto const& [name, value] : values) { json.push_back({name, value}); }
  return json;
}

/// JSON inside of a script element, which must not end it.
SUPEROFFLOAD_INLINE std::string for_script(ordered const& json) {
  std::string out;
  for (char const c : json.dump(-1, ' ', true, ordered::error_handler_t::replace)) {
    out += c == '<' ? std::string{"\\u003c"} : std::string{c};
  }
  return out;
}

SUPEROFFLOAD_INLINE std::string utc_now() {
  auto const now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  return text;
}

}  // namespace detail

SUPEROFFLOAD_INLINE html_report::html_report(std::filesystem::path page, std::filesystem::path const& lines,
                                             run_description run)
    : page_{std::move(page)}, run_{std::move(run)} {
  history_.read(lines);
  write("running");
}

SUPEROFFLOAD_INLINE void html_report::step(step_metrics const& m) {
  last_ = m;
  history_.step(m);
  if (std::chrono::steady_clock::now() - written_ >= detail::rewrite_after) {
    write("running");
  }
}

SUPEROFFLOAD_INLINE void html_report::evaluation(evaluation_metrics const& m) { history_.evaluation(m); }

SUPEROFFLOAD_INLINE void html_report::timeline(std::int64_t step, recording const& seen,
                                               std::vector<track> const& tracks) {
  measured_ = detail::measured_json(step, seen, tracks, run_.units).dump();
}

SUPEROFFLOAD_INLINE void html_report::end(std::string const& how) { write(how); }

SUPEROFFLOAD_INLINE void html_report::write(std::string const& state) {
  using seconds = std::chrono::duration<double>;
  auto const points = history_.points();
  auto evaluations = detail::ordered::array();
  for (auto const& e : history_.evaluations()) {
    evaluations.push_back(
        {e.step, std::isfinite(e.loss) ? detail::ordered(e.loss) : detail::ordered(nullptr)});
  }
  bool const has_steps = last_.step > 0;
  auto const mfu = has_steps && run_.gemm_rate > 0.0
                       ? detail::ordered(1e12 * last_.model_tflops / run_.gemm_rate)
                       : detail::ordered(nullptr);
  detail::ordered const data{
      {"title", run_.title},
      {"version",
       concat(SUPEROFFLOAD_VERSION_MAJOR, '.', SUPEROFFLOAD_VERSION_MINOR, '.', SUPEROFFLOAD_VERSION_PATCH)},
      {"state", state},
      {"written", detail::utc_now()},
      {"step", points.empty() ? 0 : points.back().step},
      {"total_steps", run_.total_steps},
      {"stride", history_.stride()},
      {"elapsed_s", seconds(std::chrono::steady_clock::now() - begin_).count()},
      {"mfu", mfu},
      {"points", detail::points_json(points)},
      {"evaluations", std::move(evaluations)},
      {"device_memory",
       detail::memory_json(run_.plan.on_device, run_.plan.device_available, last_.device_bytes)},
      {"host_memory", detail::memory_json(run_.plan.on_host, run_.plan.host_available, last_.host_bytes)},
      {"planned", detail::planned_json(run_)},
      {"measured", measured_.empty() ? detail::ordered(nullptr) : detail::ordered::parse(measured_)},
      {"settings", detail::pairs_json(run_.settings)},
      {"machine", detail::pairs_json(run_.machine)},
      {"plan", run_.plan_text},
  };
  io::replace_file(page_,
                   concat(detail::page_before_data, detail::for_script(data), detail::page_after_data));
  written_ = std::chrono::steady_clock::now();
}

}  // namespace superoffload::train
