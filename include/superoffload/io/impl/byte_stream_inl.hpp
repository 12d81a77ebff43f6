// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/byte_stream.hpp>
#include <superoffload/io/file.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace superoffload::io {
namespace detail {

class file_stream final : public byte_stream {
public:
  explicit file_stream(file opened) : file_{std::move(opened)}, size_{file_.size()} {}

  std::size_t read(std::span<char> out) override {
    auto const part = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), size_ - at_)));
    file_.pread_exact(at_, std::as_writable_bytes(part));
    at_ += part.size();
    return part.size();
  }

private:
  file file_;
  std::uint64_t size_, at_ = 0;
};

}  // namespace detail

SUPEROFFLOAD_INLINE std::unique_ptr<byte_stream> open_stream(std::filesystem::path const& path) {
  return open_stream(file::open_read(path));
}

SUPEROFFLOAD_INLINE std::unique_ptr<byte_stream> open_stream(file opened) {
  return std::make_unique<detail::file_stream>(std::move(opened));
}

}  // namespace superoffload::io
