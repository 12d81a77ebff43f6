// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/creation_mode.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/file_lock.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace superoffload::io {
namespace detail {

SUPEROFFLOAD_INLINE int open_lock(std::filesystem::path const& path) {
  for (;;) {
    int const descriptor = ::open(
        path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, new_file_mode);
    int const reason = errno;
    if (descriptor >= 0) {
      return descriptor;
    }
    expect(reason == EINTR, exit_code::io_failure, shown(path),
           ": cannot be opened: ", std::strerror(reason));
  }
}

/// 0, or the error number.
SUPEROFFLOAD_INLINE int lock(int descriptor) {
  while (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

SUPEROFFLOAD_INLINE bool is_at(std::filesystem::path const& path, struct stat const& opened) {
  struct stat there{};
  return ::lstat(path.c_str(), &there) == 0 && there.st_dev == opened.st_dev && there.st_ino == opened.st_ino;
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::optional<file_lock> file_lock::acquire(std::filesystem::path const& path) {
  for (;;) {
    int const descriptor = detail::open_lock(path);
    struct stat opened{};
    bool const regular = ::fstat(descriptor, &opened) == 0 && S_ISREG(opened.st_mode);
    int const refused = regular ? detail::lock(descriptor) : EWOULDBLOCK;
    if (refused == EWOULDBLOCK) {
      ::close(descriptor);
      expect(regular, exit_code::bad_input, shown(path), ": expected a regular file, or a name that is free");
      return std::nullopt;
    }
    if (refused != 0 || detail::is_at(path, opened)) {
      return file_lock{
          descriptor, path,
          refused == 0 ? std::string{} : concat(shown(path), ": cannot be locked: ", std::strerror(refused))};
    }
    ::close(descriptor);  // the process that had it ended meanwhile and removed it
  }
}

SUPEROFFLOAD_INLINE file_lock::~file_lock() {
  if (descriptor_ >= 0) {
    ::unlink(path_.c_str());  // while it is locked: a process that has it open tries again
    ::close(descriptor_);
  }
}

}  // namespace superoffload::io
