// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Preloaded into a program, it sees the program's calls on files: it records them, and makes some fail.
//
// - SUPEROFFLOAD_IO_ROOT: calls on what is below this directory count, all others are passed on.
// - SUPEROFFLOAD_IO_TRACE: the file to which they are recorded, in their order, with the written data.
// - SUPEROFFLOAD_IO_FAULT: NUMBER,ERRNO,LASTING. The first call from this number on, from 0, that can fail
//   with ERRNO does, and with LASTING 1 all later ones. ERRNO -1: it transfers half of its bytes; -9: the
//   process is killed before the call; -10: after it.
// - SUPEROFFLOAD_IO_RANK: the process with this value of RANK has the fault; without it every process.
// - SUPEROFFLOAD_IO_FIRED: a file that is made when the fault happens.
// - SUPEROFFLOAD_IO_PLAIN: names cannot be exchanged, as on some file systems.
#include "faults/io_calls.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using namespace superoffload::test;

template <class Function>
Function* next(char const* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

char const* variable(char const* name) {
  char const* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The name without `.`, `..` and double slashes; links are not followed.
std::string absolute(char const* path, int at = AT_FDCWD) {
  std::string whole = path;
  if (whole.empty() || whole.front() != '/') {
    std::array<char, PATH_MAX> base{};
    auto const link = at == AT_FDCWD ? std::string{"/proc/self/cwd"} : "/proc/self/fd/" + std::to_string(at);
    auto const size = ::readlink(link.c_str(), base.data(), base.size());
    whole = std::string(base.data(), size > 0 ? static_cast<std::size_t>(size) : 0) + "/" + whole;
  }
  std::string plain;
  for (std::size_t begin = 0; begin < whole.size();) {
    auto const end = std::min(whole.find('/', begin), whole.size());
    auto const part = whole.substr(begin, end - begin);
    if (part == "..") {
      plain.erase(std::min(plain.rfind('/'), plain.size()));
    } else if (!part.empty() && part != ".") {
      plain += "/" + part;
    }
    begin = end + 1;
  }
  return plain;
}

class shim {
public:
  static shim& get() {
    static shim* const one = new shim;  // calls come until the very end of the process
    return *one;
  }

  [[nodiscard]] bool concerns(std::string const& path) const {
    return !root_.empty() && path.starts_with(root_) &&
           (path.size() == root_.size() || path[root_.size()] == '/');
  }

  /// The name and the number of an open descriptor that counts.
  struct opened {
    std::string path;
    std::uint64_t number = 0;
  };
  [[nodiscard]] opened of(int descriptor) {
    std::lock_guard const lock{mutex_};
    return descriptor >= 0 && descriptor < most ? files_[static_cast<std::size_t>(descriptor)] : opened{};
  }
  void opens(int descriptor, std::string const& path, std::uint64_t number) {
    std::lock_guard const lock{mutex_};
    if (descriptor >= 0 && descriptor < most) {
      files_[static_cast<std::size_t>(descriptor)] = {path, number};
    }
  }

  /// Makes a call, or fails it. `work(shortened)` makes it and fills in what is recorded; a negative result
  /// is a failure.
  template <class Work>
  auto call(io_event event, Work work) -> decltype(work(event, false)) {
    int const saved = errno;
    auto const what = strikes(event.what);
    if (what > 0) {
      fired();
      errno = what;
      return -1;
    }
    if (what == killed_before) {
      fired();
      end();
    }
    errno = saved;
    std::unique_lock<std::mutex> lock{recording_, std::defer_lock};
    if (trace_ >= 0) {  // in the order in which the calls are made
      lock.lock();
      ::flock(trace_, LOCK_EX);
      errno = saved;
    }
    auto const result = work(event, what == shortened);
    int const reason = errno;
    if (what == shortened) {
      fired();
    }
    if (trace_ >= 0) {
      if (result >= 0) {
        auto const text = encoded(event);
        ::syscall(SYS_write, trace_, text.data(), text.size());
      }
      ::flock(trace_, LOCK_UN);
    }
    if (what == killed_after) {
      fired();
      end();
    }
    errno = reason;
    return result;
  }

  /// Records what the program says, between its calls.
  void says(std::string_view text) {
    if (trace_ >= 0) {
      io_event const event{.what = io_call::say, .data = std::string{text}};
      auto const line = encoded(event);
      ::syscall(SYS_write, trace_, line.data(), line.size());
    }
  }

  [[nodiscard]] bool exchanges() const { return exchanges_; }
  [[nodiscard]] std::uint64_t new_number() { return (std::uint64_t(::getpid()) << 32U) | ++numbers_; }

private:
  static constexpr int most = 4096;

  shim()
      : root_{absolute(variable("SUPEROFFLOAD_IO_ROOT"))},
        exchanges_{variable("SUPEROFFLOAD_IO_PLAIN")[0] == '\0'} {
    if (variable("SUPEROFFLOAD_IO_ROOT")[0] == '\0') {
      root_.clear();
    }
    std::string const rank = variable("SUPEROFFLOAD_IO_RANK");
    if (rank.empty() || rank == variable("RANK")) {
      std::sscanf(variable("SUPEROFFLOAD_IO_FAULT"), "%ld,%d,%d", &at_, &with_, &lasting_);
    }
    char const* const trace = variable("SUPEROFFLOAD_IO_TRACE");
    if (trace[0] != '\0') {
      auto const descriptor =
          static_cast<int>(::syscall(SYS_openat, AT_FDCWD, trace, O_WRONLY | O_CREAT | O_APPEND, 0600));
      trace_ = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 900);
      ::syscall(SYS_close, descriptor);
    }
  }

  /// What happens to this call.
  int strikes(io_call what) {
    if (at_ < 0) {
      return 0;
    }
    // Threads may change the order of calls from run to run, so the next call that can fail does.
    bool const now = count_++ >= at_ && can_fail(what, with_);
    return now && (lasting_ != 0 || !struck_.exchange(true)) ? with_ : 0;
  }
  static void fired() {
    char const* const file = variable("SUPEROFFLOAD_IO_FIRED");
    if (file[0] != '\0') {
      auto const made = ::syscall(SYS_openat, AT_FDCWD, file, O_WRONLY | O_CREAT, 0600);
      ::syscall(SYS_close, made);
    }
  }
  [[noreturn]] static void end() {
    ::kill(::getpid(), SIGKILL);
    while (true) { ::pause(); }
  }

  std::string root_;
  bool exchanges_;
  long at_ = -1;
  int with_ = 0;
  int lasting_ = 0;
  int trace_ = -1;
  std::atomic<long> count_{0};
  std::atomic<bool> struck_{false};
  std::atomic<std::uint64_t> numbers_{0};
  std::mutex mutex_, recording_;
  std::array<opened, most> files_;
};

int open_at(int at, char const* path, int flags, mode_t mode) {
  auto const whole = absolute(path, at);
  auto const really = [&] { return static_cast<int>(::syscall(SYS_openat, at, path, flags, mode)); };
  auto& s = shim::get();
  if (!s.concerns(whole)) {
    return really();
  }
  io_event event{.what = io_call::open, .file = s.new_number(), .path = whole};
  return s.call(event, [&](io_event& e, bool) {
    struct stat status{};
    bool const was_there = ::fstatat(at, path, &status, 0) == 0;
    int const descriptor = really();
    e.size = (flags & O_CREAT) != 0 && !was_there ? 1U : (flags & O_TRUNC) != 0 ? 2U : 0U;
    if (descriptor >= 0) {
      s.opens(descriptor, whole, e.file);
    }
    return descriptor;
  });
}

template <class Transfer>
ssize_t transfer(io_call what, int descriptor, std::size_t size, off_t offset, void const* data,
                 Transfer really) {
  auto& s = shim::get();
  auto const file = s.of(descriptor);
  if (file.path.empty()) {
    return really(size);
  }
  io_event event{.what = what, .file = file.number, .path = file.path};
  return s.call(event, [&](io_event& e, bool shortened) {
    off_t at = offset;
    if (what == io_call::write && offset < 0) {
      struct stat status{};
      bool const appends = (::fcntl(descriptor, F_GETFL) & O_APPEND) != 0;
      at = appends && ::fstat(descriptor, &status) == 0 ? status.st_size : ::lseek(descriptor, 0, SEEK_CUR);
    }
    auto const done = really(shortened ? (size + 1) / 2 : size);
    if (done > 0) {
      e.offset = static_cast<std::uint64_t>(at < 0 ? 0 : at);
      e.size = static_cast<std::uint64_t>(done);
      if (what == io_call::write) {
        e.data.assign(static_cast<char const*>(data), static_cast<std::size_t>(done));
      }
    }
    return done;
  });
}

template <class Work>
int on_descriptor(io_call what, int descriptor, std::uint64_t size, Work really) {
  auto& s = shim::get();
  auto const file = s.of(descriptor);
  if (file.path.empty()) {
    return really();
  }
  io_event event{.what = what, .file = file.number, .size = size, .path = file.path};
  return s.call(event, [&](io_event&, bool) { return really(); });
}

template <class Work>
int on_path(io_call what, char const* path, char const* to, Work really) {
  auto& s = shim::get();
  auto const whole = absolute(path);
  if (!s.concerns(whole)) {
    return really();
  }
  io_event event{.what = what, .path = whole, .to = to == nullptr ? std::string{} : absolute(to)};
  return s.call(event, [&](io_event&, bool) { return really(); });
}

/// posix_fallocate returns the reason.
int reserve(int descriptor, off_t offset, off_t size) {
  int const failed =
      on_descriptor(io_call::preallocate, descriptor, static_cast<std::uint64_t>(offset + size), [&] {
        static auto* const really = next<int(int, off_t, off_t)>("posix_fallocate");
        errno = really(descriptor, offset, size);
        return errno == 0 ? 0 : -1;
      });
  return failed == 0 ? 0 : errno;
}

}  // namespace

