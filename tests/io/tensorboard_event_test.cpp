// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/tensorboard_event.hpp>

#include <doctest/doctest.h>

#include <string>
#include <string_view>

namespace {

using namespace superoffload;

std::string hex(std::string_view bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (char const c : bytes) {
    out += digits[static_cast<unsigned char>(c) >> 4];
    out += digits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

// The expected bytes are those that the package tensorboard 2.21 writes.

TEST_CASE("a record has its length, its payload and the masked checksum of each") {
  CHECK(hex(io::event_record("")) == "000000000000000029039807d8ea82a2");
  CHECK(hex(io::event_record("123456789")) == "090000000000000037f97139313233343536373839e5b08ac7");
}

TEST_CASE("events have the bytes of TensorBoard's own writer") {
  CHECK(hex(io::tensorboard_event{1700000000.5, 0}.version().record()) ==
        "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
  CHECK(hex(io::tensorboard_event{1700000000.5, 300}.scalar("loss", 0.1).scalar("lr", -2.5e-5).record()) ==
        "2600000000000000734fe3000900002040fc54d94110ac022a180a0b0a046c6f737315cdcccc3d0a090a026c721517b7d1b7"
        "502de00f");
  CHECK(hex(io::tensorboard_event{1.0, 7}.restart().record()) ==
        "0f000000000000006d532b0909000000000000f03f10073a020801c1c3ddcf");
  std::string table, bytes;
  for (int i = 0; i < 30; ++i) {
    table += "| a |\n";
    bytes += "7c2061207c0a";
  }
  CHECK(hex(io::tensorboard_event{1.0, 7}.text("plan", table).record()) ==
        "e300000000000000b2d3dbbc09000000000000f03f10072ad5010ad2010a04706c616e42bf01080712041202080142b401" +
            bytes + "4a080a060a04746578741397f536");
}

}  // namespace
