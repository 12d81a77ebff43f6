// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/io/safetensors.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

namespace superoffload::io {
namespace detail {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

inline constexpr std::uint64_t format_header_bytes = 100'000'000;
inline constexpr std::size_t name_bytes = 512;
inline constexpr std::size_t most_dimensions = 8;
inline constexpr int header_depth = 4;
/// The buffer size of converting reads.
inline constexpr std::size_t buffer_bytes = std::size_t{64} << 10;

inline constexpr std::string_view known_types = "F64, F32, BF16, F16 or U8";

SUPEROFFLOAD_INLINE std::optional<dtype> dtype_named(std::string_view name) {
  for (auto const type : {dtype::f64, dtype::f32, dtype::bf16, dtype::f16, dtype::u8}) {
    if (name == name_of(type)) {
      return type;
    }
  }
  return std::nullopt;
}

/// Stricter than json_field::integer, which accepts -0.
SUPEROFFLOAD_INLINE std::uint64_t natural(json_field const& field) {
  expect(field.raw().is_number_unsigned() && field.raw().get<std::uint64_t>() <= std::uint64_t{INT64_MAX},
         exit_code::bad_input, field.where(), ": expected an integer from 0 to 2^63 - 1, found ",
         field.shown());
  return field.raw().get<std::uint64_t>();
}

/// The product of `shape` and the element's size, or nothing when it exceeds 2^63 - 1.
SUPEROFFLOAD_INLINE std::optional<std::uint64_t> size_in_bytes(std::span<std::int64_t const> shape,
                                                               dtype type) {
  auto product = static_cast<std::int64_t>(size_of(type));
  for (auto const extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) {
      return std::nullopt;
    }
  }
  return static_cast<std::uint64_t>(product);
}

SUPEROFFLOAD_INLINE tensor_info parse_tensor(json_field const& field) {
  field.require_object();
  for (auto const& [key, value] : field.raw().items()) {
    expect(key == "dtype" || key == "shape" || key == "data_offsets", exit_code::bad_input, field.where(),
           ": field '", printable(key), "' is unknown; expected dtype, shape and data_offsets");
  }
  tensor_info tensor;
  auto const type_field = field["dtype"];
  auto const type = dtype_named(type_field.text());
  expect(type.has_value(), exit_code::bad_input, type_field.where(), ": expected ", known_types, ", found ",
         type_field.shown());
  tensor.type = *type;

  auto const shape = field["shape"];
  shape.require_array();
  expect(shape.raw().size() <= most_dimensions, exit_code::bad_input, shape.where(), ": ", shape.raw().size(),
         " dimensions, expected at most ", most_dimensions);
  for (std::size_t axis = 0; axis < shape.raw().size(); ++axis) {
    tensor.shape.push_back(static_cast<std::int64_t>(natural(shape[axis])));
  }

  auto const offsets = field["data_offsets"];
  offsets.require_array();
  expect(offsets.raw().size() == 2, exit_code::bad_input, offsets.where(), ": ", offsets.raw().size(),
         " numbers, expected begin and end");
  tensor.begin = natural(offsets[0]);
  tensor.end = natural(offsets[1]);
  expect(tensor.begin <= tensor.end, exit_code::bad_input, offsets.where(), ": begin ", tensor.begin,
         " is behind end ", tensor.end);
  auto const bytes = size_in_bytes(tensor.shape, tensor.type);
  expect(bytes.has_value(), exit_code::bad_input, shape.where(), ": expected a product below 2^63 bytes");
  expect(tensor.end - tensor.begin == *bytes, exit_code::bad_input, offsets.where(), ": ",
         tensor.end - tensor.begin, " bytes, expected ", *bytes, " as shape and dtype say");
  return tensor;
}

template <class Source>
void widen(std::span<std::byte const> bytes, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Source value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    out[i] = static_cast<float>(value);
  }
}

SUPEROFFLOAD_INLINE void widen(dtype type, std::span<std::byte const> bytes, std::span<float> out) {
  switch (type) {
    case dtype::f64:
      return widen<double>(bytes, out);
    case dtype::f32:
      return widen<float>(bytes, out);
    case dtype::bf16:
      return widen<bfloat16>(bytes, out);
    case dtype::f16:
      return widen<float16>(bytes, out);
    case dtype::u8:
      return;
  }
}

}  // namespace detail

