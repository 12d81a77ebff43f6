// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::test {

// What io_shim.cpp writes and the tests read: the calls of a program on files, in the order in which they
// were made, also by several processes.

enum class io_call : std::uint8_t {
  open,  ///< of a file or a directory; `size`: 1 if it was made, 2 if it was emptied
  read,
  write,  ///< with its data
  preallocate,
  truncate,
  sync,
  close,
  make_directory,
  rename,
  exchange,
  remove,
  list,  ///< opendir
  say    ///< a write to standard error
};

/// A call. `file`: of calls on a descriptor, the number of its `open`.
struct io_event {
  io_call what{};
  std::uint64_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::string path = {};
  std::string to = {};
  std::string data = {};
};

namespace detail {

struct io_header {
  std::uint8_t what;
  std::uint64_t file, offset, size;
  std::uint32_t path, to, data;
};

}  // namespace detail

inline std::string encoded(io_event const& event) {
  detail::io_header header{};
  header.what = static_cast<std::uint8_t>(event.what);
  header.file = event.file;
  header.offset = event.offset;
  header.size = event.size;
  header.path = static_cast<std::uint32_t>(event.path.size());
  header.to = static_cast<std::uint32_t>(event.to.size());
  header.data = static_cast<std::uint32_t>(event.data.size());
  std::string text(sizeof header, '\0');
  std::memcpy(text.data(), &header, sizeof header);
  return text + event.path + event.to + event.data;
}

inline std::vector<io_event> decoded(std::string_view text) {
  std::vector<io_event> events;
  while (text.size() >= sizeof(detail::io_header)) {
    detail::io_header header{};
    std::memcpy(&header, text.data(), sizeof header);
    text.remove_prefix(sizeof header);
    auto const take = [&](std::size_t bytes) {
      std::string part{text.substr(0, bytes)};
      text.remove_prefix(part.size());
      return part;
    };
    io_event event{static_cast<io_call>(header.what), header.file, header.offset, header.size, {}, {}, {}};
    event.path = take(header.path);
    event.to = take(header.to);
    event.data = take(header.data);
    events.push_back(std::move(event));
  }
  return events;
}

inline char const* name_of(io_call call) {
  constexpr char const* names[] = {"open",  "read",           "write",  "preallocate", "truncate", "sync",
                                   "close", "make_directory", "rename", "exchange",    "remove",   "list",
                                   "say"};
  return names[static_cast<std::size_t>(call)];
}

}  // namespace superoffload::test
