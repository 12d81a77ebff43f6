// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/contents_of.hpp"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <string_view>

namespace superoffload::io::testing {

/// An empty directory. The destructor removes it with its content.
class scratch_directory {
public:
  scratch_directory() {
    // In memory where possible: the tests sync thousands of times.
    for (auto const& parent : {std::filesystem::path{"/dev/shm"}, std::filesystem::temp_directory_path()}) {
      std::string name = parent / "superoffload-XXXXXX";
      if (::mkdtemp(name.data()) != nullptr) {
        path_ = name;
        return;
      }
    }
    throw std::runtime_error{"no temporary directory"};
  }
  scratch_directory(scratch_directory const&) = delete;
  scratch_directory& operator=(scratch_directory const&) = delete;
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }
  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const { return path_ / name; }

private:
  std::filesystem::path path_;
};

inline void write_text(std::filesystem::path const& path, std::string_view content) {
  std::ofstream{path, std::ios::binary | std::ios::trunc} << content;
}

using test::contents_of;

}  // namespace superoffload::io::testing
