// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/io/hub.hpp>
#include <superoffload/io/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <system_error>

namespace superoffload::io {
namespace {

constexpr auto single_file = "model.safetensors";
constexpr auto index_file = "model.safetensors.index.json";

/// A name that stays in its directory.
bool is_basename(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view{"/\\\0", 3}) == name.npos;
}

bool is_pickled(std::filesystem::path const& name) {
  static constexpr std::array extensions{".bin", ".pt", ".pth", ".ckpt", ".pkl"};
  return std::ranges::find(extensions, name.extension().native()) != extensions.end();
}

[[noreturn]] void fail_without_weights(std::filesystem::path const& directory) {
  std::error_code failure;
  expect(std::filesystem::is_directory(directory, failure), exit_code::bad_input, shown(directory),
         ": expected a directory in the layout of the Hugging Face hub");
  for (std::filesystem::directory_iterator entry{directory, failure}, end; !failure && entry != end;
       entry.increment(failure)) {
    expect(!is_pickled(entry->path()), exit_code::bad_input, shown(entry->path()),
           ": pickled weights can run code and are not read; expected ", single_file,
           ": save the model again with transformers' save_pretrained(safe_serialization=True)");
  }
  fail(exit_code::bad_input, shown(directory), ": expected ", single_file, " or ", index_file);
}

/// \throws error(bad_input) for the first of `values` that no master can have.
template <class Value>
void expect_trainable(std::span<Value const> values, std::filesystem::path const& file, std::string_view name,
                      std::uint64_t first) {
  // One pass without branches, so that the compiler makes it vector code.
  std::uint32_t largest = 0;
  for (auto const value : values) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(static_cast<float>(value)) & 0x7FFFFFFFU);
  }
  if (largest < 0x7F7F8000U) {
    return;
  }
  auto const at = std::ranges::find_if(
      values, [](float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU) >= 0x7F7F8000U; });
  fail(exit_code::bad_input, shown(file), ": ", printable(name), ": element ",
       first + static_cast<std::uint64_t>(at - values.begin()), " is ", static_cast<float>(*at),
       ", expected finite weights below 3.39e38 in magnitude");
}

}  // namespace

hub_checkpoint hub_checkpoint::open(std::filesystem::path const& directory, hub_limits limits) {
  hub_checkpoint opened;
  opened.directory_ = directory;
  std::error_code failure;
  if (std::filesystem::exists(directory / single_file, failure)) {
    opened.shards_.push_back(safetensors_file::open(directory / single_file, limits.safetensors));
    for (auto const& [name, tensor] : opened.shards_.back().tensors()) {
      opened.places_.emplace(name, place{0, &tensor});
    }
  } else if (std::filesystem::exists(directory / index_file, failure)) {
    opened.open_shards(directory / index_file, limits);
  } else {
    fail_without_weights(directory);
  }
  return opened;
}

void hub_checkpoint::open_shards(std::filesystem::path const& index, hub_limits limits) {
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
           ": expected the name of a file beside the index, found ", field.shown());
    expect(!is_pickled(shard), exit_code::bad_input, field.where(), ": ", field.shown(),
           " would be pickled weights, which can run code; expected a .safetensors file");
    if (shard_numbers.try_emplace(shard, shard_numbers.size()).second) {
      expect(shard_numbers.size() <= limits.shards, exit_code::bad_input, weight_map.where(),
             ": expected at most ", limits.shards, " files");
      auto shard_limits = limits.safetensors;
      shard_limits.tensors = tensors_left;
      shards_.push_back(safetensors_file::open(directory_ / shard, shard_limits));
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
    places_.emplace(name, place{number, &found->second});
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

std::vector<std::string> hub_checkpoint::names() const {
  std::vector<std::string> sorted;
  sorted.reserve(places_.size());
  for (auto const& [name, where] : places_) { sorted.push_back(name); }
  return sorted;
}

tensor_info const* hub_checkpoint::find(std::string_view name) const {
  auto const found = places_.find(name);
  return found == places_.end() ? nullptr : found->second.tensor;
}

hub_checkpoint::place const& hub_checkpoint::at(std::string_view name) const {
  auto const found = places_.find(name);
  expect(found != places_.end(), exit_code::bad_input, shown(directory_), ": tensor '", printable(name),
         "' is missing");
  return found->second;
}

void hub_checkpoint::read(std::string_view name, std::uint64_t first, std::span<float> out) const {
  auto const& where = at(name);
  shards_[where.shard].read(*where.tensor, first, out);
  expect_trainable(std::span<float const>{out}, shards_[where.shard].path(), name, first);
}

void hub_checkpoint::read_bf16(std::string_view name, std::uint64_t first, std::span<bfloat16> out) const {
  auto const& where = at(name);
  if (where.tensor->type == dtype::bf16) {
    auto const& shard = shards_[where.shard];
    shard.read_raw(*where.tensor, first * sizeof(bfloat16), std::as_writable_bytes(out));
    expect_trainable(std::span<bfloat16 const>{out}, shard.path(), name, first);
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
