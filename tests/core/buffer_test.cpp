// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/buffer.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

using namespace superoffload;

namespace {
/// A device with four blocks of memory that records its calls.
class ledger {
public:
  using policy_category = category::device;
  struct event {
    explicit event(ledger&) {}
    void wait() {}
    bool done() { return true; }
  };
  struct timed_event : event {
    using event::event;
    double seconds_since(timed_event const&) const { return 0.0; }
  };
  struct stream {
    explicit stream(ledger&) {}
    void copy(void*, void const*, std::size_t) {}
    void fill_zero(void*, std::size_t) {}
    void record(event&) {}
    void wait(event const&) {}
    void synchronize() {}
  };
  using entry = std::tuple<std::string, void*, std::size_t>;

  static std::string name() { return "ledger"; }
  static std::string description() { return "ledger"; }
  static std::size_t available_bytes() { return 4; }
  static constexpr std::size_t logits_chunk_bytes = 1;
  static constexpr std::size_t gemm_workspace_bytes = 0;
  static constexpr double flops_per_byte = 1;
  static constexpr double settling_time = 0;
  memory_account& host_account() { return account; }
  static std::string pci_address() { return {}; }
  static std::size_t lockable_bytes() { return 4; }
  void* allocate(std::size_t bytes) { return take("allocate", bytes); }
  void* allocate_host(std::size_t bytes) { return take("allocate_host", bytes); }
  void release(void* memory, std::size_t bytes) noexcept { entries.emplace_back("release", memory, bytes); }
  void release_host(void* memory, std::size_t bytes) noexcept {
    entries.emplace_back("release_host", memory, bytes);
  }

  memory_account account;
  std::vector<entry> entries;
  bool refuse = false;

private:
  void* take(std::string const& how, std::size_t bytes) {
    if (refuse) {
      throw std::bad_alloc{};
    }
    void* const block = &blocks_.at(next_++);
    entries.emplace_back(how, block, bytes);
    return block;
  }
  std::array<std::byte, 4> blocks_{};
  std::size_t next_ = 0;
};
static_assert(device_policy<ledger>);
}  // namespace

TEST_CASE("what was allocated is released once, the same way") {
  ledger device;
  void* first = nullptr;
  void* second = nullptr;
  {
    buffer<ledger> const on_device{device, 10};
    buffer<ledger> const on_host{device, 20, memory::host};
    first = on_device.data();
    second = on_host.data();
    CHECK(on_device.bytes() == 10);
    CHECK(on_host.as<std::byte>() == second);
  }
  CHECK(device.entries == std::vector<ledger::entry>{{"allocate", first, 10},
                                                     {"allocate_host", second, 20},
                                                     {"release_host", second, 20},
                                                     {"release", first, 10}});
}

TEST_CASE("zero bytes are neither allocated nor released") {
  ledger device;
  {
    buffer<ledger> const none;
    buffer<ledger> const empty{device, 0};
    buffer<ledger> const empty_host{device, 0, memory::host};
    CHECK(none.data() == nullptr);
    CHECK(empty.data() == nullptr);
    CHECK(empty_host.bytes() == 0);
  }
  CHECK(device.entries.empty());
}

TEST_CASE("moving transfers ownership, and assigning releases the old memory") {
  ledger device;
  buffer<ledger> first{device, 1};
  buffer<ledger> second{device, 2, memory::host};
  void* const one = first.data();
  void* const two = second.data();
  second = std::move(first);
  CHECK(second.data() == one);
  CHECK(second.bytes() == 1);
  CHECK(first.data() == nullptr);
  CHECK(first.bytes() == 0);
  CHECK(device.entries.size() == 3);
  CHECK(device.entries.back() == ledger::entry{"release_host", two, 2});
  {
    buffer<ledger> const third{std::move(second)};
    CHECK(third.data() == one);
  }
  CHECK(device.entries.back() == ledger::entry{"release", one, 1});
  CHECK(device.entries.size() == 4);
  second = buffer<ledger>{device, 3};
  auto& same = second;
  void* const three = second.data();
  second = std::move(same);
  CHECK(second.data() == three);
  CHECK(device.entries.size() == 5);
}

TEST_CASE("an allocation that throws leaves nothing to release") {
  ledger device;
  device.refuse = true;
  CHECK_THROWS_AS((buffer<ledger>{device, 8}), std::bad_alloc);
  CHECK(device.entries.empty());
}
