// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/core/masters.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/io/mxfp4.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <mutex>
#include <system_error>

namespace superoffload::io {
namespace detail {

inline constexpr auto single_file = "model.safetensors";
inline constexpr auto index_file = "model.safetensors.index.json";

SUPEROFFLOAD_INLINE bool is_pickled(std::filesystem::path const& name) {
  static constexpr std::array extensions{".bin", ".pt", ".pth", ".ckpt", ".pkl"};
  return std::ranges::find(extensions, name.extension().native()) != extensions.end();
}

[[noreturn]] SUPEROFFLOAD_INLINE void fail_without_weights(std::filesystem::path const& directory) {
  std::error_code failure;
  expect(std::filesystem::is_directory(directory, failure), exit_code::bad_input, shown(directory),
         ": expected a directory in the layout of the Hugging Face hub");
  for (auto const& name : list_directory(directory)) {
    expect(!is_pickled(name), exit_code::bad_input, shown(directory / name),
           ": pickled weights can run code and are not read; expected ", single_file,
           ": save the model again with transformers' save_pretrained(safe_serialization=True)");
  }
  fail(exit_code::bad_input, shown(directory), ": expected ", single_file, " or ", index_file);
}

/// \throws error(bad_input) for the first of `values` that no master can represent.
template <class Value>
void expect_trainable(std::span<Value const> values, std::filesystem::path const& file, std::string_view name,
                      std::uint64_t first) {
  auto const at = first_beyond_masters(values);
  if (at == values.size()) {
    return;
  }
  fail(exit_code::bad_input, shown(file), ": ", printable(name), ": element ", first + at, " is ",
       static_cast<float>(values[at]), ", expected finite weights below 3.39e38 in magnitude");
}

}  // namespace detail

struct hub_checkpoint::dequantised {
  std::mutex mutex;
  tensor_info const* blocks = nullptr;
  std::uint64_t expert = 0;
  std::vector<bfloat16> values;
  std::vector<std::byte> packed, scales;
};

SUPEROFFLOAD_INLINE hub_checkpoint::hub_checkpoint() : dequantised_{std::make_shared<dequantised>()} {}

SUPEROFFLOAD_INLINE hub_checkpoint hub_checkpoint::open(model_directory const& directory, hub_limits limits) {
  hub_checkpoint opened;
  opened.directory_ = directory.path();
  if (directory.has(detail::single_file)) {
    opened.shards_.push_back(safetensors_file::open(directory.file(detail::single_file), limits.safetensors));
    for (auto const& [name, tensor] : opened.shards_.back().tensors()) {
      opened.locations_.emplace(name, location{0, &tensor});
    }
  } else if (directory.has(detail::index_file)) {
    opened.open_shards(directory, limits);
  } else {
    detail::fail_without_weights(directory.path());
  }
  opened.find_quantised();
  return opened;
}

SUPEROFFLOAD_INLINE void hub_checkpoint::open_shards(model_directory const& directory, hub_limits limits) {
  auto const index = directory.file(detail::index_file);
  auto const document = read_json(
      index, {.bytes = limits.index_bytes, .depth = 8, .commas = limits.safetensors.tensors + 1000});
  json_field const root{document, shown(index)};
  auto const weight_map = root["weight_map"];
  weight_map.require_object();
  expect(weight_map.raw().size() <= limits.safetensors.tensors, exit_code::bad_input, weight_map.where(),
         ": ", weight_map.raw().size(), " tensors, expected at most ", limits.safetensors.tensors);

  std::map<std::string, std::size_t> shard_numbers;
  std::size_t tensors_left = limits.safetensors.tensors;
  for (auto const& [name, value] : weight_map.raw().items()) {
    auto const field = weight_map[name];
    auto const& shard = field.text();
    expect(is_basename(shard), exit_code::bad_input, field.where(),
           ": expected the name of a file next to the index, found ", field.shown());
    expect(!detail::is_pickled(shard), exit_code::bad_input, field.where(), ": ", field.shown(),
           " would be pickled weights, which can run code; expected a .safetensors file");
    if (shard_numbers.try_emplace(shard, shard_numbers.size()).second) {
      expect(shard_numbers.size() <= limits.shards, exit_code::bad_input, weight_map.where(),
             ": expected at most ", limits.shards, " files");
      auto shard_limits = limits.safetensors;
      shard_limits.tensors = tensors_left;
      shards_.push_back(safetensors_file::open(directory.file(shard), shard_limits));
      tensors_left -= shards_.back().tensors().size();
    }
  }

  std::uint64_t total = 0;
  for (auto const& [name, value] : weight_map.raw().items()) {
    auto const number = shard_numbers.at(value.get_ref<std::string const&>());
    auto const& tensors = shards_[number].tensors();
    auto const found = tensors.find(name);
    expect(found != tensors.end(), exit_code::bad_input, weight_map[name].where(), ": ",
           shown(shards_[number].path()), " has no tensor of that name");
    locations_.emplace(name, location{number, &found->second});
    total += found->second.end - found->second.begin;
  }

  if (root.has("metadata") && root["metadata"].has("total_size")) {
    auto const stated = root["metadata"]["total_size"];
    if (!stated.raw().is_number() || stated.raw().get<double>() != static_cast<double>(total)) {
      warnings_.push_back(
          concat(stated.where(), ": ", stated.shown(), ", but the tensors have ", total, " bytes"));
    }
  }
}

/// Combines each pair of blocks and scales in MXFP4 to one tensor.
SUPEROFFLOAD_INLINE void hub_checkpoint::find_quantised() {
  constexpr std::string_view blocks_ending = "_blocks", scales_ending = "_scales";
  std::vector<std::string> pairs;
  for (auto const& [name, where] : locations_) {
    if (name.ends_with(blocks_ending) && where.tensor->type == dtype::u8) {
      pairs.push_back(name.substr(0, name.size() - blocks_ending.size()));
    }
  }
  for (auto const& name : pairs) {
    auto const blocks_name = name + std::string{blocks_ending},
               scales_name = name + std::string{scales_ending};
    auto const blocks = locations_.at(blocks_name);
    auto const& file = shards_[blocks.shard].path();
    auto const found = locations_.find(scales_name);
    expect(found != locations_.end() && found->second.tensor->type == dtype::u8, exit_code::bad_input,
           shown(file), ": tensor '", printable(blocks_name), "' is in MXFP4, but '", printable(scales_name),
           "' of dtype U8 is missing");
    auto const scales = found->second;
    auto const& shape = blocks.tensor->shape;
    expect(shape.size() == 4 && shape[3] == mxfp4_block_bytes && std::ranges::find(shape, 0) == shape.end(),
           exit_code::bad_input, shown(file), ": tensor '", printable(blocks_name),
           "': expected the shape [experts, outputs, inputs / 32, 16] of MXFP4");
    expect(
        std::equal(shape.begin(), shape.end() - 1, scales.tensor->shape.begin(), scales.tensor->shape.end()),
        exit_code::bad_input, shown(file), ": tensor '", printable(scales_name), "': expected the shape of '",
        printable(blocks_name), "' without its last extent");
    expect(!locations_.contains(name), exit_code::bad_input, shown(file), ": tensor '", printable(name),
           "' exists, and so do its MXFP4 blocks; expected one of them");
    quantised_matrix matrix{
        {.type = dtype::bf16, .shape = {shape[0], shape[2] * mxfp4_block, shape[1]}}, blocks, scales};
    matrix.whole.end = 4 * (blocks.tensor->end - blocks.tensor->begin);  // four bits become sixteen
    quantised_.emplace(name, matrix);
    locations_.erase(blocks_name);
    locations_.erase(scales_name);
  }
}

template <class Number>
bool hub_checkpoint::read_quantised(std::string_view name, std::uint64_t first, std::span<Number> to) const {
  auto const found = quantised_.find(name);
  if (found == quantised_.end()) {
    return false;
  }
  auto const& matrix = found->second;
  auto const count = std::uint64_t{to.size()};
  auto const in = matrix.whole.shape[1], out = matrix.whole.shape[2];
  auto const size = static_cast<std::uint64_t>(in * out);
  auto const all = static_cast<std::uint64_t>(matrix.whole.shape[0]) * size;
  expect(first <= all && count <= all - first, exit_code::internal, "elements ", first, " to ", first + count,
         " of ", printable(name), ", which has ", all);
  std::scoped_lock const lock{dequantised_->mutex};
  auto& kept = *dequantised_;
  for (std::uint64_t done = 0; done < count;) {
    auto const expert = (first + done) / size;
    if (kept.blocks != matrix.blocks.tensor || kept.expert != expert) {
      kept.blocks = nullptr;  // until it is complete
      auto const read = [&](location const& from, std::vector<std::byte>& data) {
        auto const bytes =
            (from.tensor->end - from.tensor->begin) / static_cast<std::uint64_t>(matrix.whole.shape[0]);
        data.resize(bytes);
        shards_[from.shard].read_raw(*from.tensor, expert * bytes, data);
      };
      read(matrix.blocks, kept.packed);
      read(matrix.scales, kept.scales);
      kept.values.resize(size);
      dequantise_mxfp4(kept.packed, kept.scales, in, out, kept.values);
      kept.blocks = matrix.blocks.tensor;
      kept.expert = expert;
    }
    auto const from = (first + done) % size;
    auto const piece =
        std::span<bfloat16 const>{kept.values}.subspan(from, std::min(size - from, count - done));
    detail::expect_trainable(piece, shards_[matrix.blocks.shard].path(), name, first + done);
    std::ranges::copy(piece, to.begin() + static_cast<std::ptrdiff_t>(done));
    done += piece.size();
  }
  return true;
}

SUPEROFFLOAD_INLINE std::vector<std::string> hub_checkpoint::names() const {
  std::vector<std::string> sorted;
  sorted.reserve(locations_.size() + quantised_.size());
  for (auto const& [name, where] : locations_) { sorted.push_back(name); }
  for (auto const& [name, matrix] : quantised_) { sorted.push_back(name); }
  std::ranges::sort(sorted);
  return sorted;
}

SUPEROFFLOAD_INLINE tensor_info const* hub_checkpoint::find(std::string_view name) const {
  if (auto const matrix = quantised_.find(name); matrix != quantised_.end()) {
    return &matrix->second.whole;
  }
  auto const found = locations_.find(name);
  return found == locations_.end() ? nullptr : found->second.tensor;
}

SUPEROFFLOAD_INLINE std::uint64_t hub_checkpoint::bytes() const {
  std::uint64_t bytes = 0;
  for (auto const& [name, where] : locations_) { bytes += where.tensor->end - where.tensor->begin; }
  for (auto const& [name, matrix] : quantised_) {
    for (auto const* const tensor : {matrix.blocks.tensor, matrix.scales.tensor}) {
      bytes += tensor->end - tensor->begin;
    }
  }
  return bytes;
}

SUPEROFFLOAD_INLINE hub_checkpoint::location const& hub_checkpoint::at(std::string_view name) const {
  auto const found = locations_.find(name);
  expect(found != locations_.end(), exit_code::bad_input, shown(directory_), ": tensor '", printable(name),
         "' is missing");
  return found->second;
}

SUPEROFFLOAD_INLINE std::filesystem::path const& hub_checkpoint::file_of(std::string_view name) const {
  auto const matrix = quantised_.find(name);
  return shards_[matrix != quantised_.end() ? matrix->second.blocks.shard : at(name).shard].path();
}

SUPEROFFLOAD_INLINE void hub_checkpoint::read(std::string_view name, std::uint64_t first,
                                              std::span<float> out) const {
  if (read_quantised(name, first, out)) {
    return;
  }
  auto const& where = at(name);
  shards_[where.shard].read(*where.tensor, first, out);
  detail::expect_trainable(std::span<float const>{out}, shards_[where.shard].path(), name, first);
}

SUPEROFFLOAD_INLINE void hub_checkpoint::read_bf16(std::string_view name, std::uint64_t first,
                                                   std::span<bfloat16> out) const {
  if (read_quantised(name, first, out)) {
    return;
  }
  auto const& where = at(name);
  if (where.tensor->type == dtype::bf16) {
    auto const& shard = shards_[where.shard];
    shard.read_raw(*where.tensor, first * sizeof(bfloat16), std::as_writable_bytes(out));
    detail::expect_trainable(std::span<bfloat16 const>{out}, shard.path(), name, first);
    return;
  }
  std::vector<float> masters(std::min<std::size_t>(out.size(), 16384));
  while (!out.empty()) {
    auto const some = std::span{masters}.first(std::min(masters.size(), out.size()));
    read(name, first, some);
    std::ranges::transform(some, out.begin(), &bfloat16::of_master);
    out = out.subspan(some.size());
    first += some.size();
  }
}

}  // namespace superoffload::io
