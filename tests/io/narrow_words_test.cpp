// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/dtype.hpp>
#include <superoffload/io/narrow_words.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

namespace {

using namespace superoffload;

/// Random words without the bits that are not in `mask`.
std::vector<std::byte> words(std::size_t count, std::uint32_t mask) {
  std::mt19937 random{mask};
  std::vector<std::byte> bytes(4 * count);
  for (std::size_t i = 0; i < count; ++i) {
    auto const word = static_cast<std::uint32_t>(random()) & mask;
    std::memcpy(bytes.data() + 4 * i, &word, sizeof word);
  }
  return bytes;
}

TEST_CASE("words without their low bytes that are zero are restored, for any number of them") {
  struct {
    std::uint32_t mask;
    int kept;
  } const cases[] = {{0xFFFFFFFF, 4}, {0xFFFFFF00, 3}, {0xFFFF0000, 2}, {0xFF000000, 2}, {0, 0}};
  for (auto const& one : cases) {
    int const kept = one.kept;
    for (std::size_t const count : {1, 2, 31, 1024, 1025, 10'000}) {
      CAPTURE(kept);
      CAPTURE(count);
      auto const whole = words(count, one.mask);
      int const found = io::kept_bytes_of_words(whole);
      CHECK(found <= kept);
      CHECK((count < 31 || found == kept));
      std::vector<std::byte> narrow(io::narrow_bytes(whole.size(), found)),
          restored(whole.size(), std::byte{1});
      CHECK(narrow.size() == count * static_cast<std::size_t>(found));
      io::narrow_words(whole, found, narrow);
      io::widen_words(narrow, found, restored);
      CHECK(restored == whole);
    }
  }
}

TEST_CASE("one word of full precision among others is seen wherever it is") {
  for (std::size_t const at : {0, 1, 1023, 1024, 4095, 4999}) {
    CAPTURE(at);
    auto bytes = words(5000, 0xFFFF0000);
    bytes[4 * at + 1] = std::byte{1};
    CHECK(io::kept_bytes_of_words(bytes) == 3);
    bytes[4 * at] = std::byte{1};
    CHECK(io::kept_bytes_of_words(bytes) == 4);
  }
}

TEST_CASE("what is not a number of whole words is kept as it is") {
  for (std::size_t const bytes : {1, 3, 5, 4097}) {
    CHECK(io::kept_bytes_of_words(std::vector<std::byte>(bytes)) == 4);
    CHECK(io::narrow_bytes(bytes, 4) == bytes);
  }
  CHECK(io::kept_bytes_of_words({}) == 0);
}

TEST_CASE("a bfloat16 as float32 takes two bytes") {
  std::vector<float> floats;
  for (float const x : {1.0F, -3.14159F, 1e-30F, 2.5e20F}) {
    floats.push_back(static_cast<float>(bfloat16{x}));
  }
  CHECK(io::kept_bytes_of_words(std::as_bytes(std::span{floats})) == 2);
}

}  // namespace
