// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/protobuf.hpp>
#include <superoffload/io/wandb_log.hpp>

#include <algorithm>
#include <array>
#include <span>
#include <system_error>

namespace superoffload::io {
namespace detail {

inline constexpr std::string_view wandb_magic{":W&B\xe1\xbe\0", 7};
inline constexpr std::size_t wandb_block = 32768, wandb_head = 7;  // checksum, length, kind
inline constexpr std::size_t most_wandb_record = std::size_t{16} << 20;
/// Of a piece: a record may be cut at the end of a block.
enum class piece : unsigned char { whole = 1, first = 2, middle = 3, last = 4 };

/// CRC-32 of IEEE 802.3 of the kind and the data.
SUPEROFFLOAD_INLINE std::uint32_t wandb_checksum(piece kind, std::string_view data) {
  static constexpr auto table = [] {
    std::array<std::uint32_t, 256> t{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      t[byte] = byte;
      for (int bit = 0; bit < 8; ++bit) {
        t[byte] = (t[byte] >> 1) ^ ((t[byte] & 1U) != 0 ? 0xEDB88320U : 0U);
      }
    }
    return t;
  }();
  std::uint32_t crc = 0xffffffffU;
  auto const add = [&](unsigned char byte) { crc = (crc >> 8) ^ table[(crc ^ byte) & 0xffU]; };
  add(static_cast<unsigned char>(kind));
  for (char const c : data) { add(static_cast<unsigned char>(c)); }
  return ~crc;
}

/// The record at `size` of the log. `size` becomes the place behind it. None: the log ends there, or what
/// follows is not whole.
SUPEROFFLOAD_INLINE std::optional<std::string> read_wandb_record(file const& log, std::uint64_t& size) {
  auto const bytes = log.size();
  std::string record;
  bool begun = false;
  for (auto at = size;;) {
    if (auto const left = wandb_block - at % wandb_block; left < wandb_head) {
      at += left;
    }
    std::array<char, wandb_head> head{};
    if (at > bytes || bytes - at < wandb_head) {
      return std::nullopt;
    }
    log.pread_exact(at, std::as_writable_bytes(std::span{head}));
    auto const byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(head[i])}; };
    auto const checksum = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
    std::string data(byte(4) | byte(5) << 8, '\0');
    auto const kind = static_cast<piece>(byte(6));
    bool const begins = kind == piece::whole || kind == piece::first;
    if (begins == begun || record.size() + data.size() > most_wandb_record ||
        bytes - at - wandb_head < data.size()) {
      return std::nullopt;
    }
    log.pread_exact(at + wandb_head, std::as_writable_bytes(std::span{data}));
    if (wandb_checksum(kind, data) != checksum) {
      return std::nullopt;
    }
    begun = true;
    record += data;
    at += wandb_head + data.size();
    if (kind == piece::whole || kind == piece::last) {
      size = at;
      return record;
    }
  }
}

}  // namespace detail

SUPEROFFLOAD_INLINE wandb_log::wandb_log(std::filesystem::path const& file,
                                         std::function<bool(std::string_view record)> const& keep) {
  expect_replaceable_file(file);
  std::error_code failure;
  auto const bytes = std::filesystem::file_size(file, failure);
  if (!failure && bytes >= detail::wandb_magic.size()) {
    auto const earlier = io::file::open_read(file);
    std::string magic(detail::wandb_magic.size(), '\0');
    earlier.pread_exact(0, std::as_writable_bytes(std::span{magic}));
    expect(magic == detail::wandb_magic, exit_code::bad_input, shown(file),
           ": is no log of Weights & Biases, expected one or no file; remove it");
    auto next = size_ = magic.size();
    for (auto record = detail::read_wandb_record(earlier, next); record && keep(*record);
         record = detail::read_wandb_record(earlier, next)) {
      size_ = next;
      ++records_;
    }
  }
  if (!failure && bytes != size_) {
    std::filesystem::resize_file(file, size_, failure);
    expect(!failure, exit_code::io_failure, shown(file), ": cannot be cut: ", failure.message());
  }
  file_.emplace(file);
  if (size_ == 0) {
    file_->append(detail::wandb_magic);
    size_ = detail::wandb_magic.size();
  }
}

SUPEROFFLOAD_INLINE void wandb_log::append(std::string_view fields) {
  auto const record = protobuf::integer_field(1, ++records_).append(fields);
  std::string out;
  std::string_view rest = record;
  for (bool first = true; first || !rest.empty(); first = false) {
    auto left = detail::wandb_block - (size_ + out.size()) % detail::wandb_block;
    if (left < detail::wandb_head) {
      out.append(left, '\0');
      left = detail::wandb_block;
    }
    auto const data = rest.substr(0, left - detail::wandb_head);
    rest.remove_prefix(data.size());
    auto const kind = first ? (rest.empty() ? detail::piece::whole : detail::piece::first)
                            : (rest.empty() ? detail::piece::last : detail::piece::middle);
    out += protobuf::little_endian(detail::wandb_checksum(kind, data), 4) +
           protobuf::little_endian(data.size(), 2) + static_cast<char>(kind);
    out += data;
  }
  file_->append(out);  // in one piece, so that a kill cuts no record
  size_ += out.size();
}

}  // namespace superoffload::io
