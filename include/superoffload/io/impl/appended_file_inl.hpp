// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/creation_mode.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/core/system_call.hpp>
#include <superoffload/io/appended_file.hpp>
#include <superoffload/io/directory.hpp>

#include <cstddef>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace superoffload::io {

SUPEROFFLOAD_INLINE appended_file::appended_file(std::filesystem::path file) : file_{std::move(file)} {
  expect_replaceable_file(file_);
  if (file_.has_parent_path()) {
    try {
      make_directories(file_.parent_path());
    } catch (error const&) {
      // The open below says what is wrong.
    }
  }
  descriptor_ = uninterrupted([&] {
    return ::open(file_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
                  new_file_mode);
  });
  expect_call(descriptor_ >= 0, exit_code::io_failure, file_.string(), ": cannot be written");
}

SUPEROFFLOAD_INLINE appended_file::~appended_file() { ::close(descriptor_); }

SUPEROFFLOAD_INLINE void appended_file::append(std::string_view content) {
  while (!content.empty()) {
    auto const written = uninterrupted([&] { return ::write(descriptor_, content.data(), content.size()); });
    expect_call(written > 0, exit_code::io_failure, file_.string(), ": writing failed");
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace superoffload::io
