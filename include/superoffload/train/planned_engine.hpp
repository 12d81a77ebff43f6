// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/offload/planning/machine.hpp>
#include <superoffload/offload/planning/plan.hpp>
#include <superoffload/offload/settings.hpp>
#include <superoffload/train/engine/dry_model.hpp>
#include <superoffload/train/engine/engine_core.hpp>
#include <superoffload/train/engine/engine_options.hpp>
#include <superoffload/train/planning/measure_machine.hpp>
#include <superoffload/train/planning/plan_file.hpp>
#include <superoffload/train/planning/step_plan.hpp>
#include <superoffload/train/run/report.hpp>
#include <superoffload/zero/gradient_layout.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace superoffload::train {

/// What a plan depends on besides the engine's own options.
struct plan_options {
  offload::settings offload{};              ///< as the user asks for it
  int micro_batches = 1;                    ///< of a step
  bool checks_gradient = true;              ///< as in offload::workload
  double hit_rate = 1.0;                    ///< as in offload::workload
  std::optional<expected_step> expected{};  ///< as in step_shape
};

/// The plan of an engine's steps, with its inputs.
struct planned_steps {
  step_shape shape;            ///< the planned steps
  offload::machine machine;    ///< the machine that they are planned for
  double measuring = 0.0;      ///< s spent on measuring the machine
  offload::settings settings;  ///< of the plan; mode::none for an engine that ignores configurations
  offload::plan plan;          ///< it may not fit
};

/// Bytes that a rank's engine takes for whole gradients, beside those of its shards; none without ranks. Call
/// before the engine is configured.
template <class Engine>
std::optional<std::size_t> whole_gradients_of(Engine const& e) {
  if (!e.is_rank()) {
    return std::nullopt;
  }
  using T = typename Engine::element_type;
  std::size_t of_shards = 0;
  for (auto const& unit : e.units_of_state()) {
    of_shards += unit.trainable() ? zero::gradient_bytes<T>(unit, e.options().accumulates) : std::size_t{0};
  }
  return e.allocation().gradients - of_shards;
}

/// Can the engine's store offload weights or gradients? In a group of one rank it cannot.
template <class Engine>
bool can_offload(Engine const& e, int ranks) {
  return Engine::offloads && (!e.is_rank() || ranks > 1);
}

/// The steps of an engine. Its largest micro-batch is taken to consist of sequences of the longest document.
template <class D, class P, class S, class O>
step_shape shape_of(engine_core<D, P, S, O> const& engine, plan_options const& o) {
  auto const& told = engine.options();
  int const ranks = comm::host_group_of(engine.group()).ranks();
  return {.micro_batch = told.largest_batch(),
          .sequences = std::max<std::int64_t>(1, told.max_rows / told.max_positions),
          .expected = o.expected,
          .micro_batches = o.micro_batches,
          .recompute = told.recompute,
          .checks_gradient = o.checks_gradient,
          .hit_rate = o.hit_rate,
          .offloads = can_offload(engine, ranks),
          .ranks = ranks,
          .whole_gradients = whole_gradients_of(engine)};
}

/// Measures the machine, plans the steps of an engine, and configures the engine by the plan. Before
/// initialize() only. Every rank makes the call. A plan that does not fit is returned, too;
/// offload::expect_fits refuses it.
/// \throws error(bad_input) for settings that contradict each other, or that need another engine.
template <class D, class P, class S, class O>
planned_steps plan_engine(engine_core<D, P, S, O>& engine, plan_options const& o = {}) {
  using T = typename P::element;
  expect(o.micro_batches >= 1 && engine.options().accumulates == (o.micro_batches > 1), exit_code::bad_input,
         "a plan of ", o.micro_batches,
         " micro-batches a step for an engine whose engine_options::accumulates is ",
         engine.options().accumulates ? "true" : "false");
  auto settings = o.offload;
  check(settings);
  if constexpr (!O::configures) {
    expect(
        settings.how == offload::mode::none || (settings.how == offload::mode::automatic && !settings.ratio),
        exit_code::bad_input, "--offload super|zero needs an engine with offload::super");
    settings.how = offload::mode::none;
  }
  auto& device = engine.device();
  auto const shape = shape_of(engine, o);
  auto const began = std::chrono::steady_clock::now();
  auto machine = machine_for<T>(device, engine.model(), shape, settings, engine.group());
  std::chrono::duration<double> const measuring = std::chrono::steady_clock::now() - began;
  auto plan = plan_step(dry_model_of<T>(device, engine.model()), shape, machine, settings);
  auto ranks = comm::host_group_of(engine.group());
  comm::expect_same(ranks, "the plan", to_json(plan, {}));
  engine.configure(plan.state, plan.on_device.total());
  return {shape, std::move(machine), measuring.count(), std::move(settings), std::move(plan)};
}

/// The name of the attention implementation that a device uses; empty if it has only one.
template <class D>
std::string attention_of(D const& device) {
  if constexpr (requires { device.attention(); }) {
    return device.attention() != nullptr ? device.attention()->name() : "flash";
  } else {
    return {};
  }
}

/// The plan of an engine's steps as text for the user: the model, memory by kind, the expected step.
template <class D, class P, class S, class O>
std::string plan_text(engine_core<D, P, S, O> const& engine, offload::plan const& plan) {
  auto const& device = engine.device();
  return describe(plan, engine.allocation(), engine.model().settings(),
                  {.device = device.description(),
                   .element_type = dtype_name<typename P::element>(engine.model().settings()),
                   .attention = attention_of(device),
                   .lockable = device.lockable_bytes()});
}

/// An engine that is planned and configured for this machine in its constructor.
template <class Engine>
class planned_engine : public Engine {
public:
  using typename Engine::device_type;
  using typename Engine::group_type;

  /// Measures the machine and plans; frees all memory that it allocates for this. Writes and draws the plan
  /// where the settings name files for it.
  /// \throws error(cannot_fit) that says what would help, and errors of plan_engine().
  planned_engine(device_type& device, model::config const& config, engine_options options,
                 plan_options const& o = {})
    requires(Engine::alone)
      : planned_engine{device, nullptr, config, std::move(options), o} {}
  /// The same for a rank of `group`, which must outlive this; null for an engine without ranks.
  planned_engine(device_type& device, group_type* group, model::config const& config, engine_options options,
                 plan_options const& o = {})
      : Engine{device, group, config, std::move(options)}, planned_{plan_engine(*this, o)} {
    if (comm::host_group_of(group).rank() == 0) {
      write_plan(planned_.plan, planned_.machine.name, o.offload);
    }
    offload::expect_fits(planned_.plan);
  }

  /// The plan, which fits, with its inputs.
  [[nodiscard]] planned_steps const& planned() const noexcept { return planned_; }
  /// The plan as text for the user.
  [[nodiscard]] std::string plan_text() const { return train::plan_text(*this, planned_.plan); }

private:
  planned_steps planned_;
};

}  // namespace superoffload::train
