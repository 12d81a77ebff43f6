// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/line_reader.hpp>
#include <superoffload/train/run/metrics.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <sys/resource.h>
#include <system_error>
#include <vector>

namespace superoffload::train {
namespace detail {

/// A JSON object, written member by member.
class object {
public:
  template <class Value>
  object& member(std::string_view name, Value value) {
    add(name);
    if constexpr (std::is_floating_point_v<Value>) {
      text_ += std::isfinite(value) ? concat(value) : "null";
    } else {
      text_ += concat(value);
    }
    return *this;
  }
  object& member(std::string_view name, std::string_view text) {
    add(name);
    text_ += concat('"', printable(text, 64), '"');
    return *this;
  }
  object& member(std::string_view name, object const& value) {
    add(name);
    text_ += value.done();
    return *this;
  }
  [[nodiscard]] std::string done() const { return (text_.empty() ? "{" : text_) + "}"; }

private:
  void add(std::string_view name) {
    text_ += text_.empty() ? "{\"" : ", \"";
    text_ += name;
    text_ += "\": ";
  }

  std::string text_;
};

SUPEROFFLOAD_INLINE object to_object(breakdown const& b, std::vector<std::string> const& units) {
  auto const share = [&](resource r) { return b.busy[static_cast<std::size_t>(r)]; };
  object waits;
  for (std::size_t i = 0; i < b.waits.size(); ++i) { waits.member(units[i], 1e3 * b.waits[i]); }
  return object{}
      .member("busy", object{}
                          .member("device", share(resource::device))
                          .member("device_adam", share(resource::device_adam))
                          .member("link_down", share(resource::link_down))
                          .member("link_up", share(resource::link_up))
                          .member("cpu_adam", share(resource::cpu_adam))
                          .member("collectives", share(resource::collective)))
      .member("waited_ms", 1e3 * b.waited())
      .member("waits_ms", waits);
}

SUPEROFFLOAD_INLINE object line_of(std::int64_t step, std::string_view run) {
  object line;
  line.member("step", step);
  if (!run.empty()) {
    line.member("run", run);
  }
  return line;
}

inline constexpr std::string_view line_start = "{\"step\": ";

/// The step of a line of metrics; -1 for any other line.
SUPEROFFLOAD_INLINE std::int64_t step_of(std::string_view line) {
  std::int64_t step = -1;
  if (line.starts_with(line_start)) {
    std::from_chars(line.data() + line_start.size(), line.data() + line.size(), step);
  }
  return step;
}

/// Follows the step, so that it is found without a look at the rest. Empty: the line is of no run.
SUPEROFFLOAD_INLINE std::string_view run_of(std::string_view line) {
  constexpr std::string_view name = ", \"run\": \"";
  auto const behind_step = line.find_first_not_of("0123456789", line_start.size());
  if (behind_step == line.npos || !line.substr(behind_step).starts_with(name)) {
    return {};
  }
  auto const run = line.substr(behind_step + name.size());
  return run.substr(0, run.find('"'));
}

/// Whether a power loss may have torn a line of metrics to this: parts of what was appended are zeros then.
SUPEROFFLOAD_INLINE bool is_torn(std::string_view line) {
  auto const zero = line.find('\0');
  return zero != line.npos && line_start.starts_with(line.substr(0, std::min(zero, line_start.size()))) &&
         std::ranges::all_of(line, [](char c) { return c == '\0' || (c >= ' ' && c <= '~'); });
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string to_json(step_metrics const& m, std::string_view run,
                                        std::vector<std::string> const& units) {
  auto json = detail::line_of(m.step, run);
  json.member("loss", m.loss)
      .member("grad_norm", m.grad_norm)
      .member("lr", m.lr)
      .member("epoch", m.epoch)
      .member("step_time_ms", m.step_time_ms)
      .member("tokens_per_second", m.tokens_per_second)
      .member("label_tokens", m.label_tokens)
      .member("tokens", m.tokens)
      .member("model_tflops", m.model_tflops)
      .member("hardware_tflops", m.hardware_tflops)
      .member("host_bytes", m.host_bytes)
      .member("device_bytes", m.device_bytes)
      .member("skipped", m.skipped);
  if (m.deepspeed_tflops) {
    json.member("deepspeed_tflops", *m.deepspeed_tflops);
  }
  if (m.buckets) {
    json.member("buckets", detail::object{}
                               .member("speculated", m.buckets->speculated)
                               .member("committed", m.buckets->committed)
                               .member("updated", m.buckets->updated)
                               .member("resent", m.buckets->resent))
        .member("hit_rate", m.hit_rate);
  }
  if (m.breakdown) {
    json.member("breakdown", detail::to_object(*m.breakdown, units));
  }
  return json.done();
}

SUPEROFFLOAD_INLINE std::string to_json(evaluation_metrics const& m, std::string_view run) {
  return detail::line_of(m.step, run)
      .member("eval_loss", m.loss)
      .member("eval_label_tokens", m.label_tokens)
      .done();
}

SUPEROFFLOAD_INLINE bool has_content(std::filesystem::path const& file) {
  io::expect_replaceable_file(file);
  std::error_code failure;
  auto const bytes = std::filesystem::file_size(file, failure);
  return !failure && bytes > 0;
}

SUPEROFFLOAD_INLINE metrics_file::metrics_file(metrics_target const& target) {
  auto const& file = target.file;
  std::string kept;
  bool all = true;
  if (has_content(file)) {
    io::line_reader earlier{file};
    while (auto const line = earlier.next()) {
      if (detail::is_torn(*line)) {
        all = false;
        continue;
      }
      auto const step = detail::step_of(*line);
      bool const whole = earlier.ended() && line->ends_with('}');  // a kill may have cut the last line
      expect(line->starts_with(detail::line_start.substr(0, line->size())) && (step >= 0 || !whole),
             exit_code::bad_input, io::shown(file),
             ": is no file of metrics, expected lines that begin with ", detail::line_start,
             "; write them to another file");
      auto const run = detail::run_of(*line);
      bool const own = run.empty() || run == target.run;
      if (whole && (own ? step <= target.last_step : target.keeps_other_runs)) {
        kept += *line + "\n";
      } else {
        all = false;
      }
    }
  }
  if (!all) {
    io::replace_file(file, kept);
  }
  lines_.emplace(file);
}

SUPEROFFLOAD_INLINE void metrics_file::write(std::string const& line) { lines_->append(line + "\n"); }

SUPEROFFLOAD_INLINE std::size_t peak_resident_bytes() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

}  // namespace superoffload::train
