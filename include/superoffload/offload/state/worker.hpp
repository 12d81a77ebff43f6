// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/profile.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/scheduling/scheduler.hpp>
#include <superoffload/offload/scheduling/worker_counts.hpp>
#include <superoffload/offload/state/adam_workers.hpp>
#include <superoffload/offload/state/bucket_copies.hpp>
#include <superoffload/offload/state/device_updated_state.hpp>
#include <superoffload/offload/state/host_buckets.hpp>
#include <superoffload/offload/state/step_record.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Updates the buckets whose state lives off the device, on its own thread, while the device computes. The
/// scheduler decides what is done next; the worker reports events to it and does the work.
///
/// A step is announce(record), if the record is known; ready(unit) as gradients become final;
/// conclude(record) or conclude(nothing) after the check; and await(unit) before the unit's weights are used
/// again. Current state is never written for a step before its check, so nothing is ever rolled back and the
/// bits are those of the simple path (none.hpp).
///
/// Weights that live in host memory (configuration::offloaded) are updated there. Their gradients are held in
/// pinned buffers until the check, and no weights are sent.
///
/// All calls come from one thread, the one that queues the device's work. An exception on the worker's thread
/// reaches the next call. `Scheduler` is scheduler, or a test's recording one.
template <device_policy D, element T, class Scheduler = scheduler>
class worker {
public:
  /// Bytes of all state off the device, and of its buffers.
  static memory_bytes bytes(configuration const& a) {
    return host_buckets<D, T>::bytes(a) + device_updated_state<D, T>::bytes(a);
  }

  /// `compute` is the stream of forward and backward. `units` must outlive the worker. `weights(unit)` gives
  /// a unit's working weights, [elements] T in device memory, or in host memory if they are offloaded.
  /// `times` records the links and CPU Adam; it may be null.
  template <class Weights>
  worker(D& device, typename D::stream& compute, std::vector<autograd::unit_layout> const& units,
         configuration const& a, Weights&& weights, recorder<D>* times = nullptr)
      : compute_{&compute},
        buckets_{a.buckets},
        immediate_{a.immediate},
        offloaded_{a.offloaded},
        scheduler_{a},
        copies_{device, units, a, weights, times, scheduler_} {
    thread_ = std::thread{[this] { run(); }};
  }
  worker(worker const&) = delete;
  worker& operator=(worker const&) = delete;
  ~worker() {
    {
      std::lock_guard const lock{mutex_};
      stopping_ = true;
    }
    wake_up_.notify_all();
    thread_.join();
    copies_.drain_link();
  }

  /// The record of the coming step, if it is not clipped: permits updates before the check.
  void announce(step_record const& record) {
    std::lock_guard const lock{mutex_};
    announced_ = record;
    scheduler_.announce();
  }

  /// The gradient of a unit is final after the queued work. Nothing queued later reads its weights before
  /// await(unit).
  void ready(int unit, zero::unit_gradient gradient) {
    if (!copies_.trains(unit)) {
      return;
    }
    {
      std::unique_lock lock{mutex_};
      // The thread may still wait for this unit's event of the last step, which is recorded anew below.
      progress_.wait(lock, [&] { return waits_for_ != unit || failure_; });
      rethrow();
      expect(announced_ || !immediate_ || !offloaded_.gradient_of(unit), exit_code::internal,
             "a step with offloaded gradients was not announced: expected its learning rate before its first "
             "gradient");
      scheduler_.gradient_queued(unit);
      copies_.gradient_queued(unit, gradient, *compute_);
    }
    wake_up_.notify_all();
  }

  /// The step was checked, and all of its gradients were waited for. `record` has the true clip factor;
  /// nothing: the step changes nothing.
  void conclude(std::optional<step_record> const& record) {
    {
      std::lock_guard const lock{mutex_};
      rethrow();
      flushed_ = false;
      record_ = record;
      announced_.reset();
      scheduler_.check(!record                  ? check_result::skipped
                       : record->factor == 1.0F ? check_result::unclipped
                                                : check_result::clipped);
    }
    wake_up_.notify_all();
  }

