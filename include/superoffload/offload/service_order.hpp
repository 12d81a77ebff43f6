// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace superoffload::offload {

/// How far a bucket has come in a step.
enum class stage {
  idle,
  final,     ///< the gradient is on the device
  fetching,  ///< on its way
  held,      ///< in a slot, not to be served before the verdict
  arrived,   ///< in a slot
  emitted,   ///< in a slot, new weights sent
  refused,   ///< emitted, but the step changes nothing: the old weights have to be sent
};

/// What CPU Adam is asked for.
enum class service { emit, commit, update, send_again };

/// What the order of service looks at in a bucket.
struct standing {
  stage state = stage::idle;
  std::int64_t arrival = 0;  ///< its gradient's place in the order in which they become final
  bool on_host = false;      ///< CPU Adam serves it
  bool computing = false;    ///< the device may not have come as far as its gradient
  bool dropped = false;      ///< fetched for a step that changes nothing
  bool pending = false;      ///< a step was accepted and not yet committed; its gradient is kept in a slot
};

/// And in everything else.
struct service_moment {
  bool gathering = false;    ///< the verdict is to come
  bool speculating = false;  ///< and buckets are served before it
  bool immediate = false;    ///< by changing their state at once
  std::size_t free_slots = 0;
  std::size_t fetching = 0;   ///< gradients on their way
  bool link_is_late = false;  ///< the device waits for state that has yet to come up
};

struct service_task {
  service what;
  std::size_t index;

  friend bool operator==(service_task, service_task) = default;
};

/// The bucket in `state` to be served next, of any range of standings: the newest before the verdict, the
/// first of the forward after it.
template <class Standings>
[[nodiscard]] std::optional<std::size_t> next_in(Standings const& buckets, stage state, bool gathering) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    standing const& b = buckets[i];
    if (b.state == state && b.on_host && !b.computing && !b.dropped &&
        (!best || (gathering && b.arrival > buckets[*best].arrival))) {
      best = i;
    }
  }
  return best;
}

/// The bucket whose gradient the device will finish first.
template <class Standings>
[[nodiscard]] std::optional<std::size_t> next_computing(Standings const& buckets) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    standing const& b = buckets[i];
    if (b.state == stage::final && b.on_host && b.computing &&
        (!best || b.arrival < buckets[*best].arrival)) {
      best = i;
    }
  }
  return best;
}

/// The bucket to commit when there is nothing better to do: the first without a new gradient, since what the
/// backward reaches sooner may yet be committed in one pass with its next step; where all have one, they wait
/// for the slots that only committing gives back.
template <class Standings>
[[nodiscard]] std::optional<std::size_t> next_pending(Standings const& buckets) {
  std::optional<std::size_t> with_gradient;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    standing const& b = buckets[i];
    if (b.pending && b.state == stage::idle) {
      return i;
    }
    if (b.pending && !with_gradient) {
      with_gradient = i;
    }
  }
  return with_gradient;
}

/// What CPU Adam does next; nothing: wait for a gradient, a slot or the verdict.
template <class Standings>
[[nodiscard]] std::optional<service_task> next_task(Standings const& buckets, service_moment const& now) {
  if (now.speculating) {
    if (auto const i = next_in(buckets, stage::arrived, true)) {
      if (now.immediate) {
        return service_task{service::update, *i};
      }
      standing const& b = buckets[*i];
      if (b.pending || now.free_slots > 0) {  // weights go where the kept gradient was, or into a slot
        return service_task{service::emit, *i};
      }
    }
  }
  if (!now.gathering) {
    if (auto const i = next_in(buckets, stage::refused, false)) {
      return service_task{service::send_again, *i};
    }
    if (auto const i = next_in(buckets, stage::arrived, false)) {
      return service_task{service::update, *i};
    }
  }
  // A commit reads and writes memory that the link would read: it waits until nobody waits for that.
  if (now.fetching == 0 && !now.link_is_late) {
    if (auto const i = next_pending(buckets)) {
      return service_task{service::commit, *i};
    }
  }
  return std::nullopt;
}

}  // namespace superoffload::offload
