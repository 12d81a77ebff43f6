// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/profile.hpp>
#include <superoffload/core/range.hpp>

#include <array>
#include <cstddef>
#include <initializer_list>
#include <vector>

namespace superoffload::autograd {

/// The units that a scope enters: its own and, for a tied head, the embedding.
class unit_list {
public:
  /// \throws error(internal) for more than two units.
  unit_list(std::initializer_list<int> units);
  [[nodiscard]] int const* begin() const noexcept { return ids_.data(); }        ///< of the units' ids
  [[nodiscard]] int const* end() const noexcept { return ids_.data() + size_; }  ///< behind the last id

private:
  std::array<int, 2> ids_{};
  int size_ = 0;
};

/// The units that a tape has acquired from their store, their outstanding uses, and which of their gradients
/// are written. A dry tape has no store and acquires nothing.
class entered_units {
public:
  /// `units`: how many the model has. Without `access` the tape is dry.
  explicit entered_units(int units, unit_access access = {})
      : access_{access}, units_(static_cast<std::size_t>(units)) {}

  /// A forward begins, with or without a backward.
  void begin_run(bool with_backward);

  /// Acquires the unit from the store, names it for errors and profilers, and announces to the store which
  /// unit came next in the run before. Nests; every enter has its leave().
  void enter(int unit, pass p);
  /// Later work may not use the unit's buffers.
  void leave(int unit, pass p);
  /// Exchanges bytes with the ranks that share the rows: unit_access::exchange.
  void exchange(void const* from, void* to, std::size_t bytes) const;
  /// Counts a recorded use of the unit whose backward is to come.
  void record_use(int unit) { ++of(unit).uses; }
  /// Leaves a unit in the backward. After its last use, the store reduces its gradient.
  void leave_backward(int unit);

  /// The buffers of a parameter's unit. The unit is entered.
  [[nodiscard]] unit_buffers const& buffers(parameter const& p) const;
  /// Marks a parameter's gradient as written. \returns whether it was written before.
  bool written(parameter const& p);
  /// From now on written() is false once for every parameter: a new step begins.
  void forget_gradients();

private:
  struct unit_state {
    unit_buffers buffers;
    int acquired = 0;
    int uses = 0;               // recorded uses whose backward is to come
    std::vector<bool> written;  // parameters whose gradient has been written
  };
  struct visit {
    int unit;
    pass p;
    friend bool operator==(visit, visit) = default;
  };

  [[nodiscard]] bool dry() const noexcept { return access_.acquire == nullptr; }
  unit_state& of(int unit) { return units_[static_cast<std::size_t>(unit)]; }

  /// The order of units is the same in every run: after the first run, the next unit is prefetched.
  void prefetch_after(visit now);

  unit_access access_;
  std::vector<unit_state> units_;
  bool with_backward_ = true;
  std::array<std::vector<visit>, 2> visits_;  // of a forward without a backward, and with one
  std::size_t visited_ = 0;
};

}  // namespace superoffload::autograd

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/autograd/impl/entered_units_inl.hpp>
#endif
