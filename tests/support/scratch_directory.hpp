// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include "support/contents_of.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace superoffload::test {

/// A directory that is removed at the end of the test.
class scratch_directory {
public:
  scratch_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "superoffload-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  scratch_directory(scratch_directory const&) = delete;
  scratch_directory& operator=(scratch_directory const&) = delete;
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path const& path() const { return path_; }

private:
  std::filesystem::path path_;
};

}  // namespace superoffload::test
