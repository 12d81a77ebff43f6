// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/profile.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/offload/adam_workers.hpp>
#include <superoffload/offload/arrangement.hpp>
#include <superoffload/offload/host_state.hpp>
#include <superoffload/offload/link_streams.hpp>
#include <superoffload/offload/service_counts.hpp>
#include <superoffload/offload/service_order.hpp>
#include <superoffload/offload/slots.hpp>
#include <superoffload/offload/split_state.hpp>
#include <superoffload/offload/step_record.hpp>
#include <superoffload/offload/streamed_state.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace superoffload::offload {

/// Updates the buckets whose state lives off the device, on a thread of its own, while the device computes.
///
/// A step goes: announce(record), if it is known; ready(unit) as gradients become final; conclude(record) or
/// conclude(nothing) with the verdict; await(unit) before the unit's weights are used again. Between the
/// first ready and conclude, buckets on the host are emitted, newest first: their new weights are computed
/// and sent while their state stays. A step that is accepted as announced makes their state pending; it is
/// committed in one pass with the next step, or while there is nothing else to do. After conclude, what was
/// not served yet is, in the order of the forward, with the true factor. State is never written before the
/// verdict, so there is nothing to roll back and the bits are those of the simple path.
///
/// Weights that live in host memory (arrangement::flow) are updated there: their gradients are held in slots
/// until the verdict, and nothing is sent. In the immediate mode, whatever was announced is updated as its
/// gradient comes.
///
/// Calls come from one thread, the one that queues the device's work. What the server throws reaches its next
/// call.
template <device_policy D, element T>
class server {
public:
  static memory_plan bytes(arrangement const& a) {
    auto const largest = a.largest(place::host);
    return {.device = streamed_state<D, T>::device_bytes(a) + static_cast<std::size_t>(largest) * sizeof(T),
            .host = host_state<D, T>::bytes(a) + split_state<D, T>::bytes(a) +
                    streamed_state<D, T>::host_bytes(a.buckets) + slot_pool<D, T>::bytes(largest, a.slots)};
  }

  /// `compute` is the stream that forward and backward are queued on; `units` outlive the server;
  /// `weights(unit)` gives a unit's working weights, [elements] T in device memory, or in host memory where
  /// they flow. `times` sees what the links and CPU Adam do, if it is given.
  template <class Weights>
  server(D& device, typename D::stream& compute, std::vector<autograd::unit_layout> const& units,
         arrangement const& a, Weights&& weights, recorder<D>* times = nullptr)
      : times_{times},
        compute_{&compute},
        units_{&units},
        speculates_{a.speculates},
        least_acceptance_{a.least_acceptance()},
        immediate_{a.immediate},
        flow_{a.flow},
        workers_{a.largest(place::host) == 0
                     ? nullptr
                     : std::make_unique<adam_workers>(device.pci_address(), a.workers, a.resource_group)},
        host_{device, units, a, workers_.get()},
        split_{device, units, a, workers_.get(), weights},
        slots_{device, a.largest(place::host), a.slots},
        link_{device},
        streamed_{device, link_, units, a, weights, times},
        packed_{device, static_cast<std::size_t>(a.largest(place::host)) * sizeof(T)},
        final_(units.size()) {
    if (times_ != nullptr && workers_ != nullptr) {
      record_workers();
    }
    for (auto const& b : a.buckets) {
      auto& e = entries_.emplace_back();
      e.bucket = b;
      e.on_host = b.where == place::host;
      e.in_place = split_state<D, T>::keeps(a, b);
      if (e.on_host) {
        e.weights = weights(b.unit) + b.offset;
        e.down = std::make_unique<typename D::event>(device);
        e.up = std::make_unique<typename D::event>(device);
      }
      if (auto& f = final_[static_cast<std::size_t>(b.unit)]; f.event == nullptr) {
        f.event = std::make_unique<typename D::event>(device);
      }
    }
    thread_ = std::thread{[this] { run(); }};
  }
  server(server const&) = delete;
  server& operator=(server const&) = delete;
  ~server() {
    {
      std::lock_guard const lock{mutex_};
      stopping_ = true;
    }
    bell_.notify_all();
    thread_.join();
    drain(link_.up);  // what is under way uses the slots, and events
    drain(link_.down);
  }

  /// The coming step, should it be accepted as it is: permits to serve buckets before the verdict.
  void announce(step_record const& record) {
    std::lock_guard const lock{mutex_};
    announced_ = record;
  }

