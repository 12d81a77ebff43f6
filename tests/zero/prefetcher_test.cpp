// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/zero/prefetcher.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace superoffload;

/// Units of one number each. Records the order of fetches.
struct fetching {
  cpu::device device{2};
  cpu::stream compute{device};
  std::vector<std::int64_t> units;
  std::string fetched;
  zero::prefetcher<cpu::device> ahead;

  explicit fetching(int buffers) : ahead{device, compute, {sizeof(std::int64_t), buffers}} {
    for (int u = 0; u < 6; ++u) { units.push_back(100 + u); }
  }
  ~fetching() { drain(compute); }

  auto fill(int unit) {
    return [this, unit](cpu::stream& stream, void* to) {
      fetched += static_cast<char>('0' + unit);
      stream.copy(to, &units[static_cast<std::size_t>(unit)], sizeof(std::int64_t));
    };
  }
  bool fetch(int unit) { return ahead.fetch(unit, sizeof(std::int64_t), fill(unit)); }
  std::int64_t const* acquire(int unit) {
    return static_cast<std::int64_t const*>(ahead.acquire(unit, sizeof(std::int64_t), fill(unit)));
  }
  std::int64_t read(int unit) {
    auto const* const buffer = acquire(unit);
    std::int64_t value = 0;
    compute.copy(&value, buffer, sizeof value);
    ahead.release(unit);
    compute.synchronize();
    return value;
  }
};

TEST_CASE("units are fetched once for each pass, and those around the turn once for both") {
  auto const order = [](int buffers) {
    fetching f{buffers};
    for (int const u : {0, 1, 2, 3, 4, 5, 5, 4, 3, 2, 1, 0}) { CHECK(f.read(u) == 100 + u); }
    return f.fetched;
  };
  CHECK(order(1) == "01234543210");
  CHECK(order(2) == "0123453210");
  CHECK(order(3) == "012345210");
  CHECK(order(6) == "012345");
}

TEST_CASE("a prefetch takes the buffer that was left longest ago, and none in use") {
  fetching f{2};
  f.acquire(0);
  CHECK(f.fetch(1));
  CHECK(f.fetch(1));  // is fetched already
  CHECK(f.fetched == "01");
  f.acquire(1);
  CHECK_FALSE(f.fetch(2));
  f.ahead.release(1);
  CHECK(f.fetch(2));  // in the buffer of 1
  CHECK(f.read(2) == 102);
  f.ahead.release(0);
  CHECK(f.fetched == "012");
  CHECK(f.read(0) == 100);  // still fetched
  CHECK(f.fetched == "012");
}

TEST_CASE("acquire nests, and more units at once than buffers are refused") {
  fetching f{1};
  auto const* const buffer = f.acquire(3);
  CHECK(f.acquire(3) == buffer);
  f.ahead.release(3);
  try {
    f.acquire(4);
    FAIL("two units in one buffer");
  } catch (error const& e) {
    CHECK(e.code() == exit_code::internal);
    CHECK(std::string{e.what()}.find("of all 1 buffers") != std::string::npos);
  }
  f.ahead.release(3);
  CHECK(f.read(4) == 104);
}

TEST_CASE("a unit that is out of date is fetched anew") {
  fetching f{3};
  CHECK(f.read(1) == 101);
  f.ahead.drop(1);
  f.units[1] = 7;
  CHECK(f.read(1) == 7);
  CHECK(f.fetched == "11");
  f.acquire(1);
  CHECK_THROWS_AS(f.ahead.forget(1), error);
  f.ahead.release(1);
}

TEST_CASE("a buffer is not refilled while work that was queued before its release still reads it") {
  for (int const buffers : {1, 2}) {
    fetching f{buffers};
    std::atomic<bool> may_read{false};
    std::int64_t seen = 0;
    auto const* const buffer = f.acquire(0);
    f.compute.enqueue([&may_read, &seen, buffer] {
      while (!may_read) { std::this_thread::yield(); }
      seen = *buffer;
    });
    f.ahead.release(0);
    for (int u = 1; u <= buffers; ++u) { CHECK(f.fetch(u)); }
    std::this_thread::sleep_for(std::chrono::milliseconds{20});  // time for a wrong copy
    may_read = true;
    f.compute.synchronize();
    CHECK(seen == 100);
    for (int u = 1; u <= buffers; ++u) { CHECK(f.read(u) == 100 + u); }
  }
}

TEST_CASE("a buffer is not read before it is filled") {
  fetching f{1};
  std::atomic<bool> may_fill{false};
  f.ahead.transfer().enqueue([&may_fill] {
    while (!may_fill) { std::this_thread::yield(); }
  });
  auto const* const buffer = f.acquire(2);
  std::int64_t seen = 0;
  f.compute.copy(&seen, buffer, sizeof seen);
  f.ahead.release(2);
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  may_fill = true;
  f.compute.synchronize();
  CHECK(seen == 102);
}

}  // namespace
