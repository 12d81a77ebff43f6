// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>

#include <algorithm>
#include <chrono>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace superoffload {

/// What a track shows.
enum class resource {
  device,       ///< forward and backward
  device_adam,  ///< updates on the device
  link_down,    ///< copies from device to host
  link_up,      ///< copies from host to device
  cpu_adam,     ///< one thread of CPU Adam
  collective,   ///< between ranks
  waiting,      ///< the device was idle: it waited for weights or for other ranks
};
inline constexpr int resources = 7;

/// A row of spans that follow each other: those of one stream or of one thread.
struct track {
  resource of;       ///< what its spans occupy
  std::string name;  ///< for people, such as the name of a stream
};

/// Work on one unit, from begin to end.
struct span {
  int track;         ///< index into recorder::tracks()
  char const* what;  ///< a literal: the span's name, but for the unit's; such as "weights of "
  int unit;          ///< index of the unit that is worked on
  /// In s since the recorder was created.
  double begin, end;  ///< likewise, and not before `begin`
};

/// The spans of one recorded interval.
struct recording {
  /// In s since the recorder was created.
  double begin = 0.0, end = 0.0;  ///< likewise: when it was collected
  /// Those that ended in the interval, or before it and since the last one; per track in order, without
  /// overlap.
  std::vector<span> spans;
  std::vector<span> going_on;  ///< begun and not ended by `end`

  /// Seconds of the interval during which the span ran.
  [[nodiscard]] double seconds_of(span const& s) const {
    return std::max(0.0, std::min(s.end, end) - std::max(s.begin, begin));
  }
};

/// Records when a device's streams and the host's threads do what. Streams are timed by events, which the
/// host reads later; synchronize() aligns the two clocks.
///
/// Several threads may use it at once, but each track only one at a time. Spans are kept until collect().
/// When a device fails, the recorder stops in silence: a call that waits for the device reports the error.
template <device_policy D>
class recorder {
public:
  /// Waits for `stream`. The recorder must outlive the work that it times.
  recorder(D& device, typename D::stream& stream)
      : device_{&device},
        anchor_{std::make_unique<timed_event>(device)},
        next_anchor_{std::make_unique<timed_event>(device)} {
    synchronize(stream);
  }

  /// \returns the index of the new track, for begin() and end().
  int add_track(resource of, std::string name) {
    std::lock_guard const lock{mutex_};
    tracks_.push_back({of, std::move(name)});
    lanes_.emplace_back();
    return static_cast<int>(tracks_.size()) - 1;
  }
  /// In the order of add_track().
  [[nodiscard]] std::vector<track> tracks() const {
    std::lock_guard const lock{mutex_};
    return tracks_;
  }

  /// Begins a span of what is queued on `stream` from now on, until end() of the same track. `what` is a
  /// literal.
  void begin(int track, typename D::stream& stream, char const* what, int unit) noexcept {
    note([&] {
      if (stopped_) {
        return;
      }
      auto& waiting = at(track).queued.emplace_back(what, unit, take(), nullptr);
      stream.record(*waiting.begin);
    });
  }
  /// Ends the track's span at the point that `stream` has been queued to; without a span it does nothing.
  void end(int track, typename D::stream& stream) noexcept {
    note([&] {
      auto& queued = at(track).queued;
      if (!queued.empty() && queued.back().end == nullptr) {
        auto end = take();
        stream.record(*end);
        queued.back().end = std::move(end);
      }
    });
  }
  /// Begins a span of the calling thread.
  void begin(int track, char const* what, int unit) noexcept {
    note([&] {
      if (!stopped_) {
        at(track).running = {track, what, unit, now(), 0.0};
      }
    });
  }
  /// Ends the track's span of the calling thread, if one has begun.
  void end(int track) noexcept {
    note([&] {
      auto& running = at(track).running;
      if (running.what != nullptr) {
        running.end = now();
        done_.push_back(running);
        running.what = nullptr;
      }
    });
  }

  /// Waits for `stream`, and aligns the device's clock with the host's.
  void synchronize(typename D::stream& stream) {
    stream.synchronize();
    // The idle stream reaches an anchor between two readings of the host's clock. On a busy host these may be
    // milliseconds apart, so the closest pair of a few counts: its later one, so that no span seems to begin
    // before it was queued.
    constexpr int most_tries = 5;
    constexpr double close = 1e-4;
    double apart = std::numeric_limits<double>::infinity();
    for (int i = 0; i < most_tries && apart > close; ++i) {
      auto const before = now();
      stream.record(*next_anchor_);
      stream.synchronize();
      auto const after = now();
      if (after - before < apart) {
        apart = after - before;
        std::lock_guard const lock{mutex_};
        std::swap(anchor_, next_anchor_);
        anchored_ = after;
      }
    }
  }

