// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/recorder.hpp>
#include <superoffload/cpu/device.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace superoffload;
using namespace std::chrono_literals;

struct lab {
  cpu::device device{1};
  cpu::stream stream{device};
  recorder<cpu::device> times{device, stream};
  int const link = times.add_track(resource::link_up, "up");
  int const thread = times.add_track(resource::cpu_adam, "adam-0");

  void nap(cpu::stream& s) {
    s.enqueue([] { std::this_thread::sleep_for(3ms); });
  }
};

TEST_CASE("spans of a stream and of a thread lie in the recorded interval, in order") {
  lab l;
  l.times.start();
  for (int i = 0; i < 3; ++i) {
    record_span(&l.times, l.link, l.stream, "copy", i, [&] { l.nap(l.stream); });
  }
  l.times.begin(l.thread, "update", 7);
  l.times.synchronize(l.stream);  // also moves the anchor beyond what is collected
  l.times.end(l.thread);
  auto const seen = l.times.collect();
  REQUIRE(seen.spans.size() == 4);
  double until = seen.begin;
  for (int i = 0; i < 3; ++i) {
    auto const& s = seen.spans[static_cast<std::size_t>(i) + 1];
    CHECK(s.track == l.link);
    CHECK(std::string{s.what} == "copy");
    CHECK(s.unit == i);
    CHECK(s.begin >= until);
    CHECK(s.end - s.begin >= 0.002);
    until = s.end;
  }
  CHECK(until <= seen.end);
  CHECK(seen.spans[0].unit == 7);
  CHECK(seen.going_on.empty());
  for (auto const& s : seen.spans) { CHECK(seen.seconds_of(s) == doctest::Approx(s.end - s.begin)); }
  CHECK(l.times.collect().spans.empty());
}

TEST_CASE("a span that runs at the end of an interval counts up to there, and as a span once it has ended") {
  lab l;
  l.times.start();
  l.times.begin(l.thread, "update", 0);
  l.times.begin(l.link, l.stream, "copy", 1);
  l.nap(l.stream);
  l.stream.synchronize();
  std::this_thread::sleep_for(2ms);
  auto const first = l.times.collect();
  CHECK(first.spans.empty());
  REQUIRE(first.going_on.size() == 2);
  for (auto const& s : first.going_on) {
    CHECK(s.end == first.end);
    CHECK(first.seconds_of(s) > 0.0);
    CHECK(first.seconds_of(s) == doctest::Approx(s.end - s.begin));
  }
  l.times.start();
  l.nap(l.stream);
  l.times.end(l.link, l.stream);
  l.times.synchronize(l.stream);
  l.times.end(l.thread);
  auto const second = l.times.collect();
  REQUIRE(second.spans.size() == 2);
  for (auto const& s : second.spans) {
    CHECK(s.begin < second.begin);
    CHECK(s.end > second.begin);
    CHECK(second.seconds_of(s) >= 0.002);
    CHECK(second.seconds_of(s) < s.end - s.begin);
  }
}

/// A device whose events seem later, as after an anchor that the host saw late.
struct late_device : cpu::device {
  using cpu::device::device;

  struct timed_event : cpu::timed_event {
    explicit timed_event(late_device& d) : cpu::timed_event{d}, of{&d} {}
    [[nodiscard]] double seconds_since(timed_event const& other) const {
      return of->late + cpu::timed_event::seconds_since(other);
    }
    late_device* of;
  };
  double late = 0.0;
};

TEST_CASE("an anchor that the host saw late puts no span beyond its interval, nor beyond the next ones") {
  late_device device{1};
  cpu::stream stream{device};
  recorder<late_device> times{device, stream};
  int const link = times.add_track(resource::link_up, "up");
  for (double const late : {1.0, 0.0}) {
    CAPTURE(late);
    device.late = late;
    times.start();
    record_span(&times, link, stream, "copy", 0,
                [&] { stream.enqueue([] { std::this_thread::sleep_for(3ms); }); });
    times.synchronize(stream);
    auto const seen = times.collect();
    REQUIRE(seen.spans.size() == 1);
    CHECK(seen.spans[0].end <= seen.end);
    CHECK((seen.seconds_of(seen.spans[0]) >= 0.002) == (late == 0.0));
  }
}

TEST_CASE("a stopped recorder ends the spans that have begun, and records no more") {
  lab l;
  l.times.begin(l.thread, "update", 0);
  l.times.begin(l.link, l.stream, "copy", 1);
  l.times.stop();
  l.times.end(l.thread);
  l.times.end(l.link, l.stream);
  l.times.begin(l.thread, "update", 2);
  l.times.begin(l.link, l.stream, "copy", 3);
  l.times.end(l.thread);
  l.times.end(l.link, l.stream);
  l.stream.synchronize();
  CHECK(l.times.collect().spans.size() == 2);
  CHECK(l.times.collect().going_on.empty());
}

TEST_CASE("without a recorder the work is done, too") {
  lab l;
  int done = 0;
  record_span(static_cast<recorder<cpu::device>*>(nullptr), 0, l.stream, "copy", 0, [&] { ++done; });
  CHECK(done == 1);
}

TEST_CASE("several threads and streams are recorded at once") {
  lab l;
  std::vector<std::jthread> threads;
  l.times.start();
  for (int t = 0; t < 4; ++t) {
    int const track = l.times.add_track(resource::cpu_adam, "adam-" + std::to_string(t));
    threads.emplace_back([&l, track] {
      cpu::stream mine{l.device};
      int const link = l.times.add_track(resource::link_down, "down");
      for (int i = 0; i < 200; ++i) {
        l.times.begin(track, "update", i);
        record_span(&l.times, link, mine, "copy", i, [] {});
        l.times.end(track);
      }
      mine.synchronize();
    });
  }
  std::size_t seen = 0;
  for (int i = 0; i < 20; ++i) { seen += l.times.collect().spans.size(); }
  threads.clear();
  seen += l.times.collect().spans.size();
  CHECK(seen == 4 * 200 * 2);
}

}  // namespace
