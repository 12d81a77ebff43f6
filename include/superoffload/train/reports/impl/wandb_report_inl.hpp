// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/host_name.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/version.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/io/protobuf.hpp>
#include <superoffload/train/reports/report_choice.hpp>
#include <superoffload/train/reports/wandb_report.hpp>

#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <string_view>

namespace superoffload::train {
namespace detail {

namespace pb = io::protobuf;

/// Numbers of fields of wandb_internal.proto.
namespace wandb {
enum record : unsigned { history = 2, summary = 3, metric = 12, run = 17, exit = 18, header = 21 };
inline constexpr unsigned value_json = 16;
}  // namespace wandb

SUPEROFFLOAD_INLINE double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The step of a record of history; none for other records.
SUPEROFFLOAD_INLINE std::optional<std::int64_t> step_of_wandb_record(std::string_view record) {
  pb::reader fields{record};
  while (auto const f = fields.next()) {
    if (f->number != wandb::history) {
      continue;
    }
    pb::reader items{f->bytes};
    while (auto const item = items.next()) {
      pb::reader parts{item->bytes};
      std::string_view key, value;
      while (auto const part = parts.next()) {
        (part->number == wandb::value_json ? value : key) = part->bytes;
      }
      std::int64_t step = -1;
      if (item->number == 1 && key == "step") {
        std::from_chars(value.data(), value.data() + value.size(), step);
        return step;
      }
    }
  }
  return std::nullopt;
}
SUPEROFFLOAD_INLINE bool is_wandb_exit(std::string_view record) {
  pb::reader fields{record};
  while (auto const f = fields.next()) {
    if (f->number == wandb::exit) {
      return true;
    }
  }
  return false;
}

/// The log of a run in `directory`: that of an earlier session, or a new one, named as wandb names them.
SUPEROFFLOAD_INLINE std::filesystem::path wandb_file(std::filesystem::path const& directory,
                                                     std::string const& id) {
  for (auto const& name : io::list_directory(directory)) {
    if (name.starts_with(offline_run_prefix) && name.ends_with("-" + id)) {
      return directory / name / concat("run-", id, ".wandb");
    }
  }
  auto const now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char when[32];
  std::strftime(when, sizeof when, "%Y%m%d_%H%M%S", &parts);
  return directory / concat(offline_run_prefix, when, "-", id) / concat("run-", id, ".wandb");
}

SUPEROFFLOAD_INLINE std::string json_text(std::string const& text) {
  return io::json(text).dump(-1, ' ', true, io::json::error_handler_t::replace);
}

SUPEROFFLOAD_INLINE std::string wandb_run_record(run_description const& run, std::string const& id,
                                                 double began) {
  auto const setting = [](std::string const& name, std::string const& value) {
    return pb::bytes_field(1, pb::bytes_field(1, name) + pb::bytes_field(wandb::value_json, value));
  };
  std::string config;
  for (auto const& [name, value] : run.settings) {
    double number = 0.0;
    auto const [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
    bool const is_number =
        failure == std::errc{} && end == value.data() + value.size() && std::isfinite(number);
    config += setting(name.starts_with("--") ? name.substr(2) : name,
                      is_number ? concat(number) : json_text(value));
  }
  for (auto const& [name, value] : run.machine) { config += setting("machine " + name, json_text(value)); }
  config += setting("plan", json_text(run.plan_text));
  std::string tags;
  for (auto const& tag : run.wandb.tags) { tags += pb::bytes_field(10, printable(tag)); }
  auto const seconds = static_cast<std::int64_t>(began);
  auto const nanoseconds = static_cast<std::int64_t>(1e9 * (began - static_cast<double>(seconds)));
  return pb::bytes_field(
      wandb::run, pb::bytes_field(1, id) + pb::bytes_field(3, printable(run.wandb.project)) +
                      pb::bytes_field(4, config) +
                      pb::bytes_field(8, printable(run.wandb.run.empty() ? run.title : run.wandb.run)) +
                      tags + pb::bytes_field(13, printable(host_name())) +
                      pb::bytes_field(17, pb::integer_field(1, seconds) + pb::integer_field(2, nanoseconds)));
}

}  // namespace detail

SUPEROFFLOAD_INLINE wandb_report::wandb_report(std::filesystem::path const& directory, std::int64_t last_step,
                                               run_description const& run)
    : gemm_rate_{run.gemm_rate}, began_{detail::seconds_since_1970()} {
  namespace pb = io::protobuf;
  auto const id = run.identity.substr(0, 16);
  log_.emplace(detail::wandb_file(directory, id), [&](std::string_view record) {
    auto const step = detail::step_of_wandb_record(record);
    lines_ += step && *step <= last_step ? 1 : 0;
    return step ? *step <= last_step : !detail::is_wandb_exit(record);
  });
  if (log_->records() > 0) {
    return;
  }
  auto const version =
      concat(SUPEROFFLOAD_VERSION_MAJOR, '.', SUPEROFFLOAD_VERSION_MINOR, '.', SUPEROFFLOAD_VERSION_PATCH);
  log_->append(pb::bytes_field(detail::wandb::header,
                               pb::bytes_field(1, pb::bytes_field(1, "superoffload " + version))));
  log_->append(detail::wandb_run_record(run, id, began_));
  // Charts are over "step": a step and its evaluation are two lines of the history.
  log_->append(pb::bytes_field(detail::wandb::metric, pb::bytes_field(2, "*") + pb::bytes_field(4, "step") +
                                                          pb::bytes_field(6, pb::integer_field(1, 1))));
  write(0, scalars_of(run.plan));
}

SUPEROFFLOAD_INLINE void wandb_report::step(step_metrics const& m) {
  write(m.step, scalars_of(m, gemm_rate_));
}
SUPEROFFLOAD_INLINE void wandb_report::evaluation(evaluation_metrics const& m) {
  write(m.step, scalars_of(m));
}

SUPEROFFLOAD_INLINE void wandb_report::write(std::int64_t step, scalars const& values) {
  namespace pb = io::protobuf;
  auto const now = detail::seconds_since_1970();
  std::string history, summary;
  auto const add = [&](std::string_view name, std::string const& json) {
    auto const item =
        pb::bytes_field(1, pb::bytes_field(2, name) + pb::bytes_field(detail::wandb::value_json, json));
    history += item;
    summary += item;
  };
  add("step", concat(step));
  for (auto const& [name, value] : values) {
    add(name, std::isfinite(value) ? concat(value)
              : std::isnan(value)  ? "NaN"
              : value > 0          ? "Infinity"
                                   : "-Infinity");
  }
  add("_timestamp", concat(now));
  add("_runtime", concat(now - began_));
  add("_step", concat(lines_));
  history += pb::bytes_field(2, pb::integer_field(1, lines_));
  ++lines_;
  log_->append(pb::bytes_field(detail::wandb::summary, summary));
  log_->append(pb::bytes_field(detail::wandb::history, history));
}

SUPEROFFLOAD_INLINE void wandb_report::finish() {
  log_->append(io::protobuf::bytes_field(detail::wandb::exit, ""));
}

}  // namespace superoffload::train
