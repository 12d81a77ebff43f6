// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The contract of every device, as one doctest case. To use it:
//   template <> struct superoffload::conformance::tasks<my::device> { ... };
//   TEST_CASE_TEMPLATE_INVOKE(device_conformance, my::device);

#include <superoffload/core/buffer.hpp>
#include <superoffload/core/device.hpp>

#include <doctest/doctest.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace superoffload::conformance {

/// Tasks that the suite needs beyond the contract:
///   static void delay(D::stream&);   occupies the stream for a few milliseconds
///   static void fail(D::stream&);    a task that fails; left out if the process cannot survive it
template <class D>
struct tasks;

/// The standard error of a process that runs `body` and must abort; none if it ends otherwise.
template <class Body>
std::optional<std::string> last_words(Body body) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  pid_t const child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    dup2(ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string words;
  std::array<char, 256> block{};
  for (ssize_t got = 0; (got = read(ends[0], block.data(), block.size())) > 0;) {
    words.append(block.data(), static_cast<std::size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) {
    return words;
  }
  return std::nullopt;
}

inline std::vector<std::uint8_t> random_bytes(std::size_t count, std::uint32_t seed) {
  std::mt19937 random{seed};
  std::vector<std::uint8_t> bytes(count);
  for (auto& byte : bytes) { byte = static_cast<std::uint8_t>(random()); }
  return bytes;
}

/// Random copies between a few cells of device memory on several streams, ordered only by the events that a
/// correct program needs. Every event is recorded many times. The result must be that of copies one by one.
template <device_policy D>
void random_schedule(D& device, std::uint32_t seed) {
  constexpr std::size_t streams = 4;
  constexpr std::size_t cells = 6;
  constexpr std::size_t cell_bytes = 512;
  constexpr int operations = 3000;

  struct point {
    explicit point(D& d) : event{d} {}
    typename D::event event;
    bool recorded = false;
  };
  struct cell {
    explicit cell(D& d) : memory{d, cell_bytes}, written{d} {
      for (std::size_t s = 0; s < streams; ++s) { read.emplace_back(d); }
    }
    buffer<D> memory;
    point written;
    std::vector<point> read;  // by stream
  };
  std::vector<cell> actual;
  std::vector<std::vector<std::uint8_t>> expected;
  std::vector<std::unique_ptr<typename D::stream>> queues;
  buffer<D> host{device, cells * cell_bytes, memory::host};
  for (std::size_t s = 0; s < streams; ++s) {
    queues.push_back(std::make_unique<typename D::stream>(device));
  }
  auto const wait = [](typename D::stream& queue, point& p) {
    if (p.recorded) {
      queue.wait(p.event);
    }
  };
  auto const record = [](typename D::stream& queue, point& p) {
    queue.record(p.event);
    p.recorded = true;
  };
  for (std::size_t c = 0; c < cells; ++c) {
    actual.emplace_back(device);
    expected.push_back(random_bytes(cell_bytes, seed + static_cast<std::uint32_t>(c)));
    std::memcpy(host.template as<std::uint8_t>() + c * cell_bytes, expected[c].data(), cell_bytes);
    queues[0]->copy(actual[c].memory.data(), host.template as<std::uint8_t>() + c * cell_bytes, cell_bytes);
    record(*queues[0], actual[c].written);
  }
  std::mt19937 random{seed};
  for (int operation = 0; operation < operations; ++operation) {
    std::size_t const s = random() % streams;
    auto& queue = *queues[s];
    std::size_t const from = random() % cells;
    std::size_t const to = (from + 1 + random() % (cells - 1)) % cells;
    std::size_t const half = random() % 2 * cell_bytes / 2;  // half cells: cells stay different
    bool const zero = random() % 16 == 0;
    wait(queue, actual[to].written);
    for (auto& reader : actual[to].read) { wait(queue, reader); }
    auto* const target = actual[to].memory.template as<std::uint8_t>() + half;
    if (zero) {
      queue.fill_zero(target, 8);
      std::memset(expected[to].data() + half, 0, 8);
    } else {
      wait(queue, actual[from].written);
      queue.copy(target, actual[from].memory.template as<std::uint8_t>() + cell_bytes / 2 - half,
                 cell_bytes / 2);
      std::memcpy(expected[to].data() + half, expected[from].data() + cell_bytes / 2 - half, cell_bytes / 2);
      record(queue, actual[from].read[s]);
    }
    record(queue, actual[to].written);
    if (random() % 500 == 0) {
      actual[to].written.event.wait();
    }
  }
  for (std::size_t c = 0; c < cells; ++c) {
    wait(*queues[1], actual[c].written);
    queues[1]->copy(host.template as<std::uint8_t>() + c * cell_bytes, actual[c].memory.data(), cell_bytes);
  }
  for (auto& queue : queues) { queue->synchronize(); }
  for (std::size_t c = 0; c < cells; ++c) {
    CHECK(std::memcmp(host.template as<std::uint8_t>() + c * cell_bytes, expected[c].data(), cell_bytes) ==
          0);
  }
}

}  // namespace superoffload::conformance

