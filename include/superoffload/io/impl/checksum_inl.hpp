// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/checksum.hpp>

#include <array>
#include <bit>
#include <cstring>

#ifdef __ARM_FEATURE_CRC32
#include <arm_acle.h>
#endif

namespace superoffload::io {
namespace detail {

using crc_tables = std::array<std::array<std::uint32_t, 256>, 8>;

/// tables[n][b]: the checksum of byte b followed by n zero bytes; eight lookups process eight bytes.
constexpr crc_tables make_crc_tables() {
  crc_tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) { crc = (crc >> 1) ^ ((crc & 1U) != 0 ? 0x82F63B78U : 0U); }
    tables[0][byte] = crc;
  }
  for (std::size_t n = 1; n < tables.size(); ++n) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      auto const before = tables[n - 1][byte];
      tables[n][byte] = (before >> 8) ^ tables[0][before & 255U];
    }
  }
  return tables;
}

inline constexpr crc_tables tables = make_crc_tables();

SUPEROFFLOAD_INLINE std::uint64_t load_word(std::byte const* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

#if defined(__x86_64__)
SUPEROFFLOAD_INLINE __attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(
    std::span<std::byte const> data, std::uint32_t previous) {
  std::uint64_t crc = ~previous;
  for (; data.size() >= 8; data = data.subspan(8)) {
    crc = __builtin_ia32_crc32di(crc, load_word(data.data()));
  }
  auto rest = static_cast<std::uint32_t>(crc);
  for (auto const byte : data) { rest = __builtin_ia32_crc32qi(rest, static_cast<unsigned char>(byte)); }
  return ~rest;
}
#endif

inline constexpr std::array<std::uint32_t, 64> sha256_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

using sha256_state = std::array<std::uint32_t, 8>;

SUPEROFFLOAD_INLINE void add_block(sha256_state& state, std::byte const* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = std::uint32_t(block[4 * i]) << 24 | std::uint32_t(block[4 * i + 1]) << 16 |
           std::uint32_t(block[4 * i + 2]) << 8 | std::uint32_t(block[4 * i + 3]);
  }
  for (std::size_t i = 16; i < 64; ++i) {
    auto const s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    auto const s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    auto const s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    auto const t1 = h + s1 + ((e & f) ^ (~e & g)) + sha256_constants[i] + w[i];
    auto const s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    auto const t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  sha256_state const added{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state.size(); ++i) { state[i] += added[i]; }
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::uint32_t detail::crc32c_portable(std::span<std::byte const> data,
                                                          std::uint32_t previous) {
  std::uint32_t crc = ~previous;
  for (; data.size() >= 8; data = data.subspan(8)) {
    auto const word = detail::load_word(data.data()) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) { crc ^= detail::tables[7 - i][(word >> (8 * i)) & 255U]; }
  }
  for (auto const byte : data) {
    crc = (crc >> 8) ^ detail::tables[0][(crc ^ static_cast<std::uint32_t>(byte)) & 255U];
  }
  return ~crc;
}

SUPEROFFLOAD_INLINE std::uint32_t crc32c(std::span<std::byte const> data, std::uint32_t previous) {
#if defined(__x86_64__)
  static bool const has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) {
    return detail::crc32c_sse42(data, previous);
  }
#elif defined(__ARM_FEATURE_CRC32)
  std::uint32_t crc = ~previous;
  for (; data.size() >= 8; data = data.subspan(8)) { crc = __crc32cd(crc, detail::load_word(data.data())); }
  for (auto const byte : data) { crc = __crc32cb(crc, static_cast<std::uint8_t>(byte)); }
  return ~crc;
#endif
  return detail::crc32c_portable(data, previous);
}

SUPEROFFLOAD_INLINE std::string sha256_hex(std::span<std::byte const> data) {
  detail::sha256_state state{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  auto const bits = std::uint64_t{data.size()} * 8;
  for (; data.size() >= 64; data = data.subspan(64)) { detail::add_block(state, data.data()); }
  // The rest of the data, one set bit, zeros, and the length in the last eight bytes: one block or two.
  std::array<std::byte, 128> last{};
  if (!data.empty()) {
    std::memcpy(last.data(), data.data(), data.size());
  }
  last[data.size()] = std::byte{0x80};
  std::size_t const end = data.size() < 56 ? 64 : 128;
  for (std::size_t i = 0; i < 8; ++i) { last[end - 1 - i] = static_cast<std::byte>(bits >> (8 * i)); }
  for (std::size_t at = 0; at < end; at += 64) { detail::add_block(state, last.data() + at); }
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (auto const word : state) {
    for (int shift = 28; shift >= 0; shift -= 4) { text += digits[(word >> shift) & 15U]; }
  }
  return text;
}

}  // namespace superoffload::io
