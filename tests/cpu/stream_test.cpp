// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/stream.hpp>

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace superoffload;

TEST_CASE("tasks run in order on one thread that is not the caller's") {
  cpu::device device{1};
  cpu::stream stream{device};
  constexpr int count = 3 * static_cast<int>(cpu::stream::capacity);
  std::vector<int> seen;
  seen.reserve(count);
  std::thread::id worker;
  stream.enqueue([&] { worker = std::this_thread::get_id(); });
  for (int i = 0; i < count; ++i) {
    stream.enqueue([&, i] { seen.push_back(i); });
  }
  stream.synchronize();
  REQUIRE(seen.size() == count);
  bool in_order = true;
  for (int i = 0; i < count; ++i) { in_order = in_order && seen[static_cast<std::size_t>(i)] == i; }
  CHECK(in_order);
  CHECK(worker != std::this_thread::get_id());
}

TEST_CASE("a full queue blocks the thread that fills it, until a task has run") {
  cpu::device device{1};
  cpu::stream stream{device};
  std::atomic<bool> open{false};
  std::atomic<std::size_t> queued{0};
  stream.enqueue([&] {
    while (!open) { std::this_thread::yield(); }
  });
  std::jthread const producer{[&] {
    for (std::size_t i = 0; i < 2 * cpu::stream::capacity; ++i) {
      stream.enqueue([] {});
      ++queued;
    }
  }};
  while (queued < cpu::stream::capacity - 1) { std::this_thread::yield(); }
  CHECK(queued == cpu::stream::capacity - 1);  // the blocked task takes one entry
  open = true;
  while (queued < 2 * cpu::stream::capacity) { std::this_thread::yield(); }
  stream.synchronize();
}

TEST_CASE("tasks as large as an entry arrive complete") {
  cpu::device device{1};
  cpu::stream stream{device};
  struct {
    std::array<unsigned char, cpu::stream::task_bytes - sizeof(int*)> bytes;
    int* sum;
    void operator()() const {
      for (auto const byte : bytes) { *sum += byte; }
    }
  } task{};
  int sum = 0;
  task.bytes.fill(1);
  task.sum = &sum;
  stream.enqueue(task);
  stream.synchronize();
  CHECK(sum == static_cast<int>(task.bytes.size()));
}

// The sanitizers bring operators of their own. Replacing some of them would free memory with the wrong one.
#if !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
std::atomic<std::int64_t> allocations{0};
}

// Counts allocations, so that the tests can check that there are none.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes); memory != nullptr) {
    return memory;
  }
  throw std::bad_alloc{};
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

TEST_CASE("queueing, events and loops allocate nothing") {
  cpu::device device{2};
  cpu::stream first{device};
  cpu::stream second{device};
  cpu::event event{device};
  std::array<std::byte, 64> from{};
  std::array<std::byte, 64> to{};
  std::atomic<int> pieces{0};
  auto const before = allocations.load();
  for (int i = 0; i < 2000; ++i) {
    first.copy(to.data(), from.data(), to.size());
    first.enqueue([&pieces, pool = &first.threads()] {
      pool->parallel_for(4, 1, [&](std::int64_t, std::int64_t) { ++pieces; });
    });
    first.record(event);
    second.wait(event);
    second.fill_zero(from.data(), from.size());
    second.record(event);
    first.wait(event);
  }
  first.synchronize();
  second.synchronize();
  CHECK(allocations.load() == before);
  CHECK(pieces == 8000);
}
#endif

TEST_CASE("copies and zeros longer than one piece are complete") {
  cpu::device device{3};
  cpu::stream stream{device};
  std::vector<unsigned char> from((1U << 20) + 12345);
  for (std::size_t i = 0; i < from.size(); ++i) { from[i] = static_cast<unsigned char>(i * 7 + i / 251); }
  std::vector<unsigned char> to(from.size());
  stream.copy(to.data(), from.data(), from.size());
  stream.synchronize();
  CHECK(to == from);
  stream.fill_zero(to.data(), to.size());
  stream.synchronize();
  CHECK(to == std::vector<unsigned char>(from.size()));
}

