// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/bytes_text.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using superoffload::bytes_text;

namespace {

TEST_CASE("bytes are told in the largest unit of which there is one") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.00 KiB");
  CHECK(bytes_text(std::size_t{3} << 19) == "1.50 MiB");
  CHECK(bytes_text(std::size_t{3} << 29, 1) == "1.5 GiB");
  CHECK(bytes_text(SIZE_MAX, 0) == "16777216 TiB");
}

}  // namespace
