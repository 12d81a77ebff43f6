// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/profile.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/scheduling/scheduler.hpp>
#include <superoffload/offload/state/device_updated_state.hpp>
#include <superoffload/offload/state/host_buckets.hpp>
#include <superoffload/offload/state/link_streams.hpp>
#include <superoffload/offload/state/step_record.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace superoffload::offload {

/// The copies over the link for buckets off the device. Queues a few at a time, as the scheduler decides, and
/// reports those that have ended to the scheduler. Never blocks on the device. For one thread at a time.
template <device_policy D, element T, class Scheduler>
class bucket_copies {
public:
  /// Arguments as for worker. The units and the scheduler must outlive it.
  template <class Weights>
  bucket_copies(D& device, std::vector<autograd::unit_layout> const& units, configuration const& a,
                Weights&& weights, recorder<D>* times, Scheduler& decides)
      : units_{&units},
        buckets_{a.buckets},
        immediate_{a.immediate},
        scheduler_{&decides},
        final_(units.size()),
        link_{device},
        host_{device, link_, units, a, weights, times},
        device_updated_{device, link_, units, a, weights, times} {
    for (auto const& b : buckets_) {
      if (auto& f = gradient_of(b.unit); f.event == nullptr) {
        f.event = std::make_unique<typename D::event>(device);
      }
    }
  }
  bucket_copies(bucket_copies const&) = delete;
  bucket_copies& operator=(bucket_copies const&) = delete;
  ~bucket_copies() = default;

  /// @{
  /// The buckets that CPU Adam updates.
  [[nodiscard]] host_buckets<D, T>& host() { return host_; }
  [[nodiscard]] host_buckets<D, T> const& host() const { return host_; }
  /// @}
  /// The state that the device updates.
  [[nodiscard]] device_updated_state<D, T>& device_updated() { return device_updated_; }
  /// The name of the bucket's unit.
  [[nodiscard]] std::string_view name_of(std::size_t index) const {
    return (*units_)[static_cast<std::size_t>(buckets_[index].unit)].name();
  }

  // Steps
  // ----------------------------------------------------------------------------------------------------

  /// Is any tensor of the unit trainable?
  [[nodiscard]] bool trains(int unit) const {
    return final_[static_cast<std::size_t>(unit)].event != nullptr;
  }
  /// The unit's gradient is final after the work that is queued on `compute`.
  void gradient_queued(int unit, zero::unit_gradient gradient, typename D::stream& compute) {
    auto& f = gradient_of(unit);
    compute.record(*f.event);
    f.gradient = gradient;
    f.computing = true;
  }
  /// The end of the work that makes the unit's gradient final; of a trained unit only.
  [[nodiscard]] typename D::event const& final_event(int unit) { return *gradient_of(unit).event; }