TEST_CASE_TEMPLATE_DEFINE("a device keeps its contract", D, device_conformance) {
  using namespace superoffload;
  using conformance::random_bytes;
  using stream = typename D::stream;
  using event = typename D::event;
  using tasks = conformance::tasks<D>;

  D device;

  // Device memory with one number, and host memory to copy it to.
  struct number {
    explicit number(D& d) : there{d, sizeof(int)}, here{d, sizeof(int), memory::host} {}
    void set(stream& queue, buffer<D> const& value) { queue.copy(there.data(), value.data(), sizeof(int)); }
    void show(stream& queue) { queue.copy(here.data(), there.data(), sizeof(int)); }
    int shown() const { return *here.template as<int>(); }
    buffer<D> there;
    buffer<D> here;
  };
  auto const constant = [&](int value) {
    buffer<D> memory{device, sizeof(int), memory::host};
    *memory.template as<int>() = value;
    return memory;
  };
  auto const one = constant(1);
  auto const two = constant(2);

  SUBCASE("memory of any size is aligned and its own") {
    stream queue{device};
    std::vector<std::pair<buffer<D>, std::vector<std::uint8_t>>> blocks;
    std::vector<buffer<D>> staging;
    std::uint32_t seed = 1;
    for (std::size_t const bytes :
         {1UL, 255UL, 256UL, 257UL, 4097UL, (4UL << 20) - 1, 4UL << 20, (4UL << 20) + 3}) {
      for (memory const kind : {memory::device, memory::host}) {
        auto& [block, content] =
            blocks.emplace_back(buffer<D>{device, bytes, kind}, random_bytes(bytes, seed++));
        CHECK(reinterpret_cast<std::uintptr_t>(block.data()) % 256 == 0);
        CHECK(block.bytes() == bytes);
        auto& source = staging.emplace_back(device, bytes, memory::host);
        std::memcpy(source.data(), content.data(), bytes);
        queue.copy(block.data(), source.data(), bytes);
      }
    }
    queue.synchronize();
    for (auto const& [block, content] : blocks) {
      buffer<D> back{device, block.bytes(), memory::host};
      queue.copy(back.data(), block.data(), block.bytes());
      queue.synchronize();
      CHECK(std::memcmp(back.data(), content.data(), block.bytes()) == 0);
    }
  }

  SUBCASE("a device has a description and memory") {
    CHECK(device.available_bytes() > 0);
    CHECK_FALSE(std::string{device.description()}.empty());
  }

  SUBCASE("a buffer moves, and an empty one has no address") {
    buffer<D> first{device, 100};
    void* const address = first.data();
    buffer<D> second{std::move(first)};
    CHECK(second.data() == address);
    CHECK(first.data() == nullptr);
    buffer<D> third{device, 5000, memory::host};
    third = std::move(second);
    CHECK(third.data() == address);
    CHECK(third.bytes() == 100);
    CHECK(buffer<D>{device, 0}.data() == nullptr);
    CHECK(buffer<D>{device, 0, memory::host}.data() == nullptr);
  }

  SUBCASE("copies and zeros reach exactly their bytes") {
    stream queue{device};
    for (std::size_t const bytes : {0UL, 1UL, 3UL, 255UL, 4096UL, (1UL << 20) + 7}) {
      auto const content = random_bytes(bytes + 32, 7);
      buffer<D> source{device, bytes + 32, memory::host};
      buffer<D> there{device, bytes + 32};
      buffer<D> back{device, bytes + 32, memory::host};
      std::memcpy(source.data(), content.data(), bytes + 32);
      auto* const inside = there.template as<std::uint8_t>() + 16;
      queue.fill_zero(there.data(), bytes + 32);
      queue.copy(inside, source.template as<std::uint8_t>() + 16, bytes);
      queue.copy(back.data(), there.data(), bytes + 32);
      queue.synchronize();
      auto expected = content;
      std::memset(expected.data(), 0, 16);
      std::memset(expected.data() + 16 + bytes, 0, 16);
      CHECK(std::memcmp(back.data(), expected.data(), bytes + 32) == 0);

      queue.copy(there.data(), source.data(), bytes + 32);
      queue.fill_zero(inside, bytes);
      queue.copy(back.data(), there.data(), bytes + 32);
      queue.synchronize();
      expected = content;
      std::memset(expected.data() + 16, 0, bytes);
      CHECK(std::memcmp(back.data(), expected.data(), bytes + 32) == 0);
    }
  }

  SUBCASE("a stream keeps its order with any number of tasks") {
    constexpr int count = 5000;
    buffer<D> source{device, count * sizeof(int), memory::host};
    buffer<D> back{device, count * sizeof(int), memory::host};
    number cell{device};
    stream queue{device};
    tasks::delay(queue);
    for (int i = 0; i < count; ++i) {
      source.template as<int>()[i] = i;
      queue.copy(cell.there.data(), source.template as<int>() + i, sizeof(int));
      queue.copy(back.template as<int>() + i, cell.there.data(), sizeof(int));
    }
    queue.synchronize();
    CHECK(std::memcmp(source.data(), back.data(), source.bytes()) == 0);
  }

  SUBCASE("destroying a stream waits for its tasks") {
    number cell{device};
    {
      stream queue{device};
      tasks::delay(queue);
      cell.set(queue, one);
      cell.show(queue);
    }
    CHECK(cell.shown() == 1);
  }

  SUBCASE("an event makes another stream wait") {
    number cell{device};
    stream writer{device};
    stream reader{device};
    event written{device};
    tasks::delay(writer);
    cell.set(writer, one);
    writer.record(written);
    reader.wait(written);
    cell.show(reader);
    reader.synchronize();
    CHECK(cell.shown() == 1);
  }

  SUBCASE("an event makes the host wait") {
    number cell{device};
    stream queue{device};
    event shown{device};
    CHECK(!shown.done());
    tasks::delay(queue);
    cell.set(queue, one);
    cell.show(queue);
    queue.record(shown);
    shown.wait();
    CHECK(shown.done());
    CHECK(cell.shown() == 1);
    shown.wait();  // a second wait returns at once
  }

  SUBCASE("a timed event knows when it was reached, across streams and in either direction") {
    using timed = typename D::timed_event;
    stream first{device};
    stream second{device};
    timed begin{device}, end{device}, other{device};
    CHECK_FALSE(begin.done());
    first.record(begin);
    tasks::delay(first);
    first.record(end);
    second.wait(end);
    second.record(other);
    second.synchronize();
    CHECK((begin.done() && end.done() && other.done()));
    CHECK(end.seconds_since(begin) > 0.0);
    CHECK(begin.seconds_since(end) == doctest::Approx(-end.seconds_since(begin)));
    CHECK(other.seconds_since(end) >= 0.0);
    CHECK(other.seconds_since(begin) >= end.seconds_since(begin));
    auto const before = end.seconds_since(begin);
    first.record(end);  // recorded twice: the later point counts
    first.synchronize();
    CHECK(end.seconds_since(begin) >= before);
  }

  SUBCASE("waiting is for the point recorded at that time, not for a later one") {
    number cell{device};
    number later{device};
    stream writer{device};
    stream reader{device};
    event written{device};
    event read{device};
    tasks::delay(writer);
    cell.set(writer, one);
    writer.record(written);
    reader.wait(written);
    cell.show(reader);
    reader.record(read);
    writer.wait(read);  // waiting for the later point would be a deadlock
    cell.set(writer, two);
    writer.record(written);
    reader.wait(written);
    reader.copy(later.here.data(), cell.there.data(), sizeof(int));
    reader.synchronize();
    CHECK(cell.shown() == 1);
    CHECK(later.shown() == 2);
  }

  SUBCASE("an event may be recorded by another stream, and waited for by its own") {
    number cell{device};
    stream slow{device};
    stream quick{device};
    event point{device};
    tasks::delay(slow);
    slow.record(point);
    quick.record(point);
    point.wait();
    cell.set(quick, two);
    quick.record(point);
    quick.wait(point);
    cell.show(quick);
    quick.synchronize();
    CHECK(cell.shown() == 2);
  }

  SUBCASE("an event outlives its stream and moves") {
    event point{device};
    {
      stream queue{device};
      tasks::delay(queue);
      queue.record(point);
    }
    CHECK(point.done());
    event moved{std::move(point)};
    moved.wait();
    stream other{device};
    other.wait(moved);
    {
      event gone{device};
      stream source{device};
      tasks::delay(source);
      source.record(gone);
      other.wait(gone);
    }  // both are destroyed while `other` may still wait
    other.synchronize();
  }

  SUBCASE("two streams take turns") {
    constexpr int rounds = 500;
    buffer<D> source{device, rounds * sizeof(int), memory::host};
    buffer<D> back{device, rounds * sizeof(int), memory::host};
    number cell{device};
    stream writer{device};
    stream reader{device};
    event written{device};
    event read{device};
    reader.record(read);
    for (int i = 0; i < rounds; ++i) {
      source.template as<int>()[i] = i;
      writer.wait(read);
      writer.copy(cell.there.data(), source.template as<int>() + i, sizeof(int));
      writer.record(written);
      reader.wait(written);
      reader.copy(back.template as<int>() + i, cell.there.data(), sizeof(int));
      reader.record(read);
    }
    reader.synchronize();
    CHECK(std::memcmp(source.data(), back.data(), source.bytes()) == 0);
  }

  SUBCASE("a random schedule gives the results of copies one by one") {
    for (std::uint32_t const seed : {1U, 2U, 3U}) { conformance::random_schedule(device, seed); }
  }

  SUBCASE("waiting for an event that was never recorded ends the program") {
    stream queue{device};
    event never{device};
    auto const by_stream = conformance::last_words([&] { queue.wait(never); });
    REQUIRE(by_stream);
    CHECK(by_stream->find("never recorded") != std::string::npos);
    auto const by_host = conformance::last_words([&] { never.wait(); });
    REQUIRE(by_host);
    CHECK(by_host->find("never recorded") != std::string::npos);
  }

  if constexpr (requires(stream& queue) { tasks::fail(queue); }) {
    SUBCASE("a failure is thrown by a wait for it") {
      number cell{device};
      stream queue{device};
      stream follower{device};
      event before{device};
      event after{device};
      cell.set(queue, one);
      cell.show(queue);
      queue.record(before);
      tasks::fail(queue);
      cell.set(queue, two);
      cell.show(queue);
      queue.record(after);
      before.wait();
      CHECK_THROWS(queue.synchronize());
      CHECK_THROWS(after.wait());
      CHECK(after.done());
      CHECK(cell.shown() == 1);
      follower.wait(before);
      follower.synchronize();
      follower.wait(after);
      cell.set(follower, two);
      cell.show(follower);
      CHECK_THROWS(follower.synchronize());
      CHECK(cell.shown() == 1);
    }
  }
}
