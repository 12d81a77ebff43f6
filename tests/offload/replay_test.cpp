// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/offload/planning/simulator.hpp>
#include <superoffload/offload/scheduling/scheduler.hpp>
#include <superoffload/offload/state/worker.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace superoffload;
using namespace superoffload::offload;

/// The events that a worker reported to its scheduler and the scheduler's decisions, in order: to be replayed
/// on another scheduler.
struct recording {
  std::vector<std::function<void(scheduler&)>> events;
  std::vector<worker_task> tasks;
  std::vector<std::size_t> checks;  // the number of tasks before each check
  std::size_t fetches = 0, uploads = 0;

  std::mutex mutex;
  std::condition_variable changed;
  bool quiet = false;  // nothing can be done without a new gradient or a check
};
recording* now_recorded = nullptr;

/// A scheduler that records all of that.
class recording_scheduler : public scheduler {
public:
  explicit recording_scheduler(configuration const& a) : scheduler{a}, to_{*now_recorded} {}

  void announce() {
    note([](scheduler& s) { s.announce(); });
    scheduler::announce();
  }
  void gradient_queued(int unit) {
    set_quiet(false);
    note([=](scheduler& s) { s.gradient_queued(unit); });
    scheduler::gradient_queued(unit);
  }
  void gradient_final(int unit) {
    note([=](scheduler& s) { s.gradient_final(unit); });
    scheduler::gradient_final(unit);
  }
  void check(check_result result) {
    set_quiet(false);
    to_.checks.push_back(to_.tasks.size());
    note([=](scheduler& s) { s.check(result); });
    scheduler::check(result);
  }
  int fetch(std::size_t index) {
    ++to_.fetches;
    ++fetching_;
    int const buffer = scheduler::fetch(index);
    note([=](scheduler& s) {
      REQUIRE(s.next_fetch() == index);
      CHECK(s.fetch(index) == buffer);
    });
    return buffer;
  }
  void fetched(std::size_t index) {
    --fetching_;
    note([=](scheduler& s) { s.fetched(index); });
    scheduler::fetched(index);
  }
  void weights_arrived() {
    note([](scheduler& s) { s.weights_arrived(); });
    scheduler::weights_arrived();
  }
  void upload(std::size_t index) {
    ++to_.uploads;
    note([index, ahead = ahead_](scheduler& s) {
      REQUIRE(s.next_upload(ahead) == index);
      s.upload(index);
    });
    scheduler::upload(index);
  }
  void uploaded(std::size_t index) {
    note([=](scheduler& s) { s.uploaded(index); });
    scheduler::uploaded(index);
  }
  void updated(std::size_t index) {
    note([=](scheduler& s) {
      REQUIRE(s.next_update() == index);
      s.updated(index);
    });
    scheduler::updated(index);
  }
  void written_back(std::size_t index) {
    note([=](scheduler& s) { s.written_back(index); });
    scheduler::written_back(index);
  }
  void forget_uploads() {
    note([](scheduler& s) { s.forget_uploads(); });
    scheduler::forget_uploads();
  }
  buffers begin(worker_task const& t) {
    auto const used = scheduler::begin(t);
    to_.tasks.push_back(t);
    note([=](scheduler& s) {
      REQUIRE(s.next_task() == t);
      auto const same = s.begin(t);
      CHECK(same.gradient == used.gradient);
      CHECK(same.kept == used.kept);
      CHECK(same.weights == used.weights);
    });
    return used;
  }
  void finish(worker_task const& t, buffers const& used) {
    note([=](scheduler& s) { s.finish(t, used); });
    scheduler::finish(t, used);
  }

