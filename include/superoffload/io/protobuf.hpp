// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
// The binary format of protobuf: a message is a sequence of fields, each a key and a value.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace superoffload::io::protobuf {

/// The lowest `bytes` bytes of a number, the lowest first.
inline std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) { out += static_cast<char>(value >> (8 * i) & 0xff); }
  return out;
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) { out += static_cast<char>(value | 0x80); }
  return out + static_cast<char>(value);
}

/// How a value is written.
enum class wire : unsigned { varint = 0, eight_bytes = 1, length = 2, four_bytes = 5 };
inline std::string key(unsigned field, wire how) { return varint(field << 3 | static_cast<unsigned>(how)); }

inline std::string integer_field(unsigned field, std::int64_t value) {
  return key(field, wire::varint) + varint(static_cast<std::uint64_t>(value));
}
inline std::string double_field(unsigned field, double value) {
  return key(field, wire::eight_bytes) + little_endian(std::bit_cast<std::uint64_t>(value), 8);
}
inline std::string float_field(unsigned field, float value) {
  return key(field, wire::four_bytes) + little_endian(std::bit_cast<std::uint32_t>(value), 4);
}
/// Text, or a message.
inline std::string bytes_field(unsigned field, std::string_view value) {
  return (key(field, wire::length) + varint(value.size())).append(value);
}

/// Reads the fields of a message from outside, one after the other.
class reader {
public:
  /// A field as it is written. Of a number with a fixed size, `bytes` are its 4 or 8, the lowest first.
  struct field {
    std::uint64_t number = 0;   ///< of the field in its message's definition
    std::uint64_t integer = 0;  ///< of a varint
    std::string_view bytes;     ///< of text or a message
  };
  /// `message` must live as long as the fields that next() returns.
  explicit reader(std::string_view message) : rest_{message} {}

  /// The next field; none at the end, and where the message is not well-formed.
  std::optional<field> next() {
    auto const head = take_varint();
    if (!head) {
      return std::nullopt;
    }
    field f{.number = *head >> 3, .integer = 0, .bytes = {}};
    auto const how = static_cast<wire>(*head & 7);
    if (how == wire::varint) {
      auto const value = take_varint();
      f.integer = value.value_or(0);
      return value ? std::optional{f} : std::nullopt;
    }
    auto const length = how == wire::length        ? take_varint()
                        : how == wire::eight_bytes ? std::optional<std::uint64_t>{8}
                        : how == wire::four_bytes  ? std::optional<std::uint64_t>{4}
                                                   : std::nullopt;
    if (!length || *length > rest_.size()) {
      return std::nullopt;
    }
    f.bytes = rest_.substr(0, *length);
    rest_.remove_prefix(*length);
    return f;
  }

private:
  std::optional<std::uint64_t> take_varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      auto const byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) {
        return value;
      }
    }
    return std::nullopt;
  }

  std::string_view rest_;
};

}  // namespace superoffload::io::protobuf
