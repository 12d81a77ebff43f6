// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace superoffload::io {

/// A record as event files frame it: the payload's length, the masked CRC-32C of the length, the payload, its
/// masked CRC-32C.
std::string event_record(std::string_view payload);

/// An event of TensorBoard's event files: a message Event of tensorflow/core/util/event.proto in protobuf's
/// binary format, with the fields that its reader needs.
class tensorboard_event {
public:
  /// `wall_time`: s since 1970.
  tensorboard_event(double wall_time, std::int64_t step);

  /// The first event of every file.
  tensorboard_event& version();
  /// Readers drop what earlier files have of this step and of later ones: a resumed run repeats these steps.
  tensorboard_event& restart();
  /// A value, rounded to float32, as the format has it.
  tensorboard_event& scalar(std::string_view tag, double value);
  /// Markdown for the page of texts.
  tensorboard_event& text(std::string_view tag, std::string_view markdown);

  /// The record for the file.
  [[nodiscard]] std::string record() const;

private:
  std::string head_, values_;
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/tensorboard_event_inl.hpp>
#endif
