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

/// Writes a plan's description, a few lines for each sentence.
class plan_description {
public:
  explicit plan_description(plan const& p)
      // A small model's memory would round to 0 GiB.
      : p_{p}, in_gib_{p.on_device.total() + p.on_host.total() >= (std::size_t{1} << 30)} {}

  std::string write() && {
    list_memory();
    tell_of_state();
    tell_of_weights_and_gradients();
    tell_of_activations();
    text_ += concat("  recompute: ", p_.recompute, "\n");
    if (!p_.fits) {
      return text_ + "  does not fit: " + p_.refusal + "\n";
    }
    tell_of_time();
    return std::move(text_);
  }

private:
  [[nodiscard]] double in_units(std::size_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(std::size_t{1} << (in_gib_ ? 30 : 20));
  }
  [[nodiscard]] char const* memory_unit() const { return in_gib_ ? "GiB" : "MiB"; }

  void list_memory() {
    text_ += formatted("  %-18s %10s %10s\n", memory_unit(), "device", "host");
    auto const row = [&](char const* name, std::size_t device, std::size_t host) {
      if (device + host > 0) {
        text_ += formatted("  %-18s %10.2f %10.2f\n", name, in_units(device), in_units(host));
      }
    };
    row("weights", p_.on_device.weights, p_.on_host.weights);
    row("gradients", p_.on_device.gradients, p_.on_host.gradients);
    row("optimizer state", p_.on_device.state, p_.on_host.state);
    row("pinned buffers", p_.on_device.pinned_buffers, p_.on_host.pinned_buffers);
    row("staging buffers", p_.on_device.staging_buffers, p_.on_host.staging_buffers);
    row("activations", p_.on_device.activations, p_.on_host.activations);
    row("workspaces", p_.on_device.workspaces, p_.on_host.workspaces);
    row("in all", p_.on_device.total(), p_.on_host.total());
    row("available", p_.device_available, p_.host_available);
  }

  void tell_of_state() {
    text_ += formatted(
        "  optimizer state: %.1f %% on the device, %.1f %% updated by the CPU, %.1f %% streamed to the "
        "device%s\n",
        100.0 * p_.resident, 100.0 * p_.host, 100.0 * p_.device_updated,
        concat(p_.state.format == state_format::float32 ? "" : concat(", in ", name_of(p_.state.format)),
               p_.state.double_buffered ? ", twice on the host" : "")
            .c_str());
    if (p_.host > 0.0) {
      text_ += formatted("  CPU Adam: %d thread%s, %s\n", p_.state.workers, p_.state.workers == 1 ? "" : "s",
                         p_.state.immediate    ? "as gradients arrive"
                         : p_.state.speculates ? "speculative before the gradient check"
                                               : "after the gradient check");
    }
  }

  void tell_of_weights_and_gradients() {
    if (!p_.offloaded_weights.empty()) {
      auto const units = std::count_if(p_.offloaded_weights.begin(), p_.offloaded_weights.end(),
                                       [](std::int64_t elements) { return elements > 0; });
      text_ += formatted("  weights of %td units live on the host, %d at a time on the device\n", units,
                         p_.state.offloaded.weight_buffers);
    }
    if (p_.on_host.gradients > 0) {
      text_ +=
          formatted("  sums of the gradients of %td units live on the host, %d at a time on the device\n",
                    p_.sums_on_host(), p_.state.offloaded.gradient_buffers);
    } else if (auto const& leave = p_.state.offloaded.gradients; p_.state.offloaded.any_gradient()) {
      text_ += formatted("  gradients of %td units leave the device as they come, %d at a time there\n",
                         std::count(leave.begin(), leave.end(), true), p_.state.offloaded.gradient_buffers);
    }
    if (p_.state.weight_ranks > 0) {
      text_ += formatted(
          "  each %d ranks keep a copy of the weights; new weights%s cross to the others once a step\n",
          p_.state.weight_ranks, p_.state.sums_in_copies ? " and sums of gradients" : "");
    }
    if (p_.whole_at_once() > zero::gather_buffers{}.weights) {
      text_ += formatted("  weights of %d of %d units stay gathered from forward to backward\n",
                         p_.whole_at_once(), p_.gathered_units);
    }
  }

  void tell_of_activations() {
    if (p_.on_host.activations > 0) {
      text_ += formatted("  activations of blocks go to the host, those of %d at a time stay on the device\n",
                         p_.state.activations.buffers);
    }
  }

  void tell_of_time() {
    text_ += formatted(
        "  step: %.1f ms expected (%.1f ms its busiest part), %.0f tokens/s, %.3g model TFLOPS\n",
        1e3 * p_.step_time, 1e3 * p_.bound, p_.tokens_per_second, 1e-12 * p_.model_flops_per_second);
    auto const share = [&](lane l) { return 100.0 * p_.step.busy[static_cast<std::size_t>(l)]; };
    text_ += formatted("  busy: device %.0f %%, CPU Adam %.0f %%, link down %.0f %%, up %.0f %%\n",
                       share(lane::compute) + share(lane::device_adam), share(lane::cpu), share(lane::down),
                       share(lane::up));
    if (p_.exchanged > 0.0) {
      text_ += formatted("  collectives: %.2f %s a step and rank, %.1f ms, of which %.1f ms are waited for\n",
                         in_units(static_cast<std::size_t>(p_.exchanged)), memory_unit(),
                         1e3 * p_.collective_time, 1e3 * p_.step.waited_for_ranks);
    }
    if (p_.rows_exchanged > 0.0) {
      text_ +=
          formatted("  shared micro-batches: %.2f %s a step and rank, %.1f ms, waited for\n",
                    in_units(static_cast<std::size_t>(p_.rows_exchanged)), memory_unit(), 1e3 * p_.rows_time);
    }
  }

  plan const& p_;
  bool in_gib_;
  std::string text_;
};

}  // namespace detail

SUPEROFFLOAD_INLINE std::string describe(plan const& p) { return detail::plan_description{p}.write(); }

SUPEROFFLOAD_INLINE void expect_fits(plan const& p) { expect(p.fits, exit_code::cannot_fit, p.refusal); }

}  // namespace superoffload::offload
