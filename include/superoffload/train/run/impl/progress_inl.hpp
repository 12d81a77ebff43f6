// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/bytes_text.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/train/run/progress.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace superoffload::train {
namespace detail {

inline constexpr auto redraw_after = std::chrono::milliseconds{100};

template <class... Values>
std::string formatted(char const* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

/// "loss 2.1234"; without a sign if it is not a number; "-" if there was no label.
SUPEROFFLOAD_INLINE std::string loss_text(step_metrics const& m) {
  return m.label_tokens == 0 ? "loss -" : std::isnan(m.loss) ? "loss nan" : formatted("loss %.4f", m.loss);
}
/// Why the step changed nothing, if it did not.
SUPEROFFLOAD_INLINE char const* skip_text(step_metrics const& m) {
  return !m.skipped ? "" : m.label_tokens == 0 ? "  (skipped: no label)" : "  (skipped: gradient not finite)";
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string clock_text(double seconds) {
  auto const whole = static_cast<long long>(std::isfinite(seconds) ? std::fmax(0.0, seconds) : 0.0);
  if (whole >= 3600) {
    return detail::formatted("%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return detail::formatted("%lld:%02lld", whole / 60, whole % 60);
}

SUPEROFFLOAD_INLINE progress::progress(std::int64_t first_step, std::int64_t total_steps,
                                       std::int64_t log_interval)
    : first_step_{first_step}, total_steps_{total_steps}, log_interval_{log_interval}, live_{log_is_live()} {}

SUPEROFFLOAD_INLINE std::string progress::status_of(step_metrics const& m, std::string const& left) const {
  constexpr std::int64_t width = 16;
  auto const done = static_cast<std::size_t>(width * m.step / std::max<std::int64_t>(1, total_steps_));
  auto const bar = std::string(done, '=') + (done < width ? ">" : "");
  return concat("[", bar, std::string(width - std::min<std::size_t>(width, bar.size()), ' '), "] ", m.step,
                "/", total_steps_, "  ", detail::loss_text(m),
                detail::formatted("  %.0f tokens/s  ", m.tokens_per_second), left, " left  device ",
                bytes_text(m.device_bytes), "  host ", bytes_text(m.host_bytes), detail::skip_text(m));
}

SUPEROFFLOAD_INLINE void progress::step(step_metrics const& m) {
  auto const now = clock::now();
  if (m.step == first_step_ + 1) {  // what came before, such as an evaluation, is not of the steps
    start_ = now - std::chrono::duration_cast<clock::duration>(
                       std::chrono::duration<double, std::milli>{m.step_time_ms});
  }
  bool const last = m.step == total_steps_;
  bool const due = last || log_interval_ <= 1 || m.step % log_interval_ == 0 || m.step == first_step_ + 1;
  if (live_ ? !last && now - last_drawn_ < detail::redraw_after : !due) {
    return;
  }
  last_drawn_ = now;
  double const elapsed = std::chrono::duration<double>(now - start_).count();
  double const per_step = elapsed / static_cast<double>(m.step - first_step_);
  auto const left = clock_text(per_step * static_cast<double>(total_steps_ - m.step));
  if (live_ && !last) {
    log_line(log_level::status, status_of(m, left));
    return;
  }
  log_line(log_level::info,  // the last line stays
           detail::formatted("step %lld/%lld  %s  lr %.3g  %.0f tokens/s  %.3g TFLOPS  %s left%s",
                             static_cast<long long>(m.step), static_cast<long long>(total_steps_),
                             detail::loss_text(m).c_str(), m.lr, m.tokens_per_second, m.model_tflops,
                             left.c_str(), detail::skip_text(m)));
}

}  // namespace superoffload::train
