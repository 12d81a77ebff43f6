// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/device.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/state_format.hpp>
#include <superoffload/io/narrow_words.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/train/engine/state_io.hpp>

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
/// The device's tuning of GEMMs: a resumed run must compute them in the same way.
inline constexpr std::string_view tuning_field = "tuning";
inline constexpr std::uint64_t most_tuning_bytes = std::uint64_t{64} << 20;

/// `rank`, if its part of the checkpoint has the field and is here, or else the first rank for which that
/// holds.
std::optional<int> rank_with(std::string_view field, io::checkpoint_reader const& checkpoint, int rank);

}  // namespace detail

/// The bytes that a checkpoint takes at most for a field of a core whose state is in `format`.
template <class Core>
std::uint64_t saved_bytes(state_field const& field, state_format format) {
  if (!field.part || format == state_format::float32) {
    return field.bytes;
  }
  if (*field.part != offload::state_part::master) {
    return io::narrow_bytes(field.bytes, 2);  // moments of all other formats are bfloat16 as well
  }
  bool const in_24_bits = format == state_format::int8 && sizeof(typename Core::element_type) == 2;
  return io::narrow_bytes(field.bytes, in_24_bits ? 3 : 4);
}

/// The blobs of a checkpoint from an engine_core and its device, or from one rank's. The result reads from
/// the engine, which must outlive it.
template <class Core, device_policy D>
std::vector<io::blob> blobs_of(Core& engine, D& device) {
  std::vector<io::blob> blobs;
  for (auto const& field : engine.state_fields()) {
    auto const kept = engine.kept_here(field);
    blobs.push_back(
        {field.name, kept.bytes, [&engine, field, kept](std::uint64_t offset, std::span<std::byte> to) {
           engine.read_kept_state(field, kept.offset + offset, to);
         }});
  }
  if constexpr (tuned_device<D>) {
    std::string text = device.tuning().save();
    auto const bytes = text.size();
    blobs.push_back({std::string{detail::tuning_field}, bytes,
                     [text = std::move(text)](std::uint64_t offset, std::span<std::byte> to) {
                       std::memcpy(to.data(), text.data() + offset, to.size());
                     }});
  }
  return blobs;
}

/// Restores the engine of a rank and its device's tuning from a checkpoint: that of its own rank, or else the
/// first that is there. Checkpoints of other devices have none.
/// \throws error(bad_input) for a field that does not match the engine, or that is not here.
template <class Core, device_policy D>
void take_state(Core& engine, D& device, io::checkpoint_reader const& checkpoint, int rank) {
  auto const origin = checkpoint.directory().string();
  std::vector<std::byte> chunk(std::size_t{4} << 20);
  for (auto const& field : engine.state_fields()) {
    auto const bytes = checkpoint.whole_bytes(field.name);
    expect(bytes == field.bytes, exit_code::bad_input, origin, ": '", field.name, "' has ", bytes,
           " bytes, expected ", field.bytes);
    auto const kept = engine.kept_here(field);
    engine.write_state(field, 0, {});  // also on a rank that owns nothing of it
    for (std::size_t done = 0; done < kept.bytes; done += chunk.size()) {
      std::span<std::byte> const part{chunk.data(), std::min(chunk.size(), kept.bytes - done)};
      checkpoint.read_whole(field.name, kept.offset + done, part);
      engine.write_state(field, kept.offset + done, part);
    }
  }
  if constexpr (tuned_device<D>) {
    std::string const field{detail::tuning_field};
    if (auto const from = detail::rank_with(field, checkpoint, rank)) {
      auto const bytes = checkpoint.blob_bytes(field, *from);
      auto const of_field = concat(origin, ": '", field, "'");
      expect(bytes <= detail::most_tuning_bytes, exit_code::bad_input, of_field, " has ", bytes,
             " bytes, expected at most ", detail::most_tuning_bytes);
      std::string text(bytes, ' ');
      checkpoint.read(field, 0, std::as_writable_bytes(std::span{text}), *from);
      device.tuning().load(text, of_field);
    }
  }
}

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/checkpoint_state_inl.hpp>
#endif
