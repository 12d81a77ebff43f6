// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/checksum.hpp>
#include <superoffload/io/protobuf.hpp>
#include <superoffload/io/tensorboard_event.hpp>

#include <bit>
#include <cstddef>
#include <span>

namespace superoffload::io {
namespace detail {

/// A checksum of data that has checksums in it would be weak: the format rotates and shifts it.
SUPEROFFLOAD_INLINE std::string masked_checksum(std::string_view data) {
  auto const crc = crc32c(std::as_bytes(std::span{data}));
  return protobuf::little_endian(std::rotr(crc, 15) + 0xa282ead8U, 4);
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string event_record(std::string_view payload) {
  auto const length = protobuf::little_endian(payload.size(), 8);
  auto record = length + detail::masked_checksum(length);
  return record.append(payload) + detail::masked_checksum(payload);
}

SUPEROFFLOAD_INLINE tensorboard_event::tensorboard_event(double wall_time, std::int64_t step)
    : head_{protobuf::double_field(1, wall_time)} {
  if (step != 0) {  // protobuf leaves zeros out
    head_ += protobuf::integer_field(2, step);
  }
}

SUPEROFFLOAD_INLINE tensorboard_event& tensorboard_event::version() {
  head_ += protobuf::bytes_field(3, "brain.Event:2");
  return *this;
}

SUPEROFFLOAD_INLINE tensorboard_event& tensorboard_event::restart() {
  constexpr int start = 1;  // SessionLog.START
  head_ += protobuf::bytes_field(7, protobuf::integer_field(1, start));
  return *this;
}

SUPEROFFLOAD_INLINE tensorboard_event& tensorboard_event::scalar(std::string_view tag, double value) {
  values_ += protobuf::bytes_field(
      1, protobuf::bytes_field(1, tag) + protobuf::float_field(2, static_cast<float>(value)));
  return *this;
}

SUPEROFFLOAD_INLINE tensorboard_event& tensorboard_event::text(std::string_view tag,
                                                               std::string_view markdown) {
  constexpr int string_type = 7;                                               // DT_STRING
  auto const shape = protobuf::bytes_field(2, protobuf::integer_field(1, 1));  // one dimension of 1
  auto const tensor = protobuf::integer_field(1, string_type) + protobuf::bytes_field(2, shape) +
                      protobuf::bytes_field(8, markdown);
  auto const metadata =
      protobuf::bytes_field(1, protobuf::bytes_field(1, "text"));  // the plugin that shows it
  values_ += protobuf::bytes_field(1, protobuf::bytes_field(1, tag) + protobuf::bytes_field(8, tensor) +
                                          protobuf::bytes_field(9, metadata));
  return *this;
}

SUPEROFFLOAD_INLINE std::string tensorboard_event::record() const {
  return event_record(values_.empty() ? head_ : head_ + protobuf::bytes_field(5, values_));
}

}  // namespace superoffload::io
