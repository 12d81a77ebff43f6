// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/creation_mode.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/fault.hpp>
#include <superoffload/io/impl/file_inl.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <limits>
#include <memory>
#include <random>
#include <stdio.h>
#include <string_view>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <system_error>
#include <unistd.h>

namespace superoffload::io {
namespace detail {

namespace fs = std::filesystem;

/// \returns whether it succeeded; errno is the reason if not.
template <class Call>
bool succeeds(operation what, fs::path const& path, Call system_call) {
  return uninterrupted([&] {
           int const injected = injected_fault(what, path);
           return injected > 0 ? (errno = injected, -1) : system_call();
         }) == 0;
}

SUPEROFFLOAD_INLINE fs::path parent_of(fs::path const& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path{"."};
}

SUPEROFFLOAD_INLINE bool is_there(fs::path const& path) {
  std::error_code failure;
  return fs::exists(fs::symlink_status(path, failure));
}

SUPEROFFLOAD_INLINE bool exchange(fs::path const& a, fs::path const& b) {
  return succeeds(operation::exchange, b,
                  [&] { return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE); });
}

}  // namespace detail

SUPEROFFLOAD_INLINE void make_directories(std::filesystem::path const& path) {
  std::error_code failure;
  if (path.empty() || std::filesystem::is_directory(path, failure)) {
    return;
  }
  make_directories(path.parent_path());
  bool const made = detail::succeeds(operation::make_directory, path,
                                     [&] { return ::mkdir(path.c_str(), new_directory_mode); });
  detail::expect_done(made || (errno == EEXIST && std::filesystem::is_directory(path, failure)), path,
                      "creating the directory");
  sync_directory(detail::parent_of(path));
}

SUPEROFFLOAD_INLINE void sync_directory(std::filesystem::path const& path) {
  int const descriptor =
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  detail::expect_done(descriptor >= 0, path, "opening the directory");
  bool const synced = detail::succeeds(operation::sync, path, [&] { return ::fsync(descriptor); });
  int const reason = errno;
  ::close(descriptor);
  errno = reason;
  detail::expect_done(synced, path, "syncing the directory");
}

namespace detail {
/// Adds the names in a directory, in any order; returns 0, or the errno of what failed. Not by
/// std::filesystem::directory_iterator, which ends the program where memory is refused.
SUPEROFFLOAD_INLINE int add_names_in(fs::path const& path, std::vector<std::string>& names) {
  if (int const injected = injected_fault(operation::list, path); injected > 0) {
    return injected;
  }
  std::unique_ptr<DIR, int (*)(DIR*)> const opened{::opendir(path.c_str()), ::closedir};
  while (opened) {
    errno = 0;
    auto const* const entry = ::readdir(opened.get());
    if (entry == nullptr) {
      break;
    }
    std::string_view const name{entry->d_name};
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
  }
  return errno;
}
}  // namespace detail

SUPEROFFLOAD_INLINE std::vector<std::string> list_directory(std::filesystem::path const& path) {
  std::vector<std::string> names;
  int reason = 0;
  do {
    names.clear();
    reason = detail::add_names_in(path, names);
  } while (reason == EINTR);
  expect(reason == 0 || reason == ENOENT, reason == ENOMEM ? exit_code::cannot_fit : exit_code::io_failure,
         shown(path), ": listing the directory failed: ", std::strerror(reason));
  std::ranges::sort(names);
  return names;
}

SUPEROFFLOAD_INLINE void rename_path(std::filesystem::path const& from, std::filesystem::path const& to) {
  bool const renamed =
      detail::succeeds(operation::rename, to, [&] { return ::rename(from.c_str(), to.c_str()); });
  detail::expect_done(renamed, to, concat("renaming ", shown(from), " to it"));
}

SUPEROFFLOAD_INLINE void expect_replaceable_file(std::filesystem::path const& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    return;  // writing reports the error, if there is one
  }
  auto const what = S_ISDIR(status.st_mode)   ? "Is a directory"
                    : S_ISLNK(status.st_mode) ? "is a link"
                                              : "is no regular file";
  expect(S_ISREG(status.st_mode), exit_code::bad_input, shown(path), ": ", what,
         ", expected the name of a regular file, or one that is free");
}

