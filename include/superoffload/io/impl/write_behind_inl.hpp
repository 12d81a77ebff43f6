// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/write_behind.hpp>

#include <utility>

namespace superoffload::io {

SUPEROFFLOAD_INLINE write_behind::write_behind(file target)
    : target_{std::move(target)}, thread_{[this] { write_buffers(); }} {}

SUPEROFFLOAD_INLINE write_behind::~write_behind() {
  {
    std::lock_guard const lock{mutex_};
    drops_ = true;
  }
  stop();
}

SUPEROFFLOAD_INLINE std::span<std::byte> write_behind::next(std::uint64_t offset, std::size_t bytes) {
  expect(bytes <= buffer_bytes, exit_code::internal, shown(path()), ": ", bytes,
         " bytes for one buffer, expected at most ", buffer_bytes);
  std::unique_lock lock{mutex_};
  changed_.wait(lock, [&] { return failure_ || filled_ - written_ < buffers_.size(); });
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  auto& free = buffers_[filled_ % buffers_.size()];
  lock.unlock();
  if (free.memory.size() < bytes) {
    free.memory.resize(bytes);
  }
  free.offset = offset;
  free.bytes = bytes;
  return std::span{free.memory}.first(bytes);
}

SUPEROFFLOAD_INLINE void write_behind::commit() {
  {
    std::lock_guard const lock{mutex_};
    ++filled_;
  }
  changed_.notify_all();
}

SUPEROFFLOAD_INLINE void write_behind::commit(std::size_t bytes) {
  auto& filled = buffers_[filled_ % buffers_.size()];
  expect(bytes <= filled.bytes, exit_code::internal, shown(path()), ": ", bytes, " of ", filled.bytes,
         " bytes");
  filled.bytes = bytes;
  commit();
}

SUPEROFFLOAD_INLINE void write_behind::finish() {
  stop();
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  target_.sync();
  target_.close();
}

SUPEROFFLOAD_INLINE void write_behind::stop() {
  {
    std::lock_guard const lock{mutex_};
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) {
    thread_.join();
  }
}

SUPEROFFLOAD_INLINE void write_behind::write_buffers() {
  std::unique_lock lock{mutex_};
  for (;;) {
    changed_.wait(lock, [&] { return stops_ || filled_ > written_; });
    if (filled_ == written_ || drops_) {
      return;
    }
    auto const& full = buffers_[written_ % buffers_.size()];
    lock.unlock();
    std::exception_ptr failure;
    try {
      target_.pwrite_all(full.offset, std::span{full.memory}.first(full.bytes));
      target_.start_sync(full.offset, full.bytes);
    } catch (...) { failure = std::current_exception(); }
    lock.lock();
    failure_ = failure;
    ++written_;
    changed_.notify_all();
    if (failure_) {
      return;
    }
  }
}

}  // namespace superoffload::io
