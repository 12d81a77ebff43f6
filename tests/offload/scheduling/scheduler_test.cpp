// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/offload/scheduling/scheduler.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace superoffload;
using namespace superoffload::offload;
using numbers = std::vector<std::size_t>;

/// A bucket for each letter, each of its own unit: h: on the host, s: device-updated, r: resident.
configuration of(std::string const& tiers, int pinned_buffers) {
  configuration a;
  for (char const c : tiers) {
    auto const where = c == 'h' ? tier::host : c == 's' ? tier::device_updated : tier::resident;
    a.buckets.push_back({.unit = static_cast<int>(a.buckets.size()), .count = 1, .where = where});
  }
  a.pinned_buffers = pinned_buffers;
  return a;
}

/// The backward of all units, the last one first.
void backward(scheduler& s, std::size_t units) {
  for (std::size_t u = units; u-- > 0;) { s.gradient_queued(static_cast<int>(u)); }
  for (std::size_t u = units; u-- > 0;) { s.gradient_final(static_cast<int>(u)); }
}
/// Fetches all gradients that may be fetched. \returns their order.
numbers fetch_all(scheduler& s) {
  numbers fetched;
  while (auto const i = s.next_fetch()) {
    s.fetch(*i);
    s.fetched(*i);
    fetched.push_back(*i);
  }
  return fetched;
}
/// Does the next task and checks that it is `what` for `bucket`. Its weights arrive at once.
void serve(scheduler& s, service what, std::size_t bucket, bool commits = false) {
  auto const t = s.next_task();
  REQUIRE(t);
  CHECK(t->what == what);
  CHECK(t->bucket == bucket);
  CHECK(t->commits == commits);
  s.finish(*t, s.begin(*t));
  if (t->sends()) {
    s.weights_arrived();
  }
}

TEST_CASE(
    "before the check the newest gradient comes first, after it the first in the order of the forward") {
  scheduler s{of("hhh", 10)};
  s.announce();
  backward(s, 3);
  CHECK(fetch_all(s) == numbers{0, 1, 2});
  serve(s, service::speculate, 0);
  s.check(check_result::clipped);
  for (std::size_t i = 0; i < 3; ++i) { serve(s, service::update, i); }
  CHECK(s.counts().resent == 1);
  CHECK(s.settled());
}

TEST_CASE("a gradient is fetched when its backward has ended") {
  scheduler s{of("hhh", 10)};
  for (int u = 2; u >= 0; --u) { s.gradient_queued(u); }
  CHECK(s.next_fetch() == std::nullopt);
  CHECK(s.next_final() == 2);
  s.gradient_final(2);
  CHECK(s.next_fetch() == std::size_t{2});
  CHECK(s.next_final() == 1);
  CHECK_FALSE(s.gradient_left(2));
  s.fetch(2);
  CHECK(s.gradient_left(2));
}

TEST_CASE("without speculation, or without an announced step, nothing is updated before the check") {
  for (bool const speculates : {false, true}) {
    auto a = of("h", 10);
    a.speculates = speculates;
    scheduler s{a};
    if (!speculates) {
      s.announce();
    }
    backward(s, 1);
    fetch_all(s);
    CHECK(s.next_task() == std::nullopt);
    s.check(check_result::unclipped);
    serve(s, service::update, 0);
    CHECK(s.settled());
  }
}

TEST_CASE("in the immediate mode each gradient is used when it arrives, and needs no second buffer") {
  auto a = of("hh", 1);
  a.immediate = true;
  scheduler s{a};
  s.announce();
  backward(s, 2);
  CHECK(fetch_all(s) == numbers{0});
  serve(s, service::update, 0);
  CHECK(fetch_all(s) == numbers{1});
  serve(s, service::update, 1);
  s.check(check_result::unclipped);
  CHECK(s.settled());
}

TEST_CASE("one buffer stays free for the weights of a speculative update") {
  scheduler s{of("hhh", 3)};
  s.announce();
  backward(s, 3);
  CHECK(fetch_all(s) == numbers{0, 1});
  auto const t = *s.next_task();
  auto const used = s.begin(t);
  s.finish(t, used);
  CHECK(s.next_task() == std::nullopt);  // its weights are being copied
  CHECK(s.next_fetch() == std::nullopt);
  s.weights_arrived();
  serve(s, service::speculate, 1);
}