SUPEROFFLOAD_INLINE void replace_file(std::filesystem::path const& path, std::string_view content) {
  expect_replaceable_file(path);
  auto aside = path;
  aside += "." + random_suffix();
  try {
    write_new_file(aside, content);
    rename_path(aside, path);
  } catch (error const&) {
    ::unlink(aside.c_str());
    throw;
  }
  sync_directory(detail::parent_of(path));
}

SUPEROFFLOAD_INLINE std::uint64_t free_bytes(std::filesystem::path const& directory) {
  struct statvfs status{};
  int const result = ::statvfs(directory.c_str(), &status);
  detail::expect_done(result == 0, directory, "asking for its free space");
  return status.f_blocks == 0 ? std::numeric_limits<std::uint64_t>::max()  // unknown
                              : std::uint64_t{status.f_bavail} * status.f_frsize;
}

SUPEROFFLOAD_INLINE void remove_tree(std::filesystem::path const& path) {
  if (!detail::is_there(path)) {
    return;
  }
  std::error_code failure;
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path, failure))) {
    for (auto const& name : list_directory(path)) { remove_tree(path / name); }
    bool const removed = detail::succeeds(operation::remove, path, [&] { return ::rmdir(path.c_str()); });
    detail::expect_done(removed || errno == ENOENT, path, "removing the directory");
  } else {
    bool const removed = detail::succeeds(operation::remove, path, [&] { return ::unlink(path.c_str()); });
    detail::expect_done(removed || errno == ENOENT, path, "removing the file");
  }
}

SUPEROFFLOAD_INLINE void replace_directory(std::filesystem::path const& staged,
                                           std::filesystem::path const& destination) {
  auto const parent = detail::parent_of(destination);
  if (!detail::is_there(destination)) {
    rename_path(staged, destination);
    sync_directory(parent);
    return;
  }
  if (detail::exchange(staged, destination)) {
    try {
      sync_directory(parent);
    } catch (error const&) {
      detail::exchange(staged, destination);  // if it fails, the old directory stays
      throw;
    }
    remove_tree(staged);
    return;
  }
  detail::expect_done(errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP, destination,
                      "replacing the directory");
  auto const aside = replaced_name(destination);
  rename_path(destination, aside);
  try {
    rename_path(staged, destination);
    sync_directory(parent);
  } catch (error const&) {
    if (!detail::is_there(staged)) {
      detail::succeeds(operation::rename, staged,
                       [&] { return ::rename(destination.c_str(), staged.c_str()); });
    }
    detail::succeeds(operation::rename, destination,
                     [&] { return ::rename(aside.c_str(), destination.c_str()); });
    throw;
  }
  remove_tree(aside);
}

SUPEROFFLOAD_INLINE void restore_replaced(std::filesystem::path const& destination) {
  auto const aside = replaced_name(destination);
  if (!detail::is_there(aside)) {
    return;
  }
  if (detail::is_there(destination)) {
    remove_tree(aside);
  } else {
    rename_path(aside, destination);
    sync_directory(detail::parent_of(destination));
  }
}

SUPEROFFLOAD_INLINE std::filesystem::path replaced_name(std::filesystem::path const& destination) {
  return detail::parent_of(destination) / concat(".", destination.filename().native(), ".replaced");
}

SUPEROFFLOAD_INLINE std::string random_suffix() {
  static constexpr char digits[] = "0123456789abcdef";
  std::random_device random;
  std::string text;
  for (int i = 0; i < 16; ++i) { text += digits[random() & 15U]; }
  return text;
}

SUPEROFFLOAD_INLINE bool is_suffixed(std::string_view text, std::string_view prefix) {
  return text.starts_with(prefix) && text.size() == prefix.size() + 16 &&
         text.find_first_not_of("0123456789abcdef", prefix.size()) == text.npos;
}

SUPEROFFLOAD_INLINE staging_directory::staging_directory(std::filesystem::path path)
    : path_{std::move(path)} {
  bool const made = detail::succeeds(operation::make_directory, path_,
                                     [&] { return ::mkdir(path_.c_str(), new_directory_mode); });
  detail::expect_done(made, path_, "creating the directory");
}

SUPEROFFLOAD_INLINE staging_directory::~staging_directory() {
  try {
    remove_tree(path_);
  } catch (std::exception const&) {
    // The next save removes what is left.
  }
}

}  // namespace superoffload::io
