// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <string_view>

namespace superoffload::data::testing {

/// A file of its own directory, gone at the end.
class scratch_file {
public:
  explicit scratch_file(std::string_view content, std::string_view file = "rows.data") {
    std::string name = std::filesystem::temp_directory_path() / "superoffload-XXXXXX";
    directory_ =
        ::mkdtemp(name.data()) == nullptr ? throw std::runtime_error{"no temporary directory"} : name;
    path_ = directory_ / file;
    std::ofstream{path_, std::ios::binary} << content;
  }
  scratch_file(scratch_file const&) = delete;
  scratch_file& operator=(scratch_file const&) = delete;
  ~scratch_file() {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

private:
  std::filesystem::path directory_;
  std::filesystem::path path_;
};

}  // namespace superoffload::data::testing