  /// The gradient of a unit is final, and nothing queued later reads its weights before await(unit).
  void ready(int unit, zero::unit_gradient gradient) {
    auto& f = final_[static_cast<std::size_t>(unit)];
    if (f.event == nullptr) {
      return;
    }
    {
      std::unique_lock lock{mutex_};
      // The server may still be about to return from waiting for the last step's event.
      news_.wait(lock, [&] { return waits_for_ != unit || failure_; });
      rethrow();
      expect(announced_ || !immediate_ || !flow_.gradient_of(unit), exit_code::internal,
             "a step whose gradients leave the device as they come was not announced");
      compute_->record(*f.event);
      gathering_ = true;
      f.gradient = gradient;
      f.computing = true;
      for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].bucket.unit == unit && entries_[i].bucket.where != place::resident) {
          expect(entries_[i].served == judged_, exit_code::internal,
                 "a gradient became final before the last step's weights were awaited");
          entries_[i].state = stage::final;
          entries_[i].arrival = ++arrivals_;
          entries_[i].computing = true;
        }
      }
    }
    bell_.notify_all();
  }

  /// The verdict of the step, whose gradients were all waited for: its record with the true factor, or
  /// nothing when it changes nothing.
  void conclude(std::optional<step_record> const& record) {
    {
      std::lock_guard const lock{mutex_};
      rethrow();
      ++judged_;
      flushed_ = false;
      gathering_ = false;
      record_ = record;
      as_announced_ = announced_ && record && record->factor == 1.0F;
      acceptance_ = 0.9 * acceptance_ + (record && record->factor == 1.0F ? 0.1 : 0.0);
      for (auto& e : entries_) {
        if (e.busy) {
          e.judge_later = true;
        } else {
          judge(e);
        }
      }
      announced_.reset();
    }
    bell_.notify_all();
  }

  /// Work queued on `stream` from now on may use the unit's weights where they live. Blocks until their
  /// return has been queued, not until they are there; where they live in host memory, until CPU Adam is
  /// done.
  void await(int unit, typename D::stream& stream) {
    std::unique_lock lock{mutex_};
    if (any_stale_) {
      send_stale();
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      auto& e = entries_[i];
      if (e.bucket.unit != unit || e.bucket.where == place::resident) {
        continue;
      }
      bool const streamed = e.bucket.where == place::streamed;
      news_.wait(lock,
                 [&] { return (e.served == judged_ && (!streamed || streamed_.returns(i))) || failure_; });
      rethrow();
      if (streamed) {
        streamed_.await(i, stream);
      } else if (e.sent) {
        stream.wait(*e.up);
      }
    }
  }
  /// Would await(unit) return at once?
  [[nodiscard]] bool returned(int unit) const {
    std::lock_guard const lock{mutex_};
    for (auto const& e : entries_) {
      if (e.bucket.unit == unit && e.bucket.where != place::resident && e.served != judged_) {
        return false;
      }
    }
    return !failure_ && !any_stale_;
  }

  /// Work queued on `stream` from now on may overwrite the last gradient of the unit, as far as the server
  /// reads it. Blocks until that has been queued.
  void await_gradient(int unit, typename D::stream& stream) {
    std::unique_lock lock{mutex_};
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      auto& e = entries_[i];
      if (e.bucket.unit != unit || e.bucket.where == place::resident) {
        continue;
      }
      news_.wait(lock, [&] { return e.state != stage::final || failure_; });
      rethrow();
      if (e.bucket.where == place::streamed) {
        streamed_.await_gradient(i, stream);
      } else if (e.fetched) {
        stream.wait(*e.down);
      }
    }
  }

  /// Waits until all weights are back and no state is pending. Between steps only.
  void flush() {
    std::unique_lock lock{mutex_};
    rethrow();
    expect(!gathering_, exit_code::internal, "a server was flushed in the middle of a step");
    if (flushed_) {  // as for all but the first of many reads in a row
      return;
    }
    flushing_ = true;
    bell_.notify_all();
    news_.wait(lock, [&] { return failure_ || settled(); });
    flushing_ = false;
    rethrow();
    link_.up.synchronize();
    streamed_.synchronize();
    flushed_ = true;
  }

  [[nodiscard]] service_counts counts() const {
    std::lock_guard const lock{mutex_};
    return counts_;
  }
  /// An estimate of how often a step is accepted with the factor 1.
  [[nodiscard]] double acceptance() const {
    std::lock_guard const lock{mutex_};
    return acceptance_;
  }

  /// Of CPU Adam; null where no bucket is on the host.
  [[nodiscard]] adam_workers* workers() const noexcept { return workers_.get(); }

  /// Elements [first, first + size) of the bucket at `index`, after flush().
  void read(std::size_t index, state_part part, std::int64_t first, std::span<float> to) {
    if (entries_[index].in_place) {
      split_.read(index, part, first, to);
    } else if (entries_[index].on_host) {
      host_.read(index, part, first, to);
    } else {
      streamed_.read(index, part, first, to);
    }
  }
  /// The same, written; with the master its working weight, which is there after the next await().
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    if (entries_[index].in_place) {
      split_.write(index, part, first, from);
    } else if (entries_[index].on_host) {
      host_.write(index, part, first, from);
      std::lock_guard const lock{mutex_};
      entries_[index].stale = entries_[index].stale || part == state_part::master;
      any_stale_ = any_stale_ || entries_[index].stale;
    } else {
      streamed_.write(index, part, first, from);
    }
  }

