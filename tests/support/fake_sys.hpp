// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/scratch_directory.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace superoffload::test {

/// A folder that looks like mounted sysfs.
class fake_sys {
public:
  void write(std::string const& path, std::string const& text) const {
    auto const file = root_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream{file} << text << "\n";
  }
  [[nodiscard]] std::string root() const { return root_.path().string(); }

private:
  scratch_directory root_;
};

}  // namespace superoffload::test
