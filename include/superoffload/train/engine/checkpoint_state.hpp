// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/io/train_checkpoint.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::train {

namespace detail {
/// How a device computes products, so that it still does after a resume.
inline constexpr std::string_view tuning_field = "tuning";
inline constexpr std::uint64_t most_tuning_bytes = std::uint64_t{64} << 20;
}  // namespace detail

/// What a checkpoint has of an engine_core, or of one rank's, and with `tuning` of its device: read from it
/// while the result is.
template <class Core, device_policy D>
std::vector<io::blob> blobs_of(Core& engine, D& device, bool tuning) {
  std::vector<io::blob> blobs;
  for (auto const& field : engine.state_fields()) {
    auto const kept = engine.kept_here(field);
    blobs.push_back(
        {field.name, kept.bytes, [&engine, field, kept](std::uint64_t offset, std::span<std::byte> to) {
           engine.read_kept_state(field, kept.offset + offset, to);
         }});
  }
  if constexpr (tuned_device<D>) {
    if (tuning) {
      std::string text = device.tuning().save();
      auto const bytes = text.size();
      blobs.push_back({std::string{detail::tuning_field}, bytes,
                       [text = std::move(text)](std::uint64_t offset, std::span<std::byte> to) {
                         std::memcpy(to.data(), text.data() + offset, to.size());
                       }});
    }
  }
  return blobs;
}

/// Writes what a checkpoint has of it into an engine and its device; older checkpoints, and other devices',
/// do not say how products were computed. \throws error(bad_input) for what does not belong to such an
/// engine.
template <class Core, device_policy D>
void take_state(Core& engine, D& device, io::checkpoint_reader const& checkpoint) {
  auto const origin = checkpoint.directory().string();
  std::vector<std::byte> chunk(std::size_t{4} << 20);
  for (auto const& field : engine.state_fields()) {
    auto const bytes = checkpoint.whole_bytes(field.name);
    expect(bytes == field.bytes, exit_code::bad_input, origin, ": '", field.name, "' has ", bytes,
           " bytes, expected ", field.bytes);
    auto const kept = engine.kept_here(field);
    engine.write_state(field, 0, {});  // also where nothing of it is
    for (std::size_t done = 0; done < kept.bytes; done += chunk.size()) {
      std::span<std::byte> const part{chunk.data(), std::min(chunk.size(), kept.bytes - done)};
      checkpoint.read_whole(field.name, kept.offset + done, part);
      engine.write_state(field, kept.offset + done, part);
    }
  }
  if constexpr (tuned_device<D>) {
    std::string const field{detail::tuning_field};
    if (checkpoint.has(field)) {
      auto const bytes = checkpoint.blob_bytes(field);
      auto const of_field = concat(origin, ": '", field, "'");
      expect(bytes <= detail::most_tuning_bytes, exit_code::bad_input, of_field, " has ", bytes,
             " bytes, expected at most ", detail::most_tuning_bytes);
      std::string text(bytes, ' ');
      checkpoint.read(field, 0, std::as_writable_bytes(std::span{text}));
      device.tuning().load(text, of_field);
    }
  }
}

}  // namespace superoffload::train