  /// The record to update device-updated state with, if updates are allowed; and whether state may be
  /// uploaded before its gradient is there.
  struct moment {
    std::optional<step_record> const& record;  ///< none: updates are not allowed
    bool uploads_ahead;                        ///< no effect in the immediate mode
  };
  /// Reports copies that have ended and queues others. \returns whether another thread's wait may be over: a
  /// gradient copy was queued, or device-updated state has moved.
  bool tend(moment const& now) {
    while (!sending_.empty() && host_.sent(sending_.front()).done()) {
      sending_.pop_front();
      scheduler_->weights_arrived();
    }
    take_arrivals();
    // The host queues a backward long before the device runs it, so its end is polled.
    for (std::size_t u = 0; u < final_.size(); ++u) {
      if (auto& f = final_[u]; f.computing && f.event->done()) {
        f.computing = false;
        scheduler_->gradient_final(static_cast<int>(u));
      }
    }
    bool const fetched = start_fetches();
    return advance_device_updated(now) || fetched;
  }
  /// Reports gradients that have arrived on the host.
  void take_arrivals() {
    while (!fetching_.empty() && host_.fetched(fetching_.front()).done()) { take_arrival(); }
  }
  /// Reports the first one, whose copy has ended.
  void take_arrival() {
    scheduler_->fetched(fetching_.front());
    fetching_.pop_front();
  }
  /// Queues the copy of new weights, which are in pinned buffer `from`, to where they live.
  void send(std::size_t index, int from) {
    host_.send(index, from, final_event(buckets_[index].unit));
    sending_.push_back(index);
  }
  /// @{
  /// The end of the oldest copy of a gradient, or of weights; null: none is under way.
  [[nodiscard]] typename D::event const* next_arrival() const {
    return fetching_.empty() ? nullptr : &host_.fetched(fetching_.front());
  }
  [[nodiscard]] typename D::event const* next_sent() const {
    return sending_.empty() ? nullptr : &host_.sent(sending_.front());
  }
  /// @}
  /// The event that copies of device-updated state wait for; null: none.
  [[nodiscard]] typename D::event const* next_device_updated() {
    return held_back_ ? device_updated_.next_end() : nullptr;
  }
  /// Waits for all copies. State may be read and written from outside then.
  void synchronize() {
    link_.up.synchronize();
    device_updated_.synchronize();
    scheduler_->forget_uploads();
  }
  /// Waits for all copies, even after an error.
  void drain_link() {
    drain(link_.up);
    drain(link_.down);
  }
  /// The updates of buckets that the device has made so far, or that are queued.
  [[nodiscard]] std::int64_t updated_by_device() const { return updated_by_device_; }

private:
  struct final_gradient {
    std::unique_ptr<typename D::event> event;  // null: nothing of the unit trains
    zero::unit_gradient gradient;
    bool computing = false;  // its backward may still run
  };

  // The most copies under way. Few, since a copy waits for all that were queued before it. Enough to keep the
  // link busy during a task of CPU Adam, which takes about as long as the copy of a bucket's state.
  static constexpr std::size_t most_fetches = 6, most_uploads = 3, most_writes = 2;

  final_gradient& gradient_of(int unit) { return final_[static_cast<std::size_t>(unit)]; }

  bool start_fetches() {
    bool any = false;
    while (fetching_.size() < most_fetches) {
      auto const next = scheduler_->next_fetch();
      if (!next) {
        break;
      }
      auto const& f = gradient_of(buckets_[*next].unit);
      host_.fetch(*next, scheduler_->fetch(*next), f.gradient, *f.event);
      fetching_.push_back(*next);
      any = true;
    }
    return any;
  }
  /// The first device-updated buckets are uploaded before the check. All are updated after it; in the
  /// immediate mode, as their gradients arrive.
  bool advance_device_updated(moment const& now) {
    while (auto const written = device_updated_.take_written()) { scheduler_->written_back(*written); }
    bool any = device_updated_.write_back(most_writes);
    bool const ahead = now.uploads_ahead && !immediate_;
    while (auto const next =
               device_updated_.may_upload(most_uploads) ? scheduler_->next_upload(ahead) : std::nullopt) {
      device_updated_.upload(*next);
      scheduler_->upload(*next);
      scheduler_->uploaded(*next);
    }
    while (auto const next = now.record ? scheduler_->next_update() : std::nullopt) {
      auto const& f = gradient_of(buckets_[*next].unit);
      profile::range const named{"device update of ", name_of(*next)};
      device_updated_.update(*next, *now.record, f.gradient, *f.event);
      scheduler_->updated(*next);
      ++updated_by_device_;
      any = true;
    }
    auto const& staging = scheduler_->staging();
    held_back_ =
        (now.record && staging.is_late()) || (ahead && !staging.is_full()) || !device_updated_.wrote_all();
    return any;
  }

  std::vector<autograd::unit_layout> const* units_;
  placement buckets_;
  bool immediate_;
  Scheduler* scheduler_;
  std::vector<final_gradient> final_;  // by unit
  link_streams<D> link_;
  host_buckets<D, T> host_;
  device_updated_state<D, T> device_updated_;
  std::deque<std::size_t> fetching_, sending_;  // buckets, in the order in which the copies were queued
  bool held_back_ = false;                      // copies of device-updated state wait for earlier ones
  std::int64_t updated_by_device_ = 0;
};

}  // namespace superoffload::offload
