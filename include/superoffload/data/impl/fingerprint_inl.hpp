// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/data/fingerprint.hpp>
#include <superoffload/io/byte_stream.hpp>
#include <superoffload/io/file.hpp>

#include <system_error>
#include <vector>

namespace superoffload::data {

SUPEROFFLOAD_INLINE fingerprint fingerprint_of(std::filesystem::path const& file) {
  std::error_code status;
  bool const regular = std::filesystem::is_regular_file(file, status);
  expect(regular, exit_code::bad_input, io::shown(file), ": cannot be opened; expected a regular file");
  auto const stream = io::open_stream(file);
  fingerprint print{0, 0xCBF29CE484222325U};
  std::vector<char> chunk(std::size_t{1} << 16);
  while (auto const got = stream->read(chunk)) {
    for (std::size_t i = 0; i < got; ++i) {
      print.fnv1a = (print.fnv1a ^ static_cast<unsigned char>(chunk[i])) * 0x100000001B3U;
    }
    print.bytes += got;
  }
  return print;
}

SUPEROFFLOAD_INLINE fingerprint fingerprint_of(std::span<std::filesystem::path const> files) {
  expect(!files.empty(), exit_code::internal, "fingerprint of no file");
  auto all = fingerprint_of(files.front());
  for (auto const& file : files.subspan(1)) {
    auto const next = fingerprint_of(file);
    for (auto const number : {next.bytes, next.fnv1a}) {
      for (int shift = 0; shift < 64; shift += 8) {
        all.fnv1a = (all.fnv1a ^ ((number >> shift) & 0xFF)) * 0x100000001B3U;
      }
    }
    all.bytes += next.bytes;
  }
  return all;
}

}  // namespace superoffload::data