TEST_CASE("a confirmed speculative update is committed with the next step, from the same buffer") {
  scheduler s{of("h", 2)};
  s.announce();
  backward(s, 1);
  fetch_all(s);
  serve(s, service::speculate, 0);
  s.check(check_result::unclipped);
  CHECK_FALSE(s.settled());
  CHECK(s.weights_made(0));
  s.announce();
  s.gradient_queued(0);
  s.gradient_final(0);
  CHECK(s.next_fetch() == std::nullopt);  // one buffer holds the gradient of the last step
  serve(s, service::commit, 0, true);
  fetch_all(s);
  serve(s, service::speculate, 0);
  s.check(check_result::clipped);
  serve(s, service::update, 0);
  CHECK(s.settled());

  scheduler ample{of("h", 3)};
  for (int step = 0; step < 3; ++step) {
    ample.announce();
    backward(ample, 1);
    fetch_all(ample);
    serve(ample, service::speculate, 0, step > 0);
    ample.check(check_result::unclipped);
  }
  ample.announce();
  backward(ample, 1);
  fetch_all(ample);
  ample.check(check_result::clipped);
  serve(ample, service::update, 0, true);
  CHECK(ample.counts().committed == 3);
  CHECK(ample.settled());
}

TEST_CASE("a skipped step resends old weights before anything else") {
  scheduler s{of("hhh", 10)};
  s.announce();
  backward(s, 3);
  fetch_all(s);
  serve(s, service::speculate, 0);
  serve(s, service::speculate, 1);
  s.check(check_result::skipped);
  CHECK(s.weights_made(2));
  CHECK_FALSE(s.weights_made(0));
  serve(s, service::resend, 0);
  serve(s, service::resend, 1);
  CHECK(s.settled());
  CHECK(s.counts().resent == 2);
}

TEST_CASE("a gradient of a skipped step that is still being copied is dropped, the next step's is not") {
  scheduler s{of("h", 3)};
  s.announce();
  backward(s, 1);
  s.fetch(*s.next_fetch());
  s.check(check_result::skipped);
  CHECK(s.weights_made(0));
  CHECK_FALSE(s.settled());
  s.announce();
  backward(s, 1);
  CHECK(s.next_fetch() == std::nullopt);
  s.fetched(0);
  CHECK(s.next_task() == std::nullopt);
  CHECK(fetch_all(s) == numbers{0});
  serve(s, service::speculate, 0);
}

TEST_CASE("a step may be checked while CPU Adam makes a speculative update") {
  for (auto const result : {check_result::unclipped, check_result::clipped, check_result::skipped}) {
    scheduler s{of("h", 3)};
    s.announce();
    backward(s, 1);
    fetch_all(s);
    auto const t = *s.next_task();
    auto const used = s.begin(t);
    s.check(result);
    CHECK_FALSE(s.weights_made(0));
    CHECK_FALSE(s.settled());
    s.finish(t, used);
    s.weights_arrived();
    if (result == check_result::unclipped) {
      serve(s, service::commit, 0, true);
    } else {
      serve(s, result == check_result::clipped ? service::update : service::resend, 0);
    }
    CHECK(s.settled());
  }
}

TEST_CASE("commits take idle time: buckets without a new gradient first, then those that wait for buffers") {
  scheduler s{of("hhh", 10)};
  s.announce();
  backward(s, 3);
  fetch_all(s);
  for (std::size_t i = 0; i < 3; ++i) { serve(s, service::speculate, i); }
  s.check(check_result::unclipped);
  s.announce();
  s.gradient_queued(0);  // out of the order of a backward
  CHECK(s.next_task() == worker_task{service::commit, 1, true});
  s.gradient_final(0);
  s.fetch(0);
  CHECK(s.next_task() == std::nullopt);  // the link uses the memory bandwidth
  s.fetched(0);
  serve(s, service::speculate, 0, true);
  serve(s, service::commit, 1, true);
  serve(s, service::commit, 2, true);
  CHECK(s.next_task() == std::nullopt);
}

