// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/kernel/elementwise.hpp>
#include <superoffload/offload/configuration.hpp>
#include <superoffload/offload/scheduling/scheduler.hpp>
#include <superoffload/offload/state/adam_workers.hpp>
#include <superoffload/offload/state/host_state.hpp>
#include <superoffload/offload/state/link_streams.hpp>
#include <superoffload/offload/state/split_state.hpp>
#include <superoffload/offload/state/state_bytes.hpp>
#include <superoffload/offload/state/step_record.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace superoffload::offload {

/// The buckets that CPU Adam updates: their state, the pinned buffers, and the copies of gradients and
/// weights. Makes no decisions. For one thread at a time.
template <device_policy D, element T>
class host_buckets {
public:
  /// Bytes of state and of pinned buffers, and of the device buffer in which wide gradients are rounded.
  static memory_bytes bytes(configuration const& a) {
    auto const of_state = bytes_of(a, sizeof(T));
    return {.device = of_state.pinned_buffer,  // to convert a wide gradient
            .host = of_state.whole + of_state.in_place +
                    of_state.pinned_buffer * static_cast<std::size_t>(a.pinned_buffers)};
  }

  /// Arguments as for worker. `link` must outlive it.
  template <class Weights>
  host_buckets(D& device, link_streams<D>& link, std::vector<autograd::unit_layout> const& units,
               configuration const& a, Weights&& weights, recorder<D>* times)
      : times_{times},
        link_{&link},
        largest_{a.largest(tier::host)},
        workers_{largest_ == 0
                     ? nullptr
                     : std::make_unique<adam_workers>(device.pci_address(), a.workers, a.resource_group)},
        host_{device, units, a, workers_.get()},
        split_{device, units, a, workers_.get(), weights},
        pinned_{device, weight_bytes(largest_) * static_cast<std::size_t>(a.pinned_buffers), memory::host},
        packed_{device, weight_bytes(largest_)} {
    if (times_ != nullptr && workers_ != nullptr) {
      record_workers();
    }
    for (auto const& b : a.buckets) {
      auto& p = pieces_.emplace_back();
      if (b.where == tier::host) {
        p.bucket = b;
        p.in_place = split_state<D, T>::keeps(a, b);
        p.weights = weights(b.unit) + b.offset;
        p.down = std::make_unique<typename D::event>(device);
        p.up = std::make_unique<typename D::event>(device);
      }
    }
  }
  host_buckets(host_buckets const&) = delete;
  host_buckets& operator=(host_buckets const&) = delete;
  ~host_buckets() {
    drain(link_->up);  // copies under way use the buffers and events
    drain(link_->down);
  }

  /// The threads of CPU Adam; null if no bucket is on the host.
  [[nodiscard]] adam_workers* workers() const noexcept { return workers_.get(); }

  // Copies
  // ---------------------------------------------------------------------------------------------------

  /// Queues the copy of a gradient to a pinned buffer, after the event `is_final`.
  void fetch(std::size_t index, int to, zero::unit_gradient gradient, typename D::event const& is_final) {
    auto& p = pieces_[index];
    auto& down = link_->down;
    down.wait(is_final);
    record_span(times_, down_track_, down, "gradient of ", p.bucket.unit, [&] {
      if (gradient.is_wide && !std::is_same_v<T, wide<T>>) {
        launch(down, kernel::convert<wide<T>, T>{static_cast<wide<T> const*>(gradient.data) + p.bucket.offset,
                                                 packed_.template as<T>(), p.bucket.count});
        down.copy(buffer_of(to), packed_.data(), weight_bytes(p.bucket.count));
      } else {
        down.copy(buffer_of(to), static_cast<T const*>(gradient.data) + p.bucket.offset,
                  weight_bytes(p.bucket.count));
      }
    });
    down.record(*p.down);
    p.fetched = true;
  }
  /// Queues the copy of new weights to where they live, after `is_final`: the last kernel that reads the old
  /// ones.
  void send(std::size_t index, int from, typename D::event const& is_final) {
    auto& p = pieces_[index];
    auto& up = link_->up;
    up.wait(is_final);
    record_span(times_, up_track_, up, "weights of ", p.bucket.unit,
                [&] { up.copy(p.weights, buffer_of(from), weight_bytes(p.bucket.count)); });
    up.record(*p.up);
    p.sent = true;
  }
  /// @{
  /// The end of the bucket's last fetch, and of its last send.
  [[nodiscard]] typename D::event const& fetched(std::size_t index) const { return *pieces_[index].down; }
  [[nodiscard]] typename D::event const& sent(std::size_t index) const { return *pieces_[index].up; }
  /// @}
  /// @{
  /// Lets `stream` wait for the last fetch or send, if there was one.
  void await_fetch(std::size_t index, typename D::stream& stream) const {
    if (pieces_[index].fetched) {
      stream.wait(*pieces_[index].down);
    }
  }
  void await_weights(std::size_t index, typename D::stream& stream) const {
    if (pieces_[index].sent) {
      stream.wait(*pieces_[index].up);
    }
  }
  /// @}

  // CPU Adam
  // -------------------------------------------------------------------------------------------------