  /// Work queued on `stream` from now on may use the unit's weights where they live. Blocks until their copy
  /// is queued, not until it has ended; for weights in host memory, until CPU Adam is done.
  void await(int unit, typename D::stream& stream) {
    std::unique_lock lock{mutex_};
    if (copies_.host().any_stale()) {
      copies_.host().refresh([this](std::size_t i) { return scheduler_.current(i); });
    }
    each_bucket(unit, [&](std::size_t i, tier where) {
      bool const device_updated = where == tier::device_updated;
      progress_.wait(lock, [&] {
        return (is_served(i) && (!device_updated || copies_.device_updated().returns(i))) || failure_;
      });
      rethrow();
      if (device_updated) {
        copies_.device_updated().await(i, stream);
      } else {
        copies_.host().await_weights(i, stream);
      }
    });
  }
  /// Would await(unit) return at once?
  [[nodiscard]] bool returned(int unit) const {
    std::lock_guard const lock{mutex_};
    bool all = !failure_ && !copies_.host().any_stale();
    each_bucket(unit, [&](std::size_t i, tier) { all = all && is_served(i); });
    return all;
  }

  /// Work queued on `stream` from now on may overwrite the last gradient of the unit, as far as the worker
  /// reads it. Blocks until those reads are queued.
  void await_gradient(int unit, typename D::stream& stream) {
    std::unique_lock lock{mutex_};
    each_bucket(unit, [&](std::size_t i, tier where) {
      progress_.wait(lock, [&] { return scheduler_.gradient_left(i) || failure_; });
      rethrow();
      if (where == tier::device_updated) {
        copies_.device_updated().await_gradient(i, stream);
      } else {
        copies_.host().await_fetch(i, stream);
      }
    });
  }

  /// Waits until all weights are up to date and no state is pending. Between steps only.
  void flush() {
    std::unique_lock lock{mutex_};
    rethrow();
    expect(!scheduler_.before_check(), exit_code::internal,
           "an offload worker was flushed in the middle of a step");
    if (flushed_) {  // many reads in a row flush once
      return;
    }
    flushing_ = true;
    wake_up_.notify_all();
    progress_.wait(
        lock, [&] { return failure_ || (scheduler_.settled() && copies_.device_updated().wrote_all()); });
    flushing_ = false;
    rethrow();
    copies_.synchronize();
    flushed_ = true;
  }

  /// Of all buckets off the device, since the beginning.
  [[nodiscard]] worker_counts counts() const {
    std::lock_guard const lock{mutex_};
    auto all = scheduler_.counts();
    all.updated += copies_.updated_by_device();
    return all;
  }
  /// An estimate of the share of steps with clip factor 1.
  [[nodiscard]] double hit_rate() const {
    std::lock_guard const lock{mutex_};
    return scheduler_.hit_rate();
  }

  /// The threads of CPU Adam; null if no bucket is on the host.
  [[nodiscard]] adam_workers* workers() const noexcept { return copies_.host().workers(); }

  /// Reads elements [first, first + size) of the bucket at `index`, after flush().
  void read(std::size_t index, state_part part, std::int64_t first, std::span<float> to) {
    if (buckets_[index].where == tier::host) {
      std::lock_guard const lock{mutex_};
      copies_.host().read(index, scheduler_.current(index), part, first, to);
    } else {
      copies_.device_updated().read(index, part, first, to);
    }
  }
  /// Writes them. A written master also sets its working weight, which is up to date after the next await().
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    if (buckets_[index].where == tier::host) {
      std::lock_guard const lock{mutex_};
      copies_.host().write(index, part, first, from);
    } else {
      copies_.device_updated().write(index, part, first, from);
    }
  }

