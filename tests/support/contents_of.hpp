// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

namespace superoffload::test {

/// The bytes of a file; none if it cannot be read.
inline std::string contents_of(std::filesystem::path const& file) {
  std::ostringstream text;
  text << std::ifstream{file, std::ios::binary}.rdbuf();
  return std::move(text).str();
}

}  // namespace superoffload::test