SUPEROFFLOAD_INLINE safetensors_file safetensors_file::open(std::filesystem::path const& path,
                                                            safetensors_limits limits) {
  safetensors_file opened{file::open_read(path)};
  auto const file_bytes = opened.file_.size();
  expect(file_bytes >= 8, exit_code::bad_input, shown(path), ": ", file_bytes,
         " bytes, expected a safetensors file: the header's length in 8 bytes, a header and data");
  std::array<std::byte, 8> length_bytes;
  opened.file_.pread_exact(0, length_bytes);
  auto const length = std::bit_cast<std::uint64_t>(length_bytes);
  expect(length <= detail::format_header_bytes, exit_code::bad_input, shown(path), ": header of ", length,
         " bytes, expected at most ", detail::format_header_bytes, ": this is no safetensors file");
  expect(length <= limits.header_bytes, exit_code::bad_input, shown(path), ": header of ", length,
         " bytes, expected at most ", limits.header_bytes);
  expect(length <= file_bytes - 8, exit_code::bad_input, shown(path), ": header of ", length,
         " bytes in a file of ", file_bytes, "; the file is cut short, fetch it again");
  std::string header(length, '\0');
  opened.file_.pread_exact(8, std::as_writable_bytes(std::span{header}));
  opened.data_begin_ = 8 + length;
  opened.parse_header(header, file_bytes - 8 - length, limits);
  return opened;
}

SUPEROFFLOAD_INLINE void safetensors_file::parse_header(std::string_view header, std::uint64_t data_bytes,
                                                        safetensors_limits limits) {
  auto const origin = concat(shown(path()), ": header");
  expect(header.starts_with('{'), exit_code::bad_input, origin, ": expected to start with '{'");
  // A tensor has at most 11 commas.
  auto const document = parse_json(
      header, origin,
      {.bytes = limits.header_bytes, .depth = detail::header_depth, .commas = 12 * limits.tensors});
  json_field const root{document, origin};
  root.require_object();

  for (auto const& [name, value] : document.items()) {
    if (name == "__metadata__") {
      auto const entries = root[name];
      entries.require_object();
      for (auto const& [key, text] : entries.raw().items()) { metadata_.emplace(key, entries[key].text()); }
      continue;
    }
    expect(name.size() <= detail::name_bytes, exit_code::bad_input, origin, ": tensor '", printable(name, 40),
           "': name of ", name.size(), " bytes, expected at most ", detail::name_bytes);
    expect(tensors_.size() < limits.tensors, exit_code::bad_input, origin, ": expected at most ",
           limits.tensors, " tensors");
    tensors_.emplace(name, detail::parse_tensor(root[name]));
  }

  std::vector<std::pair<std::string const, tensor_info> const*> in_file_order;
  in_file_order.reserve(tensors_.size());
  for (auto const& entry : tensors_) { in_file_order.push_back(&entry); }
  std::ranges::sort(in_file_order, {},
                    [](auto const* entry) { return std::pair{entry->second.begin, entry->second.end}; });
  std::uint64_t position = 0;
  for (auto const* entry : in_file_order) {
    expect(entry->second.begin == position, exit_code::bad_input, origin, ": ", printable(entry->first),
           ".data_offsets: begins at ", entry->second.begin, ", expected ", position,
           ": tensors follow each other without hole or overlap");
    position = entry->second.end;
  }
  expect(position == data_bytes, exit_code::bad_input, shown(path()), ": ", data_bytes,
         " bytes of data, expected ", position, " as the header says; the file is ",
         data_bytes < position ? "cut short, fetch it again" : "too long");
}

