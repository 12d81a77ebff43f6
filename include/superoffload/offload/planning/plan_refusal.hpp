// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/bytes_text.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/offload/planning/plan_candidates.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Says why no candidate fits, and what would help.
class plan_refusal {
public:
  /// `candidates` are those of the other arguments.
  plan_refusal(plan_candidates const& candidates, std::vector<autograd::unit_layout> const& units,
               workload const& w, machine const& m, settings const& s)
      : candidates_{candidates}, budget_{candidates.budget()}, units_{units}, w_{w}, m_{m}, s_{s} {}

  /// \returns the candidate that lacks the least device memory, of those the one that takes the least of the
  /// host, and the reason.
  [[nodiscard]] plan make() const {
    auto p = least();
    p.fits = false;
    p.refusal = budget_.left_on_device(p) < 0 ? device_refusal(p) : host_refusal(p);
    return p;
  }

private:
  static std::string memory(std::size_t bytes) { return bytes_text(bytes, 1); }

  /// What the memory is limited by: what is there, or the budget of a flag.
  static std::string limit(std::size_t bytes, std::optional<std::size_t> allowed, char const* flag) {
    return allowed && *allowed <= bytes ? concat(" are allowed (", flag, "); ") : " are available; ";
  }

  [[nodiscard]] plan least() const {
    auto const need = [this](plan const& p) {
      return std::pair{std::min<std::int64_t>(budget_.left_on_device(p), 0),
                       -static_cast<std::int64_t>(budget_.on_host(p))};
    };
    std::optional<plan> best;
    for (auto const what : candidates_.kinds()) {
      for (double const share : candidates_.shares(what)) {
        for (auto& p : candidates_.of(w_.levels.size() - 1, share, what)) {
          if (!best || need(p) > need(*best)) {
            best = std::move(p);
          }
        }
      }
    }
    return *std::move(best);
  }

  [[nodiscard]] std::string device_refusal(plan const& p) const {
    auto const need = budget_.on_device(p);
    auto text =
        concat("the plan needs ", memory(need),
               m_.device.is_the_host ? " of memory, but " : " of device memory, but ",
               memory(budget_.device()), limit(budget_.device(), s_.device_memory, "--device_memory"));
    if (m_.device.is_the_host) {
      return text + concat(with_fewer_bytes(), "it takes ", memory(need - budget_.device()),
                           " more, shorter sequences, --freeze or a smaller model");
    }
    if (s_.how == mode::none || (s_.ratio && *s_.ratio < 1.0)) {
      return text + "let more of the optimizer's state leave the device (--offload auto, no --ratio)";
    }
    if (s_.offload_weights == choice::off && w_.weights_may_leave) {
      return text + "let weights live on the host (--offload_weights auto)";
    }
    return text + concat(without_check(), with_fewer_bytes(), "it takes a device with ",
                         memory(need - budget_.device()), " more, shorter sequences or a smaller model");
  }
  /// Advice to leave the gradient check out, if that helps: no gradient is held for it then.
  [[nodiscard]] std::string without_check() const {
    auto unchecked = w_;
    unchecked.checks_gradient = false;
    bool const helps = w_.checks_gradient && plan_candidates{units_, unchecked, m_, s_}.any_fits();
    return helps ? "let gradients leave the device as they come (--max_grad_norm 0 --on_nonfinite stop); "
                   "otherwise "
                 : "";
  }

  /// Advice to store the optimizer's state in fewer bytes, if that helps.
  [[nodiscard]] std::string with_fewer_bytes() const {
    auto fewer = s_;
    for (auto const format : state_formats) {
      fewer.state = format;
      if (format > s_.state && plan_candidates{units_, w_, m_, fewer}.any_fits()) {
        return concat("store the optimizer's state in fewer bytes (--state ", name_of(format),
                      "); otherwise ");
      }
    }
    return {};
  }

  [[nodiscard]] std::string host_refusal(plan const& p) const {
    auto const need = budget_.on_host(p);
    auto text = concat("the plan needs ", memory(need), " of host memory, but ", memory(budget_.host()),
                       limit(budget_.host(), s_.host_memory, "--host_memory"));
    auto const more = memory(need - budget_.host());
    if (s_.ratio && *s_.ratio > 0.0) {
      return text +
             concat("keep more of the optimizer's state on the device (no --ratio), or use a host with ",
                    more, " more");
    }
    if (s_.how == mode::zero || (s_.device_updated_share && *s_.device_updated_share < 1.0)) {
      return text + concat(
                        "let the device update more of it (--offload super, no --device_updated_share): that "
                        "takes 10 and "
                        "not 12 bytes a parameter; or use a host with ",
                        more, " more");
    }
    auto const activations = p.on_device.activations;
    return text + concat(without_check(), with_fewer_bytes(), "use a host with ", more,
                         " more, freeze tensors, or a smaller micro-batch: its activations take ",
                         memory(activations), " of the device, which state could use");
  }

  plan_candidates const& candidates_;
  memory_budget const& budget_;
  std::vector<autograd::unit_layout> const& units_;
  workload const& w_;
  machine const& m_;
  settings const& s_;
};

}  // namespace superoffload::offload
