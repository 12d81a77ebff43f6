// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/policy.hpp>

#include <atomic>
#include <concepts>
#include <string_view>

/// Ranges of time with names, for profilers: what each thread gives a device to do, or does itself.
namespace superoffload::profile {

/// Is told of every range, by the thread that is in it. Ranges of a thread nest.
class listener {
public:
  /// "backward of ", "model.layers.17": the two make the name.
  virtual void begin(std::string_view what, std::string_view of) noexcept = 0;
  virtual void end() noexcept = 0;

protected:
  listener() = default;
  listener(listener const&) = default;
  listener& operator=(listener const&) = default;
  ~listener() = default;
};

namespace detail {
inline constinit std::atomic<listener*> current{nullptr};
}

/// Lets `who` be told from now on; null: nobody. It must live on until no thread is in a range any more.
inline void listen(listener* who) noexcept { detail::current.store(who, std::memory_order_release); }

/// Without a listener a load and a branch.
inline void begin(std::string_view what, std::string_view of = {}) noexcept {
  if (auto* const who = detail::current.load(std::memory_order_acquire)) [[unlikely]] {
    who->begin(what, of);
  }
}
inline void end() noexcept {
  if (auto* const who = detail::current.load(std::memory_order_acquire)) [[unlikely]] {
    who->end();
  }
}

/// A range from here to the end of the scope.
class range {
public:
  explicit range(std::string_view what, std::string_view of = {}) noexcept { begin(what, of); }
  range(range const&) = delete;
  range& operator=(range const&) = delete;
  ~range() { end(); }
};

/// A policy: what lives as long as an engine has it. A `session` that makes somebody listen, or nothing.
template <class P>
concept profile_policy = policy_of<P, category::profile> && std::default_initializable<typename P::session>;

/// Nobody listens.
struct none {
  using policy_category = category::profile;
  struct session {};
};
static_assert(profile_policy<none>);

}  // namespace superoffload::profile