private:
  struct entry : standing {
    offload::bucket bucket;
    T* weights = nullptr;
    std::unique_ptr<typename D::event> down, up;
    T* gradient = nullptr;  // a slot, from `fetching` on
    T* kept = nullptr;      // a slot with the gradient of the pending step
    step_record accepted, emitted;
    std::int64_t served = 0;   // the last step whose weights are on their way
    bool in_place = false;     // its weights are in host memory, beside its state
    bool fetched = false;      // `down` was recorded
    bool sent = false;         // `up` was recorded
    bool stale = false;        // a master was written from outside
    bool busy = false;         // the workers have it
    bool judge_later = false;  // the verdict came while they had
  };
  struct final_gradient {
    std::unique_ptr<typename D::event> event;  // null: nothing of the unit trains
    zero::unit_gradient gradient;
    bool computing = false;  // the device may not have come that far
  };

  static std::size_t bytes_of(entry const& e) { return static_cast<std::size_t>(e.bucket.count) * sizeof(T); }
  // Under way at a time. Who waits for a copy waits for what was queued before it; and a task of CPU Adam,
  // during which nothing is queued, takes about as long as a bucket's state does on the link.
  static constexpr std::size_t most_fetches = 6, most_uploads = 3, most_writes = 2;

  void rethrow() const {
    if (failure_) {
      std::rethrow_exception(failure_);
    }
  }

  // Under the lock
  // -------------------------------------------------------------------------------------------

  [[nodiscard]] bool speculating() const {
    return gathering_ && announced_ && (immediate_ || (speculates_ && acceptance_ >= least_acceptance_));
  }

  void judge(entry& e) {
    if (e.bucket.where == place::resident) {
      e.served = judged_;
      return;
    }
    switch (e.state) {
      case stage::emitted:
        if (as_announced_) {
          e.kept = std::exchange(e.gradient, nullptr);
          e.pending = true;
          e.accepted = e.emitted;
          e.state = stage::idle;
          e.served = judged_;
        } else {
          ++counts_.sent_again;
          e.state = record_ ? stage::arrived : stage::refused;
        }
        break;
      case stage::idle:  // no gradient in this step, or updated at once
        e.served = judged_;
        break;
      case stage::final:
      case stage::fetching:
      case stage::held:
      case stage::arrived:
        if (!record_) {
          e.served = judged_;
          if (e.state == stage::fetching) {
            e.dropped = true;
            break;
          }
          if (e.state != stage::final) {
            slots_.give(std::exchange(e.gradient, nullptr));
          }
          e.state = stage::idle;
        } else if (e.state == stage::held) {
          e.state = stage::arrived;
        }
        break;
      case stage::refused:
        break;
    }
  }

  /// The weights of masters that were written. Nothing else is under way.
  void send_stale() {
    any_stale_ = false;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      auto& e = entries_[i];
      if (!e.stale) {
        continue;
      }
      e.stale = false;
      auto* const slot = slots_.take();
      working_on_ = {"weights of ", e.bucket.unit};
      host_.weights(i, slot);
      link_.up.copy(e.weights, slot, bytes_of(e));
      link_.up.synchronize();
      slots_.give(slot);
    }
  }

  [[nodiscard]] bool settled() const {
    for (auto const& e : entries_) {
      if (e.served != judged_ || e.pending || e.state != stage::idle) {
        return false;
      }
    }
    return sending_.empty() && fetching_.empty() && streamed_.wrote_all();
  }

  /// Gives back the slots of weights that have arrived.
  void reap() {
    while (!sending_.empty() && entries_[sending_.front().index].up->done()) {
      slots_.give(sending_.front().slot);
      sending_.pop_front();
    }
  }

  /// The host queues a backward long before the device runs it.
  void look_for_gradients() {
    for (auto& f : final_) { f.computing = f.computing && !f.event->done(); }
    for (auto& e : entries_) { e.computing = final_[static_cast<std::size_t>(e.bucket.unit)].computing; }
  }
  [[nodiscard]] std::optional<std::size_t> next_in(stage state) const {
    return offload::next_in(entries_, state, gathering_);
  }
  [[nodiscard]] std::optional<service_task> next_task() const {
    return offload::next_task(
        entries_, {gathering_, speculating(), immediate_, slots_.free(), fetching_.size(), link_is_late_});
  }

  void start_fetches() {
    // A slot stays free for the weights of what is emitted first.
    auto const reserve = static_cast<std::size_t>(speculating() && !immediate_ ? 2 : 1);
    while (fetching_.size() < most_fetches && slots_.free() >= reserve) {
      auto const next = next_in(stage::final);
      if (!next) {
        return;
      }
      auto& e = entries_[*next];
      auto const& f = final_[static_cast<std::size_t>(e.bucket.unit)];
      e.gradient = slots_.take();
      auto& down = link_.down;
      down.wait(*f.event);
      record_span(times_, down_track_, down, "gradient of ", e.bucket.unit, [&] {
        if (f.gradient.is_wide && !std::is_same_v<T, wide<T>>) {
          launch(down,
                 kernel::convert<wide<T>, T>{static_cast<wide<T> const*>(f.gradient.data) + e.bucket.offset,
                                             packed_.template as<T>(), e.bucket.count});
          down.copy(e.gradient, packed_.data(), bytes_of(e));
        } else {
          down.copy(e.gradient, static_cast<T const*>(f.gradient.data) + e.bucket.offset, bytes_of(e));
        }
      });
      down.record(*e.down);
      e.fetched = true;
      e.state = stage::fetching;
      fetching_.push_back(*next);
      news_.notify_all();  // somebody may wait to write the next gradient there
    }
  }

  /// Takes note of copies that have ended and queues others. \returns whether streamed state has moved.
  bool tend_copies() {
    reap();
    take_arrivals();
    look_for_gradients();
    start_fetches();
    return advance_streamed();
  }
  void take_arrivals() {
    while (!fetching_.empty() && entries_[fetching_.front()].down->done()) { arrive(fetching_.front()); }
  }
  void arrive(std::size_t index) {
    auto& e = entries_[index];
    fetching_.pop_front();
    if (std::exchange(e.dropped, false)) {
      slots_.give(std::exchange(e.gradient, nullptr));
      if (e.state == stage::fetching) {  // and not final again, in the step after that
        e.state = stage::idle;
      }
    } else {
      e.state = e.in_place && gathering_ && !immediate_ ? stage::held : stage::arrived;
    }
  }

  /// Streamed buckets: the first ones are uploaded ahead of the verdict, all are updated after it in the
  /// order of the forward, each staging that gets free taking the next one's state; immediate, in the order
  /// in which their gradients come.
  bool advance_streamed() {
    bool any = streamed_.write_back(most_writes);
    bool all_updated = true;
    auto const record = record_of_streamed();
    while (auto const next = record ? next_streamed() : std::nullopt) {
      if (!streamed_.upload(*next, most_uploads)) {
        all_updated = false;
        break;
      }
      auto& e = entries_[*next];
      auto const& f = final_[static_cast<std::size_t>(e.bucket.unit)];
      profile::range const named{"streamed update of ", name_of(e)};
      streamed_.update(*next, *record, f.gradient, *f.event);
      e.state = stage::idle;
      if (!gathering_) {
        e.served = judged_;
      }
      ++counts_.updated;
      any = true;
    }
    // After a flush, state may be read and written from outside until the next step has begun.
    bool const may_upload_early = !immediate_ && all_updated && (gathering_ || !(flushing_ || flushed_));
    bool const all_uploaded = !may_upload_early || upload_early();
    link_is_late_ = !all_updated;
    held_back_ = !all_updated || !all_uploaded || !streamed_.wrote_all();
    if (any) {
      news_.notify_all();
    }
    return any;
  }
  /// For the coming verdict, in the order of the forward, as many as there are stagings: those are updated
  /// first. \returns whether all of them are on their way.
  bool upload_early() {
    std::size_t uploaded = 0;
    for (std::size_t i = 0; i < entries_.size() && uploaded < streamed_.stagings(); ++i) {
      if (entries_[i].bucket.where == place::streamed) {
        if (!streamed_.upload(i, most_uploads)) {
          return false;
        }
        ++uploaded;
      }
    }
    return true;
  }
  /// What they are updated with, if they may be now.
  [[nodiscard]] std::optional<step_record> record_of_streamed() const {
    return !gathering_ ? record_ : immediate_ ? announced_ : std::nullopt;
  }
  [[nodiscard]] std::optional<std::size_t> next_streamed() const {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      auto const& e = entries_[i];
      if (e.bucket.where == place::streamed && e.state == stage::final &&
          (!first || (gathering_ && e.arrival < entries_[*first].arrival))) {
        first = i;
      }
    }
    return first;
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
    news_.notify_all();
  }

  void serve() {
    std::unique_lock lock{mutex_};
    while (true) {
      take_arrivals();
      auto t = next_task();
      bool const streamed = !t && tend_copies();
      if (!t) {
        t = next_task();
      }
      if (t) {
        auto& e = entries_[t->index];
        e.busy = true;
        perform(lock, *t);
        e.busy = false;
        if (std::exchange(e.judge_later, false)) {
          judge(e);
        }
        news_.notify_all();
      } else if (streamed) {
        continue;
      } else if (!fetching_.empty()) {
        auto const index = fetching_.front();
        lock.unlock();
        entries_[index].down->wait();
        lock.lock();
        arrive(index);
      } else if (auto const* const end = held_back_ ? streamed_.next_end() : nullptr) {
        lock.unlock();
        end->wait();
        lock.lock();
      } else if (!sending_.empty() && (flushing_ || next_in(stage::final) || next_in(stage::arrived))) {
        auto const index = sending_.front().index;
        lock.unlock();
        entries_[index].up->wait();
        lock.lock();
      } else if (auto const computing = next_computing(entries_)) {
        waits_for_ = entries_[*computing].bucket.unit;
        auto const& f = final_[static_cast<std::size_t>(waits_for_)];
        lock.unlock();
        f.event->wait();
        lock.lock();
        waits_for_ = -1;
        news_.notify_all();
      } else if (stopping_) {
        return;
      } else {
        news_.notify_all();
        bell_.wait(lock);
      }
    }
  }

  /// Without the lock while the workers work: nobody else touches an entry's slots and records then.
  void perform(std::unique_lock<std::mutex>& lock, service_task const& t) {
    auto& e = entries_[t.index];
    auto const index = t.index;
    bool const had_pending = e.pending;
    bool const before_verdict = gathering_;
    working_on_ = {title_of(t.what, had_pending), e.bucket.unit};
    profile::range const named{working_on_.what, name_of(e)};
    step_record const record = (before_verdict ? announced_ : record_).value_or(step_record{});
    // The workers do not wait for the copies to be looked after.
    auto const work = [&](auto const& on_state) {
      workers_->meanwhile({this, [](void* self) {
                             auto* const s = static_cast<server*>(self);
                             std::lock_guard const copies{s->mutex_};
                             s->tend_copies();
                           }});
      lock.unlock();
      on_state();
      lock.lock();
      workers_->meanwhile({});
      e.pending = false;
      counts_.committed += had_pending ? 1 : 0;
    };
    T* weights = nullptr;
    switch (t.what) {
      case service::commit:
        work([&] { host_.commit(index, e.accepted, e.kept); });
        slots_.give(std::exchange(e.kept, nullptr));
        return;
      case service::emit:
        weights = had_pending ? std::exchange(e.kept, nullptr) : slots_.take();
        work([&] {
          if (had_pending) {
            host_.commit_emit(index, e.accepted, weights, record, e.gradient);
          } else {
            host_.emit(index, record, e.gradient, weights);
          }
        });
        e.emitted = record;
        ++counts_.emitted;
        break;
      case service::update:
        weights = std::exchange(e.gradient, nullptr);
        work([&] {
          if (e.in_place) {
            split_.update(index, record, weights);
          } else if (had_pending) {
            host_.commit_update(index, e.accepted, e.kept, record, weights);
          } else {
            host_.update(index, record, weights);
          }
        });
        if (had_pending) {
          slots_.give(std::exchange(e.kept, nullptr));
        }
        ++counts_.updated;
        break;
      case service::send_again:
        weights = std::exchange(e.gradient, nullptr);
        work([&] { host_.weights(index, weights); });
        break;
    }
    if (e.in_place) {
      slots_.give(weights);
    } else {
      send(index, weights);
    }
    settle(e, t.what, before_verdict);
  }

  /// A track for each link and each worker.
  void record_workers() {
    down_track_ = times_->add_track(resource::link_down, "gradients to host");
    up_track_ = times_->add_track(resource::link_up, "weights to device");
    for (int i = 0; i < workers_->threads().size(); ++i) {
      worker_tracks_.push_back(times_->add_track(resource::cpu_adam, concat("CPU Adam ", i)));
    }
    workers_->tell({this,
                    [](void* self, int thread) {
                      auto const* const s = static_cast<server*>(self);
                      s->times_->begin(s->worker_tracks_[static_cast<std::size_t>(thread)],
                                       s->working_on_.what, s->working_on_.unit);
                    },
                    [](void* self, int thread) {
                      auto const* const s = static_cast<server*>(self);
                      s->times_->end(s->worker_tracks_[static_cast<std::size_t>(thread)]);
                    }});
  }

  static char const* title_of(service what, bool had_pending) {
    switch (what) {
      case service::commit:
        return "commit of ";
      case service::emit:
        return had_pending ? "commit and emit of " : "emit of ";
      case service::update:
        return had_pending ? "commit and update of " : "update of ";
      case service::send_again:
        break;
    }
    return "old weights of ";
  }
  [[nodiscard]] std::string_view name_of(entry const& e) const {
    return (*units_)[static_cast<std::size_t>(e.bucket.unit)].name();
  }

  /// The copy back waits for the last kernel that reads the old weights.
  void send(std::size_t index, T* weights) {
    auto& e = entries_[index];
    auto& up = link_.up;
    up.wait(*final_[static_cast<std::size_t>(e.bucket.unit)].event);
    record_span(times_, up_track_, up, "weights of ", e.bucket.unit,
                [&] { up.copy(e.weights, weights, bytes_of(e)); });
    up.record(*e.up);
    e.sent = true;
    sending_.push_back({index, weights});
  }

  void settle(entry& e, service what, bool before_verdict) {
    e.state = what == service::emit ? stage::emitted : stage::idle;
    if (!before_verdict) {
      e.served = judged_;
    }
  }

  recorder<D>* times_;
  int down_track_ = -1, up_track_ = -1;
  std::vector<int> worker_tracks_;
  struct {
    char const* what = "";
    int unit = 0;
  } working_on_;  // for the workers' tracks; changes only between two of their tasks
  typename D::stream* compute_;
  std::vector<autograd::unit_layout> const* units_;
  bool speculates_;
  double least_acceptance_;
  bool immediate_;
  zero::flow flow_;
  std::unique_ptr<adam_workers> workers_;  // null: no bucket is on the host
  host_state<D, T> host_;
  split_state<D, T> split_;
  slot_pool<D, T> slots_;
  link_streams<D> link_;
  streamed_state<D, T> streamed_;
  buffer<D> packed_;
  std::vector<final_gradient> final_;  // by unit
  std::vector<entry> entries_;         // by bucket

  mutable std::mutex mutex_;
  std::condition_variable bell_;  // rung for the server's thread
  std::condition_variable news_;  // of served buckets, for the others
  struct shipment {
    std::size_t index;
    T* slot;
  };
  std::deque<shipment> sending_;
  std::deque<std::size_t> fetching_;
  std::optional<step_record> announced_, record_;
  std::int64_t judged_ = 0;
  std::int64_t arrivals_ = 0;
  bool gathering_ = false;
  bool flushing_ = false;
  bool flushed_ = true;        // nothing was concluded since
  bool held_back_ = false;     // copies of streamed state wait for those before them
  bool link_is_late_ = false;  // and updates that may be for theirs
  bool stopping_ = false;
  bool any_stale_ = false;
  int waits_for_ = -1;         // the unit whose event the thread waits for without the lock
  bool as_announced_ = false;  // the last verdict
  double acceptance_ = 1.0;
  service_counts counts_;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace superoffload::offload