  /// Begins to record.
  void start() {
    std::lock_guard const lock{mutex_};
    started_ = now();
  }
  /// Records no span that begins from now on.
  void stop() {
    std::lock_guard const lock{mutex_};
    stopped_ = true;
  }
  /// What was recorded since start().
  [[nodiscard]] recording collect() {
    std::lock_guard const lock{mutex_};
    recording r{.begin = started_, .end = now(), .spans = std::exchange(done_, {}), .going_on = {}};
    for (std::size_t i = 0; i < lanes_.size(); ++i) { settle(static_cast<int>(i), r); }
    return r;
  }

private:
  using timed_event = typename D::timed_event;
  using clock = std::chrono::steady_clock;

  struct queued_span {
    queued_span(char const* w, int u, std::unique_ptr<timed_event> b, std::unique_ptr<timed_event> e)
        : what{w}, unit{u}, begin{std::move(b)}, end{std::move(e)} {}
    char const* what;
    int unit;
    std::unique_ptr<timed_event> begin, end;
  };
  struct lane {
    std::deque<queued_span> queued;  // of a stream
    span running{0, nullptr, 0, 0.0, 0.0};
    double until = 0.0;  // the end of the last span; a later one must not begin before it
  };

  [[nodiscard]] double now() const { return std::chrono::duration<double>(clock::now() - epoch_).count(); }
  [[nodiscard]] lane& at(int track) { return lanes_[static_cast<std::size_t>(track)]; }
  [[nodiscard]] double time_of(timed_event const& e) const { return anchored_ + e.seconds_since(*anchor_); }

  template <class Body>
  void note(Body const& body) noexcept {
    std::lock_guard const lock{mutex_};
    if (!failed_) {
      try {
        body();
      } catch (...) { failed_ = true; }
    }
  }

  std::unique_ptr<timed_event> take() {
    if (idle_.empty()) {
      return std::make_unique<timed_event>(*device_);
    }
    auto event = std::move(idle_.back());
    idle_.pop_back();
    return event;
  }

  /// Moves the finished spans of a lane to the recording, and adds those that are still running.
  void settle(int track, recording& r) {
    auto& l = at(track);
    while (!failed_ && !l.queued.empty()) {
      auto& q = l.queued.front();
      if (!q.begin->done()) {
        break;
      }
      // What was reached is not in the future, however late the host read its clock beside the anchor.
      double const begin = std::clamp(time_of(*q.begin), l.until, r.end);
      if (q.end == nullptr || !q.end->done()) {
        r.going_on.push_back({track, q.what, q.unit, begin, r.end});
        break;
      }
      l.until = std::clamp(time_of(*q.end), begin, r.end);
      r.spans.push_back({track, q.what, q.unit, begin, l.until});
      idle_.push_back(std::move(q.begin));
      idle_.push_back(std::move(q.end));
      l.queued.pop_front();
    }
    if (l.running.what != nullptr) {
      r.going_on.push_back({track, l.running.what, l.running.unit, l.running.begin, r.end});
    }
  }

  D* device_;
  clock::time_point epoch_ = clock::now();
  mutable std::mutex mutex_;
  std::vector<track> tracks_;
  std::deque<lane> lanes_;
  std::vector<span> done_;
  std::vector<std::unique_ptr<timed_event>> idle_;
  std::unique_ptr<timed_event> anchor_, next_anchor_;
  double anchored_ = 0.0;  // when `anchor_` was reached, on the host's clock
  double started_ = 0.0;
  bool stopped_ = false;
  bool failed_ = false;
};

/// Runs `work`, which queues on `stream`, as a span of `track`, if there is a recorder.
template <class D, class Work>
void record_span(recorder<D>* r, int track, typename D::stream& stream, char const* what, int unit,
                 Work const& work) {
  if (r != nullptr) {
    r->begin(track, stream, what, unit);
  }
  work();
  if (r != nullptr) {
    r->end(track, stream);
  }
}

}  // namespace superoffload
