// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/policy.hpp>

#include <atomic>
#include <concepts>
#include <string_view>

/// Named ranges of time, for profilers: the work that a thread queues on a device, or does itself.
namespace superoffload::profile {

/// Is called for every range, on the thread of the range. The ranges of a thread nest.
class listener {
public:
  /// `what` and `of` together are the name, such as "backward of " and "model.layers.17".
  virtual void begin(std::string_view what, std::string_view of) noexcept = 0;
  /// Ends the range that this thread began last.
  virtual void end() noexcept = 0;

protected:
  listener() = default;
  /// @{
  /// For derived classes, which own themselves: nothing here destroys a listener.
  listener(listener const&) = default;
  listener& operator=(listener const&) = default;
  /// @}
  ~listener() = default;
};

namespace detail {
inline constinit std::atomic<listener*> current{nullptr};
}

/// Sets the listener that is called from now on; null for none. It must live until no thread is in a range.
inline void listen(listener* target) noexcept { detail::current.store(target, std::memory_order_release); }

/// Without a listener this costs a load and a branch.
inline void begin(std::string_view what, std::string_view of = {}) noexcept {
  if (auto* const target = detail::current.load(std::memory_order_acquire)) [[unlikely]] {
    target->begin(what, of);
  }
}
/// Ends the range that this thread began last. Costs what begin() costs.
inline void end() noexcept {
  if (auto* const target = detail::current.load(std::memory_order_acquire)) [[unlikely]] {
    target->end();
  }
}

/// A range from here to the end of the scope.
class range {
public:
  /// Begins a range named `what` and `of`, as begin() does.
  explicit range(std::string_view what, std::string_view of = {}) noexcept { begin(what, of); }
  range(range const&) = delete;
  range& operator=(range const&) = delete;
  ~range() { end(); }
};

/// A policy whose `session` lives as long as the engine. It sets a listener, or does nothing.
template <class P>
concept profile_policy = policy_of<P, category::profile> && std::default_initializable<typename P::session>;

/// No listener.
struct none {
  using policy_category = category::profile;  ///< makes it a profile_policy
  struct session {};
};
static_assert(profile_policy<none>);

}  // namespace superoffload::profile