TEST_CASE("weights in host memory are updated in place after the check, and are not sent") {
  auto a = of("h", 10);
  a.offloaded.weights = {true};
  scheduler s{a};
  s.announce();
  backward(s, 1);
  fetch_all(s);
  CHECK(s.stage(0) == bucket_stage::held);
  CHECK(s.next_task() == std::nullopt);
  s.check(check_result::unclipped);
  auto const t = s.next_task();
  REQUIRE(t);
  CHECK(t->adam() == adam_task::update_in_place);
  CHECK_FALSE(t->sends());
  s.finish(*t, s.begin(*t));
  CHECK(s.settled());
}

TEST_CASE("while most steps are clipped there are no speculative updates, until the hit rate recovers") {
  scheduler s{of("h", 10)};
  int speculated = 0, steps = 0;
  auto const step = [&](check_result result) {
    ++steps;
    s.announce();
    backward(s, 1);
    fetch_all(s);
    if (s.next_task()) {
      serve(s, service::speculate, 0);
      ++speculated;
    }
    s.check(result);
    while (auto const t = s.next_task()) { serve(s, t->what, 0, t->commits); }
    CHECK(s.settled());
  };
  for (int i = 0; i < 20; ++i) { step(check_result::clipped); }
  CHECK(speculated == 7);  // .9^7 is below one half
  CHECK(s.hit_rate() < 0.13);
  while (speculated == 7) { step(check_result::unclipped); }
  CHECK(steps == 20 + 7);
}

TEST_CASE(
    "device-updated state is uploaded in the order of the forward before the check, and updated after it") {
  auto a = of("ssss", 0);
  a.staging_buffers = 2;
  scheduler s{a};
  CHECK(s.next_upload(false) == std::nullopt);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(s.next_upload(true) == i);
    s.upload(i);
  }
  CHECK(s.next_upload(true) == std::nullopt);
  s.uploaded(0);
  s.announce();
  backward(s, 4);
  s.check(check_result::unclipped);
  CHECK(s.staging().is_late());
  CHECK(s.next_update() == std::size_t{0});
  s.updated(0);
  CHECK(s.weights_made(0));
  CHECK(s.next_update() == std::nullopt);
  s.uploaded(1);
  CHECK(s.next_update() == std::size_t{1});
  CHECK(s.next_upload(false) == std::nullopt);
  s.written_back(0);
  CHECK(s.next_upload(false) == std::size_t{2});
  s.upload(2);
  s.uploaded(2);
  s.forget_uploads();
  CHECK(s.next_upload(true) == std::size_t{0});
}

TEST_CASE("in the immediate mode state is uploaded as gradients are queued, in the order of the backward") {
  auto a = of("sss", 0);
  a.staging_buffers = 2;
  a.immediate = true;
  scheduler s{a};
  s.announce();
  s.gradient_queued(1);  // out of the order of a backward
  CHECK(s.next_upload(false) == std::size_t{1});
  s.gradient_queued(2);
  CHECK(s.next_upload(false) == std::size_t{2});
  s.check(check_result::unclipped);  // from now on in the order of the forward
  CHECK(s.next_upload(false) == std::size_t{1});
}

TEST_CASE("commits wait while an update waits for its state") {
  auto a = of("hs", 10);
  scheduler s{a};
  s.announce();
  backward(s, 2);
  fetch_all(s);
  serve(s, service::speculate, 0);
  s.check(check_result::unclipped);
  CHECK(s.next_task() == std::nullopt);
  s.upload(1);
  s.uploaded(1);
  serve(s, service::commit, 0, true);
}

TEST_CASE("a step that begins before the last one's weights are made is an error") {
  scheduler s{of("hs", 10)};
  backward(s, 2);
  fetch_all(s);
  s.check(check_result::unclipped);
  CHECK_THROWS_WITH_AS(s.gradient_queued(1),
                       "a gradient became final before the last step's weights were awaited", error);
}

TEST_CASE("a gradient that becomes final twice in a step is an error") {
  scheduler s{of("h", 10)};
  backward(s, 1);
  CHECK_THROWS_WITH_AS(s.gradient_queued(0), "a gradient became final twice in a step", error);
}

TEST_CASE("other systems take the oldest unit first, its buckets in their order") {
  auto a = of("hhh", 10);
  a.buckets[2].unit = 1;
  scheduler s{a, {.oldest_first = true}};
  backward(s, 2);
  CHECK(fetch_all(s) == numbers{1, 2, 0});
  s.check(check_result::unclipped);
  for (std::size_t const i : {1, 2, 0}) { serve(s, service::update, i); }
}

}  // namespace
