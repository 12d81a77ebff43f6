// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/entered_units.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>

#include <cstddef>
#include <initializer_list>

namespace superoffload::autograd {

SUPEROFFLOAD_INLINE unit_list::unit_list(std::initializer_list<int> units) {
  expect(units.size() <= ids_.size(), exit_code::internal, "a scope enters two units at most");
  for (int const u : units) { ids_[static_cast<std::size_t>(size_++)] = u; }
}

SUPEROFFLOAD_INLINE void entered_units::begin_run(bool with_backward) {
  with_backward_ = with_backward;
  visited_ = 0;
  for (auto& u : units_) { u.uses = 0; }
}

SUPEROFFLOAD_INLINE void entered_units::enter(int unit, pass p) {
  auto& state = of(unit);
  ++state.acquired;
  if (dry()) {
    return;
  }
  if (access_.units != nullptr) {
    auto const* const what = p == pass::backward ? "backward of " : "forward of ";
    auto const& name = (*access_.units)[static_cast<std::size_t>(unit)].name();
    enter_range(what, name);
    profile::begin(what, name);
  }
  state.buffers = access_.acquire(access_.store, unit, p);
  prefetch_after({unit, p});
}

SUPEROFFLOAD_INLINE void entered_units::leave(int unit, pass p) {
  --of(unit).acquired;
  if (!dry()) {
    access_.release(access_.store, unit, p);
    if (access_.units != nullptr) {
      profile::end();
    }
  }
}

SUPEROFFLOAD_INLINE void entered_units::exchange(void const* from, void* to, std::size_t bytes) const {
  expect(access_.exchange != nullptr, exit_code::internal,
         "a micro-batch's rows are on several ranks, but its store has none");
  access_.exchange(access_.store, from, to, bytes);
}

SUPEROFFLOAD_INLINE void entered_units::leave_backward(int unit) {
  leave(unit, pass::backward);
  if (--of(unit).uses == 0 && !dry()) {
    access_.reduce(access_.store, unit);
  }
}

SUPEROFFLOAD_INLINE unit_buffers const& entered_units::buffers(parameter const& p) const {
  auto const& state = units_[static_cast<std::size_t>(p.unit)];
  expect(state.acquired > 0, exit_code::internal, "a layer used a weight of unit ", p.unit,
         " outside of its scope");
  return state.buffers;
}

SUPEROFFLOAD_INLINE bool entered_units::written(parameter const& p) {
  auto& written = of(p.unit).written;
  if (written.size() <= static_cast<std::size_t>(p.index)) {
    written.resize(static_cast<std::size_t>(p.index) + 1);
  }
  bool const before = written[static_cast<std::size_t>(p.index)];
  written[static_cast<std::size_t>(p.index)] = true;
  return before;
}

SUPEROFFLOAD_INLINE void entered_units::forget_gradients() {
  for (auto& u : units_) { u.written.assign(u.written.size(), false); }
}

SUPEROFFLOAD_INLINE void entered_units::prefetch_after(visit now) {
  auto& known = visits_[with_backward_ ? 1 : 0];
  if (visited_ < known.size() && known[visited_] == now) {
    if (++visited_ < known.size()) {
      access_.prefetch(access_.store, known[visited_].unit, known[visited_].p);
    }
    return;
  }
  known.resize(visited_);
  known.push_back(now);
  ++visited_;
}

}  // namespace superoffload::autograd