SUPEROFFLOAD_INLINE void safetensors_file::read(tensor_info const& tensor, std::uint64_t first,
                                                std::span<float> out) const {
  expect(tensor.type != dtype::u8, exit_code::bad_input, shown(path()),
         ": a tensor of bytes (U8) was asked for as numbers; expected F64, F32, BF16 or F16");
  expect(first <= tensor.elements() && out.size() <= tensor.elements() - first, exit_code::internal,
         shown(path()), ": elements beyond the end of a tensor were asked for");
  if (tensor.type == dtype::f32) {
    read_raw(tensor, first * sizeof(float), std::as_writable_bytes(out));
    return;
  }
  auto const width = size_of(tensor.type);
  std::vector<std::byte> buffer(std::min(detail::buffer_bytes, out.size() * width));
  while (!out.empty()) {
    auto const count = std::min(buffer.size() / width, out.size());
    auto const bytes = std::span{buffer}.first(count * width);
    read_raw(tensor, first * width, bytes);
    detail::widen(tensor.type, bytes, out.first(count));
    out = out.subspan(count);
    first += count;
  }
}

SUPEROFFLOAD_INLINE void safetensors_file::read_raw(tensor_info const& tensor, std::uint64_t first,
                                                    std::span<std::byte> out) const {
  auto const bytes = tensor.end - tensor.begin;
  expect(first <= bytes && out.size() <= bytes - first, exit_code::internal, shown(path()),
         ": bytes beyond the end of a tensor were asked for");
  file_.pread_exact(data_begin_ + tensor.begin + first, out);
}

SUPEROFFLOAD_INLINE std::uint64_t tensor_declaration::bytes() const {
  auto const size = detail::size_in_bytes(shape, type);
  expect(size.has_value(), exit_code::bad_input, "tensor '", printable(name),
         "': expected dimensions from 0 on and less than 2^63 bytes");
  return *size;
}

SUPEROFFLOAD_INLINE safetensors_writer::safetensors_writer(std::filesystem::path const& path,
                                                           std::span<tensor_declaration const> tensors) {
  auto target = file::create_new(path);
  std::string header = R"({"__metadata__":{"format":"pt"})";
  std::set<std::string_view> names{"__metadata__"};
  std::uint64_t data_bytes = 0;
  for (auto const& tensor : tensors) {
    expect(names.insert(tensor.name).second, exit_code::bad_input, shown(path), ": tensor '",
           printable(tensor.name), "' is declared twice; expected each name once");
    auto const begin = data_bytes;
    expect(
        !__builtin_add_overflow(begin, tensor.bytes(), &data_bytes) && data_bytes <= std::uint64_t{INT64_MAX},
        exit_code::bad_input, shown(path), ": expected less than 2^63 bytes in all tensors");
    header += concat(",", json(tensor.name).dump(), R"(:{"dtype":")", name_of(tensor.type), R"(","shape":)",
                     json(tensor.shape).dump(), R"(,"data_offsets":[)", begin, ",", data_bytes, "]}");
  }
  header += "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  expect(header.size() <= detail::format_header_bytes, exit_code::bad_input, shown(path), ": header of ",
         header.size(), " bytes, expected at most ", detail::format_header_bytes,
         "; write more than one file");

  auto const length = std::bit_cast<std::array<std::byte, 8>>(std::uint64_t{header.size()});
  position_ = 8 + header.size();
  end_ = position_ + data_bytes;
  target.preallocate(end_);
  target.pwrite_all(0, length);
  target.pwrite_all(8, std::as_bytes(std::span{header}));
  file_.emplace(std::move(target));
}

SUPEROFFLOAD_INLINE std::span<std::byte> safetensors_writer::next(std::size_t bytes) {
  expect(bytes <= end_ - position_, exit_code::internal, shown(file_->path()),
         ": more data than the declared tensors have");
  auto const memory = file_->next(position_, bytes);
  piece_ = bytes;
  return memory;
}

SUPEROFFLOAD_INLINE void safetensors_writer::commit() {
  file_->commit();
  position_ += std::exchange(piece_, 0);
}

SUPEROFFLOAD_INLINE void safetensors_writer::write(std::span<std::byte const> data) {
  while (!data.empty()) {
    auto const memory = next(std::min(most_bytes, data.size()));
    std::ranges::copy(data.first(memory.size()), memory.begin());
    commit();
    data = data.subspan(memory.size());
  }
}

SUPEROFFLOAD_INLINE void safetensors_writer::finish() {
  expect(position_ == end_, exit_code::internal, shown(file_->path()), ": ", end_ - position_,
         " bytes of the declared tensors were not written");
  file_->finish();
}

}  // namespace superoffload::io
