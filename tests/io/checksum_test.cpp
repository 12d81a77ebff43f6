// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/checksum.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

using namespace superoffload::io;

namespace {

std::span<std::byte const> bytes_of(std::string_view text) { return std::as_bytes(std::span{text}); }

}  // namespace

TEST_CASE("CRC-32C of the published examples") {
  CHECK(crc32c(bytes_of("123456789")) == 0xE3069283U);
  CHECK(crc32c(bytes_of(std::string(32, '\0'))) == 0x8A9136AAU);
  CHECK(crc32c(bytes_of(std::string(32, '\xff'))) == 0x62A8AB43U);
  CHECK(crc32c({}) == 0U);
}

TEST_CASE("CRC-32C is the same with and without the processor's instruction, in one piece or two") {
  std::string text;
  for (int i = 0; i < 1000; ++i) { text += static_cast<char>(i * 37 + i / 7); }
  for (std::size_t begin = 0; begin < 9; ++begin) {
    for (std::size_t size = 0; size < 70; ++size) {
      auto const data = bytes_of(text).subspan(begin, size);
      CHECK(crc32c(data) == detail::crc32c_portable(data, 0));
      CHECK(crc32c(data.subspan(size / 3), crc32c(data.first(size / 3))) == crc32c(data));
      CHECK(detail::crc32c_portable(data.subspan(size / 3), crc32c(data.first(size / 3))) == crc32c(data));
    }
  }
}

TEST_CASE("SHA-256 of the published examples and at the edges of a block") {
  CHECK(sha256_hex({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex(bytes_of("abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex(bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")) ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(bytes_of(std::string(55, 'a'))) ==
        "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  CHECK(sha256_hex(bytes_of(std::string(56, 'a'))) ==
        "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  CHECK(sha256_hex(bytes_of(std::string(63, 'a'))) ==
        "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  CHECK(sha256_hex(bytes_of(std::string(64, 'a'))) ==
        "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  CHECK(sha256_hex(bytes_of(std::string(1'000'000, 'a'))) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
