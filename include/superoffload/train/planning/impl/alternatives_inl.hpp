// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/cpu/threads.hpp>
#include <superoffload/train/planning/alternatives.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {
namespace detail {

/// Changes options one at a time.
class alternative_list {
public:
  alternative_list(training_options const& o, run_planner const& planner) : asked_{o}, planner_{planner} {}

  std::vector<alternative> make(offload::plan asked) && {
    change_batch();
    change_sequence_ranks();
    change_copies(asked);
    change_tiles();
    change_recompute();
    if (planner_.rates_of_offloading) {
      change_offloading();
      change_state();
      change_memory(asked);
    }
    std::vector<alternative> rows{{{}, std::move(asked)}};
    for (auto& one : planned()) {
      if (one.plan) {
        rows.push_back({std::move(one.flags), *std::move(one.plan)});
      }
    }
    return rows;
  }

private:
  struct change {
    std::string flags;
    training_options options;
    std::optional<offload::plan> plan;
  };

  void change_batch() {
    for (std::int64_t const factor : {2, 4}) {
      auto o = asked_;
      o.batch_size = factor * asked_.batch_size;
      o.tokens_per_batch = factor * asked_.tokens_per_batch;
      add(o.tokens_per_batch > 0 ? concat("--tokens_per_batch ", o.tokens_per_batch)
                                 : concat("--batch_size ", o.batch_size),
          o);
    }
    auto const steps = asked_.accumulation;
    for (auto const accumulation : {steps % 2 == 0 ? steps / 2 : 0, 2 * steps, 4 * steps}) {
      auto o = asked_;
      o.accumulation = accumulation;
      if (accumulation > 0 && o.parts() <= o.most_accumulation()) {
        add(concat("--gradient_accumulation_steps ", accumulation), o);
      }
    }
  }

  void change_sequence_ranks() {
    for (int ranks = 1; ranks > 0; ranks = asked_.next_sequence_ranks(ranks)) {
      if (ranks != asked_.sequence_ranks) {
        auto o = asked_;
        o.sequence_ranks = ranks;
        add(concat("--sequence_parallel ", ranks), o);
      }
    }
  }

  /// Of the weights: one, or one of each host.
  void change_copies(offload::plan const& plan) {
    if (planner_.ranks_of_host == 0 || asked_.ranks % planner_.ranks_of_host != 0) {
      return;
    }
    int const now = plan.state.weight_ranks > 0 ? plan.state.weight_ranks : asked_.ranks;
    for (int const ranks : {planner_.ranks_of_host, asked_.ranks}) {
      bool const sums_otherwise =
          ranks < asked_.ranks && asked_.accumulation > 1 && !plan.state.sums_in_copies;
      if (ranks != now || sums_otherwise) {
        auto o = asked_;
        o.offload.weight_ranks = ranks;
        o.offload.sums_in_copies = true;
        add(concat("--hybrid_sharding ", ranks), o);
      }
    }
  }

  void change_tiles() {
    auto o = asked_;
    if (asked_.tiled_mlp > 0) {
      o.tiled_mlp = 0;
    } else if (!asked_.may_tile()) {
      return;
    } else {
      o.tiled_mlp = training_options::usual_tile;
    }
    add(concat("--tiled_mlp ", o.tiled_mlp), o);
  }

  void change_recompute() {
    using recompute::choice;
    for (auto const& [name, choice] : {std::pair{"none", choice::none},
                                       {"every_block", choice::every_block},
                                       {"auto", choice::automatic},
                                       {"offload", choice::offload}}) {
      bool const has_rates = choice != choice::offload || planner_.rates_of_offloading;
      if (choice != asked_.recompute && has_rates) {
        auto o = asked_;
        o.recompute = choice;
        add(concat("--activation_checkpointing ", name), o);
      }
    }
  }

  void change_offloading() {
    using offload::choice, offload::mode;
    auto const& s = asked_.offload;
    if (s.how == mode::none) {
      auto o = asked_;
      o.offload.how = mode::automatic;
      add("--offload auto", o);
      return;
    }
    if (!s.ratio && !s.device_updated_share && s.offload_weights != choice::on) {
      auto o = asked_;
      o.offload.how = mode::none;
      add("--offload none", o);
    }
    for (auto const& [name, ratio] : {std::pair{".25", .25}, {".5", .5}, {".75", .75}, {"1", 1.0}}) {
      if (s.ratio != ratio) {
        auto o = asked_;
        o.offload.ratio = ratio;
        add(concat("--ratio ", name), o);
      }
    }
    if (s.offload_weights != choice::on) {
      auto o = asked_;
      o.offload.offload_weights = choice::on;
      add("--offload_weights on", o);
    }
    if (asked_.max_grad_norm > 0.0 || asked_.nonfinite == on_nonfinite::skip) {
      auto o = asked_;
      o.max_grad_norm = 0.0;
      o.nonfinite = on_nonfinite::stop;
      add("--max_grad_norm 0 --on_nonfinite stop", o);
    }
  }

  void change_state() {
    for (auto const format : state_formats) {
      if (format != asked_.offload.state) {
        auto o = asked_;
        o.offload.state = format;
        add(concat("--state ", name_of(format)), o);
      }
    }
  }

