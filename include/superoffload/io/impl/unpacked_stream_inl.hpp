// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/descriptor.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/unpacked_stream.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <spawn.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace superoffload::io {
namespace detail {

/// How files are packed.
struct packing {
  std::string_view first_bytes;
  std::string_view ending;
  char const* program;  ///< unpacks its input to its output with -dc
};
inline constexpr std::array<packing, 2> packings{{
    {"\x1f\x8b", ".gz", "gzip"},
    {"\x28\xb5\x2f\xfd", ".zst", "zstd"},
}};

/// What a program writes that unpacks a file.
class unpacked_stream final : public byte_stream {
public:
  unpacked_stream(file packed, packing const& how) : packed_{std::move(packed)}, program_{how.program} {
    std::array<int, 2> ends{};
    expect_call(::pipe2(ends.data(), O_CLOEXEC) == 0, exit_code::io_failure, shown(packed_.path()),
                ": no pipe to unpack it through");
    output_ = descriptor{ends[0]};
    descriptor const written{ends[1]};
    messages_ = descriptor{::memfd_create("messages", MFD_CLOEXEC)};
    expect_call(messages_.get() >= 0, exit_code::io_failure, shown(packed_.path()),
                ": no memory for the messages of what unpacks it");
    start(written.get());
  }
  unpacked_stream(unpacked_stream const&) = delete;
  unpacked_stream& operator=(unpacked_stream const&) = delete;
  ~unpacked_stream() override {
    if (process_ > 0) {
      ::kill(process_, SIGKILL);
      wait();
    }
  }

  std::size_t read(std::span<char> out) override {
    if (process_ < 0 || out.empty()) {
      return 0;
    }
    auto const got = uninterrupted([&] { return ::read(output_.get(), out.data(), out.size()); });
    expect_call(got >= 0, exit_code::io_failure, shown(packed_.path()), ": ", program_,
                " cannot be read from");
    if (got == 0) {
      expect_success();
    }
    return static_cast<std::size_t>(got);
  }

private:
  /// The program gets a group of its own: a signal from the terminal is for the run, which ends the stream.
  void start(int written) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_adddup2(&files, packed_.descriptor(), 0);
    ::posix_spawn_file_actions_adddup2(&files, written, 1);
    ::posix_spawn_file_actions_adddup2(&files, messages_.get(), 2);
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &defaults);
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawnattr_setflags(&attributes,
                               POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    std::string program{program_}, arguments{"-dc"};
    std::array<char*, 3> const argv{program.data(), arguments.data(), nullptr};
    auto const failure = ::posix_spawnp(&process_, program_, &files, &attributes, argv.data(), ::environ);
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&files);
    if (failure != 0) {
      process_ = -1;
      fail(exit_code::bad_input, shown(packed_.path()), ": is packed by ", program_,
           ", and that program cannot be started: ", std::strerror(failure), "; install ", program_,
           ", or unpack the file");
    }
  }

  int wait() {
    int status = -1;
    uninterrupted([&] { return ::waitpid(process_, &status, 0); });
    process_ = -1;
    return status;
  }

  /// A file that is cut off or damaged is seen at the end, by the program's exit code. Where the caller
  /// ignores SIGCHLD there is none, but there are messages.
  void expect_success() {
    auto const status = wait();
    std::array<char, 200> text{};
    auto const got = ::pread(messages_.get(), text.data(), text.size(), 0);
    std::string_view said{text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, got))};
    said = said.substr(0, said.find('\n'));
    expect(status == 0 || (status == -1 && said.empty()), exit_code::bad_input, shown(packed_.path()), ": ",
           program_, " cannot unpack it: ", said.empty() ? "it failed" : printable(said, text.size()),
           "; expected a whole file");
  }

  file packed_;
  char const* program_;
  descriptor output_, messages_;
  pid_t process_ = -1;
};

}  // namespace detail

SUPEROFFLOAD_INLINE std::unique_ptr<byte_stream> open_unpacked(std::filesystem::path const& path) {
  auto opened = file::open_read(path);
  std::array<char, 4> buffer{};
  auto const some = std::span{buffer}.first(std::min<std::uint64_t>(buffer.size(), opened.size()));
  opened.pread_exact(0, std::as_writable_bytes(some));
  for (auto const& how : detail::packings) {
    if (std::string_view{some.data(), some.size()}.starts_with(how.first_bytes)) {
      return std::make_unique<detail::unpacked_stream>(std::move(opened), how);
    }
  }
  return open_stream(std::move(opened));
}

SUPEROFFLOAD_INLINE std::string_view unpacked_name(std::string_view name) {
  for (auto const& how : detail::packings) {
    if (name.ends_with(how.ending)) {
      return name.substr(0, name.size() - how.ending.size());
    }
  }
  return name;
}

}  // namespace superoffload::io