extern "C" {

int open(char const* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  auto const mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  return open_at(AT_FDCWD, path, flags, mode);
}
int open64(char const* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  auto const mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  return open_at(AT_FDCWD, path, flags, mode);
}
int openat(int at, char const* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  auto const mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : mode_t{0};
  va_end(more);
  return open_at(at, path, flags, mode);
}
ssize_t read(int descriptor, void* to, std::size_t size) {
  return transfer(io_call::read, descriptor, size, -1, nullptr,
                  [=](std::size_t n) { return ::syscall(SYS_read, descriptor, to, n); });
}
ssize_t pread(int descriptor, void* to, std::size_t size, off_t offset) {
  return transfer(io_call::read, descriptor, size, offset, nullptr,
                  [=](std::size_t n) { return ::syscall(SYS_pread64, descriptor, to, n, offset); });
}
ssize_t pread64(int descriptor, void* to, std::size_t size, off_t offset) {
  return pread(descriptor, to, size, offset);
}
ssize_t write(int descriptor, void const* from, std::size_t size) {
  if (descriptor == STDERR_FILENO) {
    shim::get().says({static_cast<char const*>(from), size});
  }
  return transfer(io_call::write, descriptor, size, -1, from,
                  [=](std::size_t n) { return ::syscall(SYS_write, descriptor, from, n); });
}
ssize_t pwrite(int descriptor, void const* from, std::size_t size, off_t offset) {
  return transfer(io_call::write, descriptor, size, offset, from,
                  [=](std::size_t n) { return ::syscall(SYS_pwrite64, descriptor, from, n, offset); });
}
ssize_t pwrite64(int descriptor, void const* from, std::size_t size, off_t offset) {
  return pwrite(descriptor, from, size, offset);
}
int posix_fallocate(int descriptor, off_t offset, off_t size) { return reserve(descriptor, offset, size); }
int posix_fallocate64(int descriptor, off_t offset, off_t size) { return reserve(descriptor, offset, size); }
int ftruncate(int descriptor, off_t size) noexcept {
  return on_descriptor(io_call::truncate, descriptor, static_cast<std::uint64_t>(size),
                       [=] { return static_cast<int>(::syscall(SYS_ftruncate, descriptor, size)); });
}
int ftruncate64(int descriptor, off_t size) noexcept { return ftruncate(descriptor, size); }
int fsync(int descriptor) {
  return on_descriptor(io_call::sync, descriptor, 0,
                       [=] { return static_cast<int>(::syscall(SYS_fsync, descriptor)); });
}
int fdatasync(int descriptor) {
  return on_descriptor(io_call::sync, descriptor, 0,
                       [=] { return static_cast<int>(::syscall(SYS_fdatasync, descriptor)); });
}
int close(int descriptor) {
  auto& s = shim::get();
  auto const file = s.of(descriptor);
  if (file.path.empty()) {
    return static_cast<int>(::syscall(SYS_close, descriptor));
  }
  s.opens(descriptor, "", 0);
  io_event event{.what = io_call::close, .file = file.number, .path = file.path};
  bool closed = false;
  int const result = s.call(event, [&](io_event&, bool) {
    closed = true;
    return static_cast<int>(::syscall(SYS_close, descriptor));
  });
  if (!closed) {  // a close that fails has closed nevertheless
    int const reason = errno;
    ::syscall(SYS_close, descriptor);
    errno = reason;
  }
  return result;
}
int mkdir(char const* path, mode_t mode) noexcept {
  return on_path(io_call::make_directory, path, nullptr,
                 [=] { return static_cast<int>(::syscall(SYS_mkdirat, AT_FDCWD, path, mode)); });
}
int rename(char const* from, char const* to) noexcept {
  return on_path(io_call::rename, from, to,
                 [=] { return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)); });
}
int renameat2(int from_at, char const* from, int to_at, char const* to, unsigned flags) noexcept {
  if ((flags & RENAME_EXCHANGE) != 0 && !shim::get().exchanges()) {
    errno = EINVAL;
    return -1;
  }
  return on_path((flags & RENAME_EXCHANGE) != 0 ? io_call::exchange : io_call::rename, from, to,
                 [=] { return static_cast<int>(::syscall(SYS_renameat2, from_at, from, to_at, to, flags)); });
}
int unlink(char const* path) noexcept {
  return on_path(io_call::remove, path, nullptr,
                 [=] { return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, 0)); });
}
int rmdir(char const* path) noexcept {
  return on_path(io_call::remove, path, nullptr,
                 [=] { return static_cast<int>(::syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)); });
}
DIR* opendir(char const* path) {
  DIR* found = nullptr;
  int const failed = on_path(io_call::list, path, nullptr, [&] {
    static auto* const really = next<DIR*(char const*)>("opendir");
    found = really(path);
    return found == nullptr ? -1 : 0;
  });
  return failed == 0 ? found : nullptr;
}

}  // extern "C"
