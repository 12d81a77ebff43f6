// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/first_bytes.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>

#include <cstddef>
#include <fcntl.h>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

namespace superoffload {

SUPEROFFLOAD_INLINE std::optional<std::string> first_bytes_of(std::string const& path, std::size_t most) {
  int const file =
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); });
  if (file < 0) {
    return std::nullopt;
  }
  std::string text(most, '\0');
  std::size_t size = 0;
  ssize_t got = 1;
  while (got > 0 && size < most) {
    got = uninterrupted([&] { return ::read(file, text.data() + size, most - size); });
    size += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  ::close(file);
  text.resize(size);
  return got >= 0 ? std::optional{std::move(text)} : std::nullopt;
}

}  // namespace superoffload