  [[nodiscard]] std::optional<std::size_t> next_upload(bool ahead) {
    ahead_ = ahead;
    return scheduler::next_upload(ahead);
  }
  [[nodiscard]] std::optional<worker_task> next_task() {
    auto const next = scheduler::next_task();
    note([=](scheduler& s) { CHECK(s.next_task() == next); });
    bool const waits_for_state = !before_check() && staging().is_late();
    if (!next && fetching_ == 0 && !next_fetch() && !next_final() && !waits_for_state) {
      set_quiet(true);
    }
    return next;
  }

private:
  template <class Event>
  void note(Event&& event) {
    to_.events.emplace_back(std::forward<Event>(event));
  }
  void set_quiet(bool quiet) {
    {
      std::lock_guard const lock{to_.mutex};
      to_.quiet = quiet;
    }
    to_.changed.notify_all();
  }

  recording& to_;
  bool ahead_ = false;
  int fetching_ = 0;
};

constexpr int units = 4;

/// Units of two buckets. `tiers` has a letter for each bucket: h: on the host, s: device-updated, r:
/// resident. `on_host` has a 1 for each unit whose weights live in host memory.
std::vector<autograd::unit_layout> some_units() {
  std::vector<autograd::unit_layout> all;
  for (int u = 0; u < units; ++u) {
    all.emplace_back(u, "unit").add_matrix({{"weights", 2}}, kernel::norm_grid);
  }
  return all;
}
configuration configured(std::string const& tiers, std::string const& on_host, int pinned_buffers) {
  configuration a;
  a.buckets = buckets_of(some_units(), kernel::norm_grid);
  for (std::size_t i = 0; i < a.buckets.size(); ++i) {
    char const c = tiers[i % tiers.size()];
    a.buckets[i].where = c == 'h' ? tier::host : c == 's' ? tier::device_updated : tier::resident;
  }
  for (char const c : on_host) { a.offloaded.weights.push_back(c == '1'); }
  a.pinned_buffers = pinned_buffers;
  a.adapts = false;
  return a;
}

/// A worker on the CPU device, whose gradients are zero.
struct recorded_worker {
  recording notes;
  cpu::device device{1};
  cpu::stream stream{device};
  std::vector<autograd::unit_layout> layouts = some_units();
  std::vector<float> memory = std::vector<float>(2 * units * 2 * kernel::norm_grid);
  std::optional<worker<cpu::device, float, recording_scheduler>> state;

  explicit recorded_worker(configuration const& a) {
    now_recorded = &notes;
    state.emplace(device, stream, layouts, a, [this](int u) { return &memory[at(u)]; });
  }
  /// Ends the worker. The recording may be read then.
  void end() { state.reset(); }
  static std::size_t at(int unit) { return static_cast<std::size_t>(unit) * 2 * kernel::norm_grid; }

  /// `paced`: all possible work is done before the next gradient.
  void step(check_result result, bool paced) {
    for (int u = 0; u < units; ++u) { state->await(u, stream); }
    step_record record;
    state->announce(record);
    for (int u = units - 1; u >= 0; --u) {
      state->await_gradient(u, stream);
      state->ready(u, {&memory[at(units + u)], false});
      if (paced) {
        wait_until_quiet();
      }
    }
    stream.synchronize();
    record.factor = result == check_result::clipped ? 0.5F : 1.0F;
    state->conclude(result == check_result::skipped ? std::nullopt : std::optional{record});
    if (paced) {
      wait_until_quiet();
    }
  }
  void wait_until_quiet() {
    std::unique_lock lock{notes.mutex};
    notes.changed.wait(lock, [this] { return notes.quiet; });
  }
};

