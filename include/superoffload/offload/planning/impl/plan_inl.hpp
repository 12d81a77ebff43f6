// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/offload/planning/plan.hpp>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace superoffload::offload {
namespace detail {

[[gnu::format(printf, 1, 2)]] SUPEROFFLOAD_INLINE std::string formatted(char const* format, ...) {
  char text[320];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string describe(plan const& p) {
  // In units that show a small model's memory too.
  bool const large = p.on_device.total() + p.on_host.total() >= (std::size_t{1} << 30);
  auto const in_units = [unit = large ? 30 : 20](std::size_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(std::size_t{1} << unit);
  };
  std::string text = detail::formatted("  %-18s %10s %10s\n", large ? "GiB" : "MiB", "device", "host");
  auto const row = [&](char const* name, std::size_t device, std::size_t host) {
    if (device + host > 0) {
      text += detail::formatted("  %-18s %10.2f %10.2f\n", name, in_units(device), in_units(host));
    }
  };
  row("weights", p.on_device.weights, p.on_host.weights);
  row("gradients", p.on_device.gradients, p.on_host.gradients);
  row("optimizer state", p.on_device.state, p.on_host.state);
  row("slots, kept grads", p.on_device.pinned_buffers, p.on_host.pinned_buffers);
  row("staging", p.on_device.staging_buffers, p.on_host.staging_buffers);
  row("activations", p.on_device.activations, p.on_host.activations);
  row("workspaces", p.on_device.workspaces, p.on_host.workspaces);
  row("in all", p.on_device.total(), p.on_host.total());
  row("available", p.device_available, p.host_available);
  text += detail::formatted(
      "  optimizer state: %.1f %% on the device, %.1f %% updated by the CPU, %.1f %% streamed\n",
      100.0 * p.resident, 100.0 * p.host, 100.0 * p.device_updated);
  if (p.host > 0.0) {
    text +=
        detail::formatted("  CPU Adam: %d thread%s, %s\n", p.state.workers, p.state.workers == 1 ? "" : "s",
                          p.state.immediate    ? "as gradients come"
                          : p.state.speculates ? "before the check where it may"
                                               : "after the check");
  }
  if (!p.offloaded_weights.empty()) {
    auto const units = std::count_if(p.offloaded_weights.begin(), p.offloaded_weights.end(),
                                     [](std::int64_t elements) { return elements > 0; });
    text += detail::formatted("  weights of %td units live on the host, %d at a time on the device\n", units,
                              p.state.offloaded.weight_buffers);
  }
  if (p.on_host.gradients > 0) {
    text += detail::formatted(
        "  sums of the gradients of %td units live on the host, %d at a time on the device\n",
        p.sums_on_host(), p.state.offloaded.gradient_buffers);
  } else if (auto const& leave = p.state.offloaded.gradients; p.state.offloaded.any_gradient()) {
    text +=
        detail::formatted("  gradients of %td units leave the device as they come, %d at a time there\n",
                          std::count(leave.begin(), leave.end(), true), p.state.offloaded.gradient_buffers);
  }
  if (p.whole_at_once() > zero::gather_buffers{}.weights) {
    text += detail::formatted("  weights of %d of %d units stay whole from forward to backward\n",
                              p.whole_at_once(), p.gathered_units);
  }
  text += concat("  recompute: ", p.recompute, "\n");
  if (!p.fits) {
    return text + "  does not fit: " + p.refusal + "\n";
  }
  text += detail::formatted(
      "  step: %.1f ms expected (%.1f ms its busiest part), %.0f tokens/s, %.3g model TFLOPS\n",
      1e3 * p.step_time, 1e3 * p.bound, p.tokens_per_second, 1e-12 * p.model_flops_per_second);
  auto const share = [&](lane l) { return 100.0 * p.step.busy[static_cast<std::size_t>(l)]; };
  text += detail::formatted("  busy: device %.0f %%, CPU Adam %.0f %%, link down %.0f %%, up %.0f %%\n",
                            share(lane::compute) + share(lane::device_adam), share(lane::cpu),
                            share(lane::down), share(lane::up));
  if (p.exchanged > 0.0) {
    text +=
        detail::formatted("  exchanges: %.2f %s a step and rank, %.1f ms, of which %.1f ms are waited for\n",
                          in_units(static_cast<std::size_t>(p.exchanged)), large ? "GiB" : "MiB",
                          1e3 * p.collective_time, 1e3 * p.step.waited_for_ranks);
  }
  return text;
}

SUPEROFFLOAD_INLINE void expect_fits(plan const& p) { expect(p.fits, exit_code::cannot_fit, p.refusal); }

}  // namespace superoffload::offload
