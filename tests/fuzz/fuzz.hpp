// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdlib.h>
#include <string>
#include <string_view>

/// The entry point for libFuzzer and replay.cpp. \returns 0.
extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace superoffload::fuzz {

inline std::string_view text_of(std::uint8_t const* data, std::size_t size) {
  return {reinterpret_cast<char const*>(data), size};
}

/// Aborts on a broken promise; the fuzzer reports a crash.
inline void require(bool condition, char const* what) {
  if (!condition) {
    std::fprintf(stderr, "broken promise: %s\n", what);
    std::abort();
  }
}

/// Runs `action`. It may only fail with an error of one line that blames the input.
template <class Action>
void expect_refusal_at_most(Action action) {
  try {
    action();
  } catch (error const& refusal) {
    require(refusal.code() == exit_code::bad_input, "an input is refused with exit code 2");
    require(std::string_view{refusal.what()}.find_first_of("\n\x1b") == std::string_view::npos,
            "a message is one plain line");
    require(std::string_view{refusal.what()}.size() < 4096, "a message is short");
  }
}

/// A directory of this process, removed at its end.
class scratch_directory {
public:
  scratch_directory() {
    std::error_code failure;
    auto const parent = std::filesystem::is_directory("/dev/shm", failure)
                            ? std::filesystem::path{"/dev/shm"}
                            : std::filesystem::temp_directory_path();
    std::string name = parent / "superoffload-fuzz-XXXXXX";
    require(::mkdtemp(name.data()) != nullptr, "there is a temporary directory");
    path_ = name;
  }
  scratch_directory(scratch_directory const&) = delete;
  scratch_directory& operator=(scratch_directory const&) = delete;
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::filesystem::path const& path() const noexcept { return path_; }

  /// Writes a file into this directory. \returns its path.
  std::filesystem::path write(std::string_view name, std::string_view content) const {
    std::ofstream{path_ / name, std::ios::binary | std::ios::trunc} << content;
    return path_ / name;
  }

private:
  std::filesystem::path path_;
};

}  // namespace superoffload::fuzz