private:
  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }
  template <class Call>
  void each_bucket(int unit, Call&& call) const {
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i].unit == unit && buckets_[i].where != tier::resident) {
        call(i, buckets_[i].where);
      }
    }
  }

  // With the lock held
  // -----------------------------------------------------------------------------------------------

  [[nodiscard]] bool is_served(std::size_t index) const {
    return scheduler_.before_check() || scheduler_.weights_made(index);
  }

  /// \returns whether any copy was queued.
  bool tend_copies() {
    bool const before_check = scheduler_.before_check();
    // After a flush, state may be read and written from outside until the next step has begun.
    bool const ahead = before_check || !(flushing_ || flushed_);
    auto const& record = !before_check ? record_ : immediate_ ? announced_ : no_record_;
    bool const any = copies_.tend({record, ahead});
    if (any) {
      progress_.notify_all();
    }
    return any;
  }

  // The thread
  // ------------------------------------------------------------------------------------------------

  void run() noexcept {
    try {
      serve();
    } catch (...) {
      std::lock_guard const lock{mutex_};
      failure_ = std::current_exception();
    }
    progress_.notify_all();
  }

  void serve() {
    std::unique_lock lock{mutex_};
    while (true) {
      copies_.take_arrivals();
      auto t = scheduler_.next_task();
      bool const went_on = !t && tend_copies();
      if (!t) {
        t = scheduler_.next_task();
      }
      if (t) {
        perform(lock, *t);
        progress_.notify_all();
      } else if (!went_on && !wait_for_device(lock)) {
        if (stopping_) {
          return;
        }
        progress_.notify_all();
        wake_up_.wait(lock);
      }
    }
  }
  /// Waits for the next event that some work depends on. \returns false if there is none.
  bool wait_for_device(std::unique_lock<std::mutex>& lock) {
    auto const wait_for = [&lock](typename D::event const& end) {
      lock.unlock();
      end.wait();
      lock.lock();
    };
    if (auto const* const arrival = copies_.next_arrival()) {
      wait_for(*arrival);
      copies_.take_arrival();
    } else if (auto const* const device_updated = copies_.next_device_updated()) {
      wait_for(*device_updated);
    } else if (auto const* const sent = copies_.next_sent();
               sent != nullptr && (flushing_ || scheduler_.waits_for_buffer())) {
      wait_for(*sent);
    } else if (auto const unit = scheduler_.next_final()) {
      waits_for_ = *unit;
      wait_for(copies_.final_event(*unit));
      waits_for_ = -1;
      progress_.notify_all();
    } else {
      return false;
    }
    return true;
  }

  /// Releases the lock while the threads work: no other thread touches a task's buffers and records
  /// meanwhile.
  void perform(std::unique_lock<std::mutex>& lock, worker_task const& t) {
    step_record const record = (scheduler_.before_check() ? announced_ : record_).value_or(step_record{});
    auto const with = scheduler_.begin(t);
    profile::range const named{host_buckets<D, T>::title_of(t), copies_.name_of(t.bucket)};
    copies_.host().name_work(t);
    // This thread queues copies while the threads of CPU Adam work.
    workers()->meanwhile({this, [](void* self) {
                            auto* const s = static_cast<worker*>(self);
                            std::lock_guard const copies{s->mutex_};
                            s->tend_copies();
                          }});
    lock.unlock();
    copies_.host().work(t, with, record);
    lock.lock();
    workers()->meanwhile({});
    if (t.sends()) {
      copies_.send(t.bucket, with.weights);
    }
    scheduler_.finish(t, with);
  }
  typename D::stream* compute_;
  placement buckets_;
  bool immediate_;
  zero::offloaded_units offloaded_;
  mutable std::mutex mutex_;
  std::condition_variable wake_up_;   // for the worker's thread: there may be work
  std::condition_variable progress_;  // for the callers: buckets were updated
  Scheduler scheduler_;
  bucket_copies<D, T, Scheduler> copies_;
  std::optional<step_record> announced_, record_;
  std::optional<step_record> const no_record_{};
  bool flushing_ = false;
  bool flushed_ = true;  // no step was concluded since the last flush
  bool stopping_ = false;
  int waits_for_ = -1;  // the unit whose event the thread waits for, without the lock
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace superoffload::offload
