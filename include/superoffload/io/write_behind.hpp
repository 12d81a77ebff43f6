// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/file.hpp>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace superoffload::io {

/// Writes a file while the caller makes the next bytes of it: a thread takes filled buffers in order. The
/// disk begins with each buffer at once, so little is left to wait for at the end. Memory: four buffers.
class write_behind {
public:
  static constexpr std::size_t buffer_bytes = std::size_t{4} << 20;  ///< of one buffer

  /// Takes a file that is open for writing, and starts the thread.
  explicit write_behind(file target);
  write_behind(write_behind const&) = delete;
  write_behind& operator=(write_behind const&) = delete;
  /// Without finish(): gives up what is not written yet.
  ~write_behind();

  /// As the file was opened.
  [[nodiscard]] std::filesystem::path const& path() const noexcept { return target_.path(); }

  /// Memory for bytes [offset, offset + bytes) of the file, at most buffer_bytes, aligned for any element
  /// type. Waits for a free buffer. The span is valid until commit(), which must follow.
  /// \throws error(io_failure) of an earlier buffer: nothing after it is written.
  std::span<std::byte> next(std::uint64_t offset, std::size_t bytes);
  /// Hands the last span of next() to the thread, or the first `bytes` of it.
  void commit();
  void commit(std::size_t bytes);

  /// Call last. On return everything is written, the file is on stable storage and closed. \throws as next().
  void finish();

private:
  struct buffer {
    std::vector<std::byte> memory;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };

  void write_buffers();
  void stop();

  file target_;
  std::array<buffer, 4> buffers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t filled_ = 0;   ///< buffers, by commit()
  std::uint64_t written_ = 0;  ///< buffers, by the thread
  bool stops_ = false, drops_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/write_behind_inl.hpp>
#endif