  /// What a run reaches in a part of the device.
  void change_memory(offload::plan const& plan) {
    if (planner_.one_memory || asked_.offload.how == offload::mode::none || !plan.fits) {
      return;
    }
    for (auto const share : {.75, .5, .25}) {
      auto const gib = share * static_cast<double>(plan.device_available) * 0x1p-30;
      auto const shown = gib < 8.0 ? std::floor(100.0 * gib) / 100.0 : std::floor(gib);
      auto o = asked_;
      o.offload.device_memory = static_cast<std::size_t>(shown * 0x1p30);
      if (*o.offload.device_memory > 0) {
        add(concat("--device_memory ", shown), o);
      }
    }
  }

  void add(std::string flags, training_options const& o) { changes_.push_back({std::move(flags), o, {}}); }

  /// Plans them beside each other. One that contradicts the other options has no plan.
  std::vector<change> planned() {
    cpu::thread_pool threads;
    threads.parallel_for(std::ssize(changes_), 1, [this](std::int64_t begin, std::int64_t) {
      auto& one = changes_[static_cast<std::size_t>(begin)];
      may_be_asked([&] {
        one.plan = planner_.plan(one.options);
        return true;
      });
    });
    return std::move(changes_);
  }

  training_options const& asked_;
  run_planner const& planner_;
  std::vector<change> changes_;
};

/// The least bytes, in steps of 16 MiB, with which a run fits that fits with more, too; 0 if none up to 64
/// TiB.
template <class Fits>
std::size_t least_bytes(Fits&& fits) {
  constexpr std::size_t step = std::size_t{1} << 24;
  std::size_t enough = 1;
  while (!fits(enough * step)) {
    enough *= 2;
    if (enough * step > std::size_t{1} << 46) {
      return 0;
    }
  }
  for (std::size_t below = enough / 2; enough - below > 1;) {
    auto const middle = below + (enough - below) / 2;
    (fits(middle * step) ? enough : below) = middle;
  }
  return enough * step;
}

/// Writes the table.
class alternative_table {
public:
  explicit alternative_table(alternatives const& all)
      : all_{all},
        in_gib_{all.rows.front().plan.on_device.total() + all.rows.front().plan.on_host.total() >=
                (std::size_t{1} << 30)} {}

  std::string write() && {
    print("  %-38s %9s %9s %10s %10s %10s  %s\n", unit(), "device", "host", "state off", "step ms",
          "tokens/s", "recompute");
    for (auto const& row : all_.rows) { add(row); }
    auto const& p = all_.rows.front().plan;
    if (all_.one_memory) {
      say_least("  the run as asked for takes at least", "of memory", all_.least_device, p.device_available);
    } else {
      say_least("  with this host's memory it takes at least", "of device memory", all_.least_device,
                p.device_available);
      say_least("  with this device's memory it takes at least", "of host memory", all_.least_host,
                p.host_available);
    }
    return std::move(text_);
  }

private:
  void add(alternative const& a) {
    auto const& p = a.plan;
    print("  %-38s %9.2f %9.2f %8.0f %%", a.flags.empty() ? "as asked for" : a.flags.c_str(),
          in_units(p.on_device.total()), in_units(p.on_host.total()), 100.0 * (p.host + p.device_updated));
    if (p.fits) {
      print(" %10.1f %10.0f  %s\n", 1e3 * p.step_time, p.tokens_per_second, p.recompute.c_str());
    } else {
      print("  does not fit\n");
    }
  }

  void say_least(char const* begin, char const* of, std::size_t least, std::size_t available) {
    if (least == 0) {
      print("%s: no amount %s is enough\n", begin, of);
    } else {
      print("%s %.2f %s %s (available: %.2f)\n", begin, in_units(least), unit(), of, in_units(available));
    }
  }

  [[gnu::format(printf, 2, 3)]] void print(char const* format, ...) {
    std::array<char, 320> line;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line.data(), line.size(), format, arguments);
    va_end(arguments);
    text_ += line.data();
  }
  [[nodiscard]] char const* unit() const { return in_gib_ ? "GiB" : "MiB"; }
  [[nodiscard]] double in_units(std::size_t bytes) const {
    return static_cast<double>(bytes) / static_cast<double>(std::size_t{1} << (in_gib_ ? 30 : 20));
  }

  alternatives const& all_;
  bool in_gib_;
  std::string text_ = "alternatives, with one option changed\n";
};

}  // namespace detail

SUPEROFFLOAD_INLINE alternatives alternatives_of(training_options const& o, offload::plan asked,
                                                 run_planner const& planner) {
  alternatives all;
  all.one_memory = planner.one_memory;
  auto const device = asked.device_available, host = asked.host_available;
  all.rows = detail::alternative_list{o, planner}.make(std::move(asked));
  all.least_device = detail::least_bytes(
      [&](std::size_t bytes) { return planner.fits_in(bytes, planner.one_memory ? bytes : host); });
  if (!planner.one_memory) {
    all.least_host = detail::least_bytes([&](std::size_t bytes) { return planner.fits_in(device, bytes); });
  }
  return all;
}

SUPEROFFLOAD_INLINE std::string describe(alternatives const& all) {
  return detail::alternative_table{all}.write();
}

}  // namespace superoffload::train
