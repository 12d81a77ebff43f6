// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/appended_file.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace superoffload::io {

/// The file of an offline run of Weights & Biases, which `wandb sync` uploads: records, each a message Record
/// of wandb's protobuf, in blocks of 32 KiB as LevelDB's logs have them, with a CRC-32 each.
class wandb_log {
public:
  /// Continues the file as long as its records are whole and `keep` holds for them, and cuts off the rest;
  /// begins a file that does not exist. \throws error(bad_input) if the file is no such log;
  /// error(io_failure).
  wandb_log(std::filesystem::path const& file, std::function<bool(std::string_view record)> const& keep);

  /// Records that the file has.
  [[nodiscard]] std::int64_t records() const noexcept { return records_; }

  /// Appends a record: the fields of a Record but for its number.
  void append(std::string_view fields);

private:
  std::uint64_t size_ = 0;
  std::int64_t records_ = 0;
  std::optional<appended_file> file_;
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/wandb_log_inl.hpp>
#endif
