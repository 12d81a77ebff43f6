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

/// What crosses the link for buckets off the device, queued as the scheduler says, a few copies at a time;
/// what has ended it is told. Never blocks on the device. For one thread at a time.
template <device_policy D, element T, class Scheduler>
class bucket_copies {
public:
  /// As for server; the units and the scheduler outlive it.
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

  [[nodiscard]] host_buckets<D, T>& host() { return host_; }
  [[nodiscard]] host_buckets<D, T> const& host() const { return host_; }
  [[nodiscard]] device_updated_state<D, T>& device_updated() { return device_updated_; }
  [[nodiscard]] std::string_view name_of(std::size_t index) const {
    return (*units_)[static_cast<std::size_t>(buckets_[index].unit)].name();
  }

  // Steps
  // ----------------------------------------------------------------------------------------------------

  /// Does anything of the unit train?
  [[nodiscard]] bool trains(int unit) const {
    return final_[static_cast<std::size_t>(unit)].event != nullptr;
  }
  /// The unit's gradient is final after what is queued on `compute`.
  void gradient_queued(int unit, zero::unit_gradient gradient, typename D::stream& compute) {
    auto& f = gradient_of(unit);
    compute.record(*f.event);
    f.gradient = gradient;
    f.computing = true;
  }
  [[nodiscard]] typename D::event const& final_event(int unit) { return *gradient_of(unit).event; }

  /// What streamed state may be updated with, if it may be, and whether state may be uploaded for a step
  /// whose gradients are to come.
  struct moment {
    std::optional<step_record> const& record;
    bool uploads_ahead;
  };
  /// Takes note of copies that have ended and queues others. \returns whether anything went on that another
  /// thread may wait for: a gradient was fetched, or streamed state has moved.
  bool tend(moment const& now) {
    while (!sending_.empty() && host_.sent(sending_.front()).done()) {
      sending_.pop_front();
      scheduler_->weights_arrived();
    }
    take_arrivals();
    // The host queues a backward long before the device runs it.
    for (std::size_t u = 0; u < final_.size(); ++u) {
      if (auto& f = final_[u]; f.computing && f.event->done()) {
        f.computing = false;
        scheduler_->gradient_final(static_cast<int>(u));
      }
    }
    bool const fetched = start_fetches();
    return advance_device_updated(now) || fetched;
  }
  /// Gradients that have come to the host.
  void take_arrivals() {
    while (!fetching_.empty() && host_.fetched(fetching_.front()).done()) { take_arrival(); }
  }
  /// The first of them, which has.
  void take_arrival() {
    scheduler_->fetched(fetching_.front());
    fetching_.pop_front();
  }
  void send(std::size_t index, int from) {
    host_.send(index, from, final_event(buckets_[index].unit));
    sending_.push_back(index);
  }
  /// The ends of what is under way, or null.
  [[nodiscard]] typename D::event const* next_arrival() const {
    return fetching_.empty() ? nullptr : &host_.fetched(fetching_.front());
  }
  [[nodiscard]] typename D::event const* next_sent() const {
    return sending_.empty() ? nullptr : &host_.sent(sending_.front());
  }
  /// The same of what keeps copies of streamed state waiting.
  [[nodiscard]] typename D::event const* next_device_updated() {
    return held_back_ ? device_updated_.next_end() : nullptr;
  }
  /// Waits for all of it: state may be read and written from outside.
  void synchronize() {
    link_.up.synchronize();
    device_updated_.synchronize();
    scheduler_->forget_uploads();
  }
  /// Waits for what uses events, come what may.
  void drain_link() {
    drain(link_.up);
    drain(link_.down);
  }
  [[nodiscard]] std::int64_t updated_by_device() const { return updated_by_device_; }

private:
  struct final_gradient {
    std::unique_ptr<typename D::event> event;  // null: nothing of the unit trains
    zero::unit_gradient gradient;
    bool computing = false;  // the device may not have come that far
  };

  // Under way at a time. Waiting for a copy is waiting for what was queued before it; and a task of CPU Adam,
  // during which nothing is queued, takes about as long as a bucket's state does on the link.
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
  /// The first streamed buckets are uploaded ahead of the check, all are updated after it; immediate, as
  /// their gradients come.
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
      profile::range const named{"streamed update of ", name_of(*next)};
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
  bool held_back_ = false;                      // copies of streamed state wait for those before them
  std::int64_t updated_by_device_ = 0;
};

}  // namespace superoffload::offload