  /// The name of the task's span in a recording, but for the unit's.
  static char const* title_of(worker_task const& t) {
    switch (t.what) {
      case service::commit:
        return "commit of ";
      case service::speculate:
        return t.commits ? "commit and speculative update of " : "speculative update of ";
      case service::update:
        return t.commits ? "commit and update of " : "update of ";
      case service::resend:
        break;
    }
    return "old weights of ";
  }
  /// Names the work on the workers' tracks; called before work().
  void name_work(worker_task const& t) { working_on_ = {title_of(t), pieces_[t.bucket].bucket.unit}; }
  /// Runs the task; returns when it is done. `record` is the step's.
  void work(worker_task const& t, scheduler::buffers const& with, step_record const& record) {
    auto& p = pieces_[t.bucket];
    auto const index = t.bucket;
    switch (t.what) {
      case service::commit:
        host_.commit(index, p.speculated, buffer_of(with.kept));
        break;
      case service::speculate:
        if (t.commits) {
          host_.commit_speculate(index, p.speculated, buffer_of(with.kept), record, buffer_of(with.gradient));
        } else if (t.writes_next) {
          host_.write_next(index, with.current, record, buffer_of(with.gradient), buffer_of(with.weights));
        } else {
          host_.speculate(index, record, buffer_of(with.gradient), buffer_of(with.weights));
        }
        p.speculated = record;
        break;
      case service::update:
        if (p.in_place) {
          split_.update(index, record, buffer_of(with.gradient));
        } else if (t.commits) {
          host_.commit_update(index, p.speculated, buffer_of(with.kept), record, buffer_of(with.gradient));
        } else {
          host_.update(index, with.current, record, buffer_of(with.gradient));
        }
        break;
      case service::resend:
        host_.weights(index, with.current, buffer_of(with.weights));
        break;
    }
  }

  // Access from outside, while nothing is under way
  // -------------------------------------------------------------------------

  /// Reads elements [first, first + size) of the bucket's state, of which the copy `current` is current.
  void read(std::size_t index, int current, state_part part, std::int64_t first, std::span<float> to) {
    if (pieces_[index].in_place) {
      split_.read(index, part, first, to);
    } else {
      host_.read(index, current, part, first, to);
    }
  }
  /// Working weights of written masters are up to date after refresh().
  void write(std::size_t index, state_part part, std::int64_t first, std::span<float const> from) {
    if (pieces_[index].in_place) {
      split_.write(index, part, first, from);
    } else {
      host_.write(index, part, first, from);
      pieces_[index].stale = pieces_[index].stale || part == state_part::master;
      any_stale_ = any_stale_ || part == state_part::master;
    }
  }
  /// Does refresh() have anything to do?
  [[nodiscard]] bool any_stale() const noexcept { return any_stale_; }
  /// Makes the working weights of buckets with written masters, copies them to the device, and waits.
  /// current(index) says which copy of a bucket's state is current.
  template <class Current>
  void refresh(Current const& current) {
    any_stale_ = false;
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      auto& p = pieces_[i];
      if (p.stale) {
        p.stale = false;
        working_on_ = {"weights of ", p.bucket.unit};
        host_.weights(i, current(i), buffer_of(0));
        link_->up.copy(p.weights, buffer_of(0), weight_bytes(p.bucket.count));
        link_->up.synchronize();
      }
    }
  }

private:
  struct piece {
    offload::bucket bucket;
    T* weights = nullptr;
    std::unique_ptr<typename D::event> down, up;
    step_record speculated;  // of the last speculative update
    bool in_place = false;   // its weights are in host memory, beside its state
    bool fetched = false;    // `down` was recorded
    bool sent = false;       // `up` was recorded
    bool stale = false;      // a master was written from outside
  };

  static std::size_t weight_bytes(std::int64_t count) { return static_cast<std::size_t>(count) * sizeof(T); }
  [[nodiscard]] T* buffer_of(int number) { return pinned_.template as<T>() + number * largest_; }

  /// A track for each link and each worker.
  void record_workers() {
    down_track_ = times_->add_track(resource::link_down, "gradients to host");
    up_track_ = times_->add_track(resource::link_up, "weights to device");
    for (int i = 0; i < workers_->threads().size(); ++i) {
      worker_tracks_.push_back(times_->add_track(resource::cpu_adam, concat("CPU Adam ", i)));
    }
    workers_->tell({this,
                    [](void* self, int thread) {
                      auto const* const s = static_cast<host_buckets*>(self);
                      s->times_->begin(s->worker_tracks_[static_cast<std::size_t>(thread)],
                                       s->working_on_.what, s->working_on_.unit);
                    },
                    [](void* self, int thread) {
                      auto const* const s = static_cast<host_buckets*>(self);
                      s->times_->end(s->worker_tracks_[static_cast<std::size_t>(thread)]);
                    }});
  }

  recorder<D>* times_;
  int down_track_ = -1, up_track_ = -1;
  std::vector<int> worker_tracks_;
  struct {
    char const* what = "";
    int unit = 0;
  } working_on_;  // for the workers' tracks; changes only between tasks
  link_streams<D>* link_;
  std::int64_t largest_;                   // elements of a buffer
  std::unique_ptr<adam_workers> workers_;  // null: no bucket is on the host
  host_state<D, T> host_;
  split_state<D, T> split_;
  buffer<D> pinned_, packed_;
  std::vector<piece> pieces_;  // by bucket; empty in other tiers
  bool any_stale_ = false;
};

}  // namespace superoffload::offload
