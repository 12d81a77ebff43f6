// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace superoffload::io {

/// A regular file that grows at its end. What append() has taken is in the file, even if the process is
/// killed.
class appended_file {
public:
  /// Makes the file and its directory if they do not exist.
  /// \throws error(bad_input) if it is anything but a regular file; error(io_failure). Both name the file.
  explicit appended_file(std::filesystem::path file);
  appended_file(appended_file const&) = delete;
  appended_file& operator=(appended_file const&) = delete;
  ~appended_file();

  /// \throws error(io_failure).
  void append(std::string_view content);

private:
  std::filesystem::path file_;
  int descriptor_ = -1;
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/appended_file_inl.hpp>
#endif