TEST_CASE("the first exception is kept, later tasks are skipped, and the stream stays failed") {
  cpu::device device{2};
  cpu::stream stream{device};
  std::atomic<int> ran{0};
  stream.enqueue([&] { ++ran; });
  stream.enqueue([] { throw std::out_of_range{"first"}; });
  stream.enqueue([] { throw std::logic_error{"second"}; });
  stream.enqueue([&] { ++ran; });
  CHECK_THROWS_WITH_AS(stream.synchronize(), "first", std::out_of_range);
  stream.enqueue([&] { ++ran; });
  CHECK_THROWS_WITH_AS(stream.synchronize(), "first", std::out_of_range);
  CHECK(ran == 1);
}

TEST_CASE("an exception inside a shared loop is the task's exception") {
  cpu::device device{2};
  cpu::stream stream{device};
  stream.enqueue([pool = &stream.threads()] {
    pool->parallel_for(100, 1, [](std::int64_t begin, std::int64_t) {
      if (begin == 50) {
        throw std::out_of_range{"at a piece"};
      }
    });
  });
  CHECK_THROWS_AS(stream.synchronize(), std::out_of_range);
}

TEST_CASE("a failure passes to other streams by events only") {
  cpu::device device{1};
  cpu::stream source{device};
  cpu::stream middle{device};
  cpu::stream sink{device};
  cpu::stream apart{device};
  cpu::event passed{device};
  int ran = 0;
  source.enqueue([] { throw std::out_of_range{"at the source"}; });
  source.record(passed);
  middle.wait(passed);
  middle.record(passed);
  sink.wait(passed);
  sink.enqueue([&] { ++ran; });
  apart.enqueue([&] { ++ran; });
  CHECK_THROWS_WITH_AS(sink.synchronize(), "at the source", std::out_of_range);
  apart.synchronize();
  CHECK(ran == 1);
}

TEST_CASE("a failed stream that no call waited for is destroyed without an error") {
  cpu::device device{1};
  std::atomic<int> ran{0};
  {
    cpu::stream stream{device};
    stream.enqueue([] { throw std::out_of_range{"unheard"}; });
    stream.enqueue([&] { ++ran; });
  }
  CHECK(ran == 0);
}

TEST_CASE("several threads may fill one stream") {
  cpu::device device{1};
  cpu::stream stream{device};
  std::array<int, 4> last{};
  std::atomic<bool> in_order{true};
  {
    std::vector<std::jthread> producers;
    for (std::size_t p = 0; p < last.size(); ++p) {
      producers.emplace_back([&, p] {
        for (int i = 1; i <= 1000; ++i) {
          stream.enqueue([&last, &in_order, p, i] {
            in_order = in_order && last[p] == i - 1;
            last[p] = i;
          });
        }
      });
    }
  }
  stream.synchronize();
  CHECK(in_order);
  CHECK(last == std::array<int, 4>{1000, 1000, 1000, 1000});
}

TEST_CASE("several streams share the threads") {
  cpu::device device{3};
  cpu::stream first{device};
  cpu::stream second{device};
  std::array<std::int64_t, 2> sums{};
  for (int i = 0; i < 200; ++i) {
    std::size_t which = 0;
    for (auto* const stream : {&first, &second}) {
      stream->enqueue([sum = &sums[which++], pool = &stream->threads()] {
        std::array<std::int64_t, 16> parts{};
        pool->parallel_for(
            16, 1, [&](std::int64_t begin, std::int64_t) { parts[static_cast<std::size_t>(begin)] = begin; });
        for (auto const part : parts) { *sum += part; }
      });
    }
  }
  first.synchronize();
  second.synchronize();
  CHECK(sums == std::array<std::int64_t, 2>{200 * 120, 200 * 120});
}