TEST_CASE("a recorded run, replayed event by event, makes the same decisions in the same order") {
  for (auto const* tiers : {"h", "hs", "hhsr"}) {
    for (auto const* on_host : {"0000", "0110"}) {
      for (bool const immediate : {false, true}) {
        for (int const pinned_buffers : {3, 20}) {
          CAPTURE(std::string{tiers});
          CAPTURE(std::string{on_host});
          CAPTURE(immediate);
          auto a = configured(tiers, on_host, pinned_buffers);
          a.immediate = immediate;
          for (auto& b : a.buckets) {
            b.where = a.weights_offloaded(b) && b.where == tier::resident ? tier::host : b.where;
          }
          recorded_worker run{a};
          for (int t = 0; t < 12; ++t) {
            run.step(immediate || t % 4 < 2 ? check_result::unclipped
                     : t % 4 == 2           ? check_result::clipped
                                            : check_result::skipped,
                     false);
            if (t == 7) {
              run.state->flush();
            }
          }
          run.state->flush();
          run.end();
          scheduler replayed{a};
          for (auto const& event : run.notes.events) { event(replayed); }
          CHECK(replayed.settled());
          CHECK(run.notes.fetches > 0);
          CHECK(run.notes.tasks.size() > 12);
          CHECK((run.notes.uploads > 0) == (std::string{tiers} != "h"));
          auto const counts = replayed.counts();
          CHECK(counts.speculated - counts.resent == counts.committed);
        }
      }
    }
  }
}

/// The tasks of CPU Adam in a step, with their units, in order.
using services = std::vector<std::pair<activity, int>>;
services simulated(configuration const& a, double hit_rate) {
  // All possible work is done long before the next gradient.
  machine m;
  m.device.bandwidth = 1e15;
  m.device.round_trip = 0.1;
  m.link.alone = m.link.both = {1e15, 1e15};
  m.adam.links_idle.fill(1e-12);
  m.adam.links_busy.fill(1e-12);
  m.adam.one_thread = 1e-12;
  schedule s;
  s.units.assign(units, {1.0, 2.0});
  s.state = a;
  s.element_bytes = sizeof(float);
  s.hit_rate = hit_rate;
  for (int u = 0; u < units; ++u) {
    s.offloaded_weights.push_back(a.offloaded.weights_of(u) ? 2 * kernel::norm_grid : 0);
  }
  services done;
  for (auto const& i : simulate(m, s).intervals) {
    if (i.where == lane::cpu) {
      done.emplace_back(i.what, i.unit);
    }
  }
  return done;
}
activity activity_of(adam_task task) {
  switch (task) {
    case adam_task::speculate:
      return activity::speculate;
    case adam_task::commit:
      return activity::commit;
    case adam_task::commit_speculate:
      return activity::commit_speculate;
    case adam_task::commit_update:
      return activity::commit_update;
    default:
      return activity::update;
  }
}
/// The same for the worker, from one check to the next.
services served(configuration const& a, check_result result) {
  recorded_worker run{a};
  for (int t = 0; t < 4; ++t) { run.step(result, true); }
  run.end();
  services done;
  for (std::size_t i = run.notes.checks[2]; i < run.notes.checks[3]; ++i) {
    auto const& t = run.notes.tasks[i];
    done.emplace_back(activity_of(t.adam()), a.buckets[t.bucket].unit);
  }
  return done;
}

TEST_CASE("worker and simulator do the same tasks in the same order") {
  for (auto const* tiers : {"h", "hs", "hhr", "hrhh"}) {
    for (auto const* on_host : {"0000", "0110"}) {
      for (bool const immediate : {false, true}) {
        for (bool const clipped : {false, true}) {
          if (immediate && clipped) {
            continue;
          }
          CAPTURE(std::string{tiers});
          CAPTURE(std::string{on_host});
          CAPTURE(immediate);
          CAPTURE(clipped);
          auto a = configured(tiers, on_host, 20);
          a.immediate = immediate;
          for (auto& b : a.buckets) {
            b.where = a.weights_offloaded(b) && b.where == tier::resident ? tier::host : b.where;
          }
          auto const expected = simulated(a, clipped ? 0.0 : 1.0);
          CHECK(expected.size() >= 4);
          CHECK(served(a, clipped ? check_result::clipped : check_result::unclipped) == expected);
        }
      }
    }
  }
}

}  // namespace
