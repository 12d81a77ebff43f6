// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/creation_mode.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/io/fault.hpp>
#include <superoffload/io/file.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace superoffload::io {
namespace detail {

/// Repeats `system_call` while signals interrupt it, unless a test makes it fail. \returns -1 and sets errno
/// on failure.
template <class Call>
auto attempt(operation what, std::filesystem::path const& path, Call system_call)
    -> decltype(system_call(0)) {
  return uninterrupted([&] {
    int const injected = injected_fault(what, path);
    return injected > 0 ? (errno = injected, -1) : system_call(injected);
  });
}

/// How much of `bytes` one system call is asked to transfer.
SUPEROFFLOAD_INLINE std::size_t transfer_size(std::size_t bytes, int injected) {
  return injected == short_transfer ? (bytes + 1) / 2 : bytes;
}

SUPEROFFLOAD_INLINE void expect_done(bool done, std::filesystem::path const& path, std::string_view what) {
  expect(done, exit_code::io_failure, shown(path), ": ", what, " failed: ", std::strerror(errno));
}

}  // namespace detail

SUPEROFFLOAD_INLINE file file::open_read(std::filesystem::path const& path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  int const descriptor = detail::attempt(operation::open, path, [&](int) {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  });
  if (descriptor < 0) {
    bool const absent = errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
    fail(absent ? exit_code::bad_input : exit_code::io_failure, shown(path),
         ": cannot be opened: ", std::strerror(errno));
  }
  file opened{descriptor, path};
  struct stat status{};
  detail::expect_done(::fstat(descriptor, &status) == 0, path, "asking for its kind");
  expect(S_ISREG(status.st_mode), exit_code::bad_input, shown(path), ": expected a regular file");
  return opened;
}

SUPEROFFLOAD_INLINE file file::create_new(std::filesystem::path const& path) {
  int const descriptor = detail::attempt(operation::open, path, [&](int) {
    return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, new_file_mode);
  });
  detail::expect_done(descriptor >= 0, path, "creating the file");
  return {descriptor, path};
}

SUPEROFFLOAD_INLINE file::file(file&& other) noexcept
    : descriptor_{std::exchange(other.descriptor_, -1)}, path_{std::move(other.path_)} {}

SUPEROFFLOAD_INLINE file& file::operator=(file&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

SUPEROFFLOAD_INLINE file::~file() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

SUPEROFFLOAD_INLINE std::uint64_t file::size() const {
  struct stat status{};
  detail::expect_done(::fstat(descriptor_, &status) == 0, path_, "asking for its size");
  return static_cast<std::uint64_t>(status.st_size);
}

SUPEROFFLOAD_INLINE void file::pread_exact(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    auto const got = detail::attempt(operation::read, path_, [&](int injected) {
      return ::pread(descriptor_, out.data(), detail::transfer_size(out.size(), injected),
                     static_cast<off_t>(offset));
    });
    detail::expect_done(got >= 0, path_, "reading");
    expect(got > 0, exit_code::io_failure, shown(path_), ": ends at byte ", offset, ", expected ", out.size(),
           " more: it became shorter while it was read");
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

SUPEROFFLOAD_INLINE void file::pwrite_all(std::uint64_t offset, std::span<std::byte const> data) const {
  while (!data.empty()) {
    auto const put = detail::attempt(operation::write, path_, [&](int injected) {
      return ::pwrite(descriptor_, data.data(), detail::transfer_size(data.size(), injected),
                      static_cast<off_t>(offset));
    });
    detail::expect_done(put >= 0, path_, "writing");
    expect(put > 0, exit_code::io_failure, shown(path_), ": writing stopped at byte ", offset);
    data = data.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
}

SUPEROFFLOAD_INLINE void file::preallocate(std::uint64_t bytes) const {
  if (bytes == 0) {
    return;
  }
  int const result = detail::attempt(operation::preallocate, path_, [&](int) {
    errno = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
    return errno == 0 ? 0 : -1;
  });
  if (result != 0 && (errno == EOPNOTSUPP || errno == EINVAL)) {
    return;  // this file system cannot reserve space: writing reports a full disk
  }
  detail::expect_done(result == 0, path_, concat("reserving ", bytes, " bytes"));
}

SUPEROFFLOAD_INLINE void file::start_sync(std::uint64_t offset, std::uint64_t bytes) const noexcept {
  (void)::sync_file_range(descriptor_, static_cast<off64_t>(offset), static_cast<off64_t>(bytes),
                          SYNC_FILE_RANGE_WRITE);
}

SUPEROFFLOAD_INLINE void file::sync() const {
  detail::expect_done(detail::attempt(operation::sync, path_, [&](int) { return ::fsync(descriptor_); }) == 0,
                      path_, "syncing");
}

SUPEROFFLOAD_INLINE void file::close() {
  int const descriptor = std::exchange(descriptor_, -1);
  int const injected = injected_fault(operation::close, path_);
  int const result = ::close(descriptor);
  if (injected > 0) {
    errno = injected;
  }
  // Linux has freed the descriptor even when it reports an interruption.
  detail::expect_done((result == 0 && injected <= 0) || errno == EINTR, path_, "closing");
}

SUPEROFFLOAD_INLINE std::string read_file(std::filesystem::path const& path, std::size_t limit) {
  auto const source = file::open_read(path);
  auto const bytes = source.size();
  expect(bytes <= limit, exit_code::bad_input, shown(path), ": ", bytes, " bytes, expected at most ", limit);
  std::string content(bytes, '\0');
  source.pread_exact(0, std::as_writable_bytes(std::span{content}));
  return content;
}

SUPEROFFLOAD_INLINE void write_new_file(std::filesystem::path const& path, std::string_view content) {
  auto target = file::create_new(path);
  target.pwrite_all(0, std::as_bytes(std::span{content}));
  target.sync();
  target.close();
}

}  // namespace superoffload::io
