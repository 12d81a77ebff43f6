// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include <superoffload/comm/sum.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/check.hpp>
#include <superoffload/cuda/device.hpp>
#include <superoffload/nccl/sum.hpp>

#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

extern "C" int cudaSetDevice(int) { return 0; }

namespace superoffload::cuda {

struct detail::host_memory {};
class detail::gemms {};

bool detail::device_is_lost() noexcept { return false; }

int device::count() { return 8; }
device::device(int ordinal) : ordinal_{ordinal}, model_{"threads"} {}
device::~device() { delete failed_.load(); }
std::string device::description() const { return model_; }
std::size_t device::available_bytes() const { return std::size_t{1} << 30; }
void* device::allocate(std::size_t bytes) {
  return bytes == 0 ? nullptr : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
}
void device::release(void* memory, std::size_t) noexcept { std::free(memory); }
void* device::allocate_host(std::size_t bytes) { return allocate(bytes); }
void device::release_host(void* memory, std::size_t) noexcept { std::free(memory); }
std::string device::pci_address() const { return concat("0000:0", ordinal_, ":00.0"); }
std::size_t device::lockable_bytes() const { return std::numeric_limits<std::size_t>::max(); }
void device::activate() const {}

event::event(device& device) : device_{&device}, handle_{new CUevent_st} {}
event::event(event&& other) noexcept
    : device_{other.device_}, handle_{std::exchange(other.handle_, nullptr)}, recorded_{other.recorded_} {}
event& event::operator=(event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(recorded_, other.recorded_);
  return *this;
}
event::~event() { delete handle_; }
void event::wait() const {
  handle_->point.wait();
  device_->check_failed();
}
bool event::done() const noexcept { return handle_->point.done(); }
timed_event::timed_event(device& device) : event{device} {}
double timed_event::seconds_since(timed_event const&) const { return 0.0; }

stream::stream(device& device, priority) : device_{&device}, number_{0}, handle_{new CUstream_st} {}
stream::~stream() { delete handle_; }
void stream::copy(void* to, void const* from, std::size_t bytes) { handle_->queue.copy(to, from, bytes); }
void stream::fill_zero(void* to, std::size_t bytes) { handle_->queue.fill_zero(to, bytes); }
void stream::record(event& event) {
  handle_->queue.record(event.handle_->point);
  event.recorded_ = true;
}
void stream::wait(event const& event) { handle_->queue.wait(event.handle_->point); }
void stream::synchronize() {
  handle_->queue.synchronize();
  device_->check_failed();
}
void stream::activate() const {}

}  // namespace superoffload::cuda

namespace superoffload::nccl {

template <element From, element To>
void launch(cuda::stream& on, sum_of_parts<From, To> const& a) {
  on.handle()->queue.enqueue([a] {
    std::vector<std::byte const*> parts;
    auto const* other = a.others;
    for (int r = 0; r < a.ranks; ++r) {
      bool const own = a.own != nullptr && r == a.rank;
      parts.push_back(own ? reinterpret_cast<std::byte const*>(a.own) : other);
      other += own ? 0 : a.part_bytes;
    }
    comm::sum_in_order<From>(parts, a.to, a.count, a.accumulate);
  });
}
template void launch(cuda::stream&, sum_of_parts<float, float> const&);
template void launch(cuda::stream&, sum_of_parts<float, bfloat16> const&);
template void launch(cuda::stream&, sum_of_parts<bfloat16, bfloat16> const&);
template void launch(cuda::stream&, sum_of_parts<bfloat16, float> const&);
template void launch(cuda::stream&, sum_of_parts<double, double> const&);

}  // namespace superoffload::nccl
