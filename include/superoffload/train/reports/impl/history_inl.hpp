// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/io/line_reader.hpp>
#include <superoffload/train/reports/history.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <system_error>

namespace superoffload::train {

SUPEROFFLOAD_INLINE void history::sums::add(sums const& more) {
  step = more.step;
  steps += more.steps;
  for (std::size_t i = 0; i < curves; ++i) {
    total[i] += more.total[i];
    count[i] += more.count[i];
  }
}

SUPEROFFLOAD_INLINE void history::add(sums const& one) {
  if (points_.empty() || points_.back().steps >= stride_) {
    points_.push_back(one);
  } else {
    points_.back().add(one);
  }
  if (points_.size() <= most_) {
    return;
  }
  std::vector<sums> fewer;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (i % 2 == 0) {
      fewer.push_back(points_[i]);
    } else {
      fewer.back().add(points_[i]);
    }
  }
  points_ = std::move(fewer);
  stride_ *= 2;
}

SUPEROFFLOAD_INLINE void history::step(step_metrics const& m) {
  sums one{.step = m.step, .steps = 1, .total = {}, .count = {}};
  auto const take = [&](curve c, double value) {
    if (std::isfinite(value)) {
      one.total[c] = value;
      one.count[c] = 1;
    }
  };
  take(loss, m.loss);
  take(grad_norm, m.grad_norm);
  take(lr, m.lr);
  take(tokens_per_second, m.tokens_per_second);
  take(step_time_ms, m.step_time_ms);
  take(model_tflops, m.model_tflops);
  if (m.buckets) {
    take(hit_rate, m.hit_rate);
  }
  add(one);
}

SUPEROFFLOAD_INLINE void history::evaluation(evaluation_metrics const& m) {
  if (evaluations_.size() < most_) {
    evaluations_.push_back(m);
  } else {
    evaluations_.back() = m;
  }
}

SUPEROFFLOAD_INLINE void history::read(std::filesystem::path const& lines) {
  std::error_code failure;
  if (!std::filesystem::exists(lines, failure)) {
    return;
  }
  io::line_reader file{lines};
  std::int64_t number = 0;
  while (auto const line = file.next()) {
    auto const json = io::json::parse(*line, nullptr, false);
    ++number;
    expect(json.is_object(), exit_code::bad_input, io::shown(lines), ": line ", number,
           " is no metrics of a step, expected a JSON object; remove the file, or use another --output_dir");
    auto const value = [&](char const* name) {
      auto const found = json.find(name);
      return found != json.end() && found->is_number() ? found->get<double>()
                                                       : std::numeric_limits<double>::quiet_NaN();
    };
    auto const step = json.value("step", io::json{});
    if (!step.is_number_integer()) {
      continue;
    }
    if (json.contains("eval_loss")) {
      evaluation({.step = step.get<std::int64_t>(), .loss = value("eval_loss"), .label_tokens = 0});
      continue;
    }
    step_metrics m;
    m.step = step.get<std::int64_t>();
    m.loss = value("loss");
    m.grad_norm = value("grad_norm");
    m.lr = value("lr");
    m.tokens_per_second = value("tokens_per_second");
    m.step_time_ms = value("step_time_ms");
    m.model_tflops = value("model_tflops");
    m.hit_rate = value(json.contains("acceptance") ? "acceptance" : "hit_rate");  // of earlier versions
    m.buckets.emplace();
    this->step(m);
  }
}

SUPEROFFLOAD_INLINE std::vector<history::point> history::points() const {
  std::vector<point> all;
  for (auto const& p : points_) {
    point& mean = all.emplace_back();
    mean.step = p.step;
    for (std::size_t i = 0; i < curves; ++i) {
      mean.means[i] = p.count[i] > 0 ? p.total[i] / static_cast<double>(p.count[i])
                                     : std::numeric_limits<double>::quiet_NaN();
    }
  }
  return all;
}

}  // namespace superoffload::train
