// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/inline.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::autograd {

SUPEROFFLOAD_INLINE parameter unit_layout::add_matrix(
    std::vector<std::pair<std::string, std::int64_t>> const& parts, std::int64_t columns) {
  parameter const added = start(columns);
  std::int64_t rows = 0;
  for (auto const& [tensor, tensor_rows] : parts) {
    append({tensor, {tensor_rows, columns}});
    rows += tensor_rows;
  }
  return finish(added, rows);
}

SUPEROFFLOAD_INLINE parameter unit_layout::add_tensor(std::string const& name,
                                                      std::vector<std::int64_t> const& shape) {
  parameter const added = start(shape.back());
  append({name, shape});
  return finish(added, (end_ - added.offset) / shape.back());
}

SUPEROFFLOAD_INLINE parameter unit_layout::add_vector(std::string const& name, std::int64_t count) {
  return add_vector({{name, count}});
}

SUPEROFFLOAD_INLINE unit_layout unit_layout::part(std::int64_t begin, std::int64_t count) const {
  unit_layout own{id_, name_};
  for (auto const& tensor : tensors_) {
    auto const first = std::max(tensor.offset, begin);
    auto const end = std::min(tensor.offset + tensor.count(), begin + count);
    if (first < end) {
      auto& inside = own.tensors_.emplace_back(tensor);
      inside.shape = {end - first};
      inside.offset = first - begin;
    }
  }
  if (trainable() && !own.trainable()) {
    own.tensors_.push_back({.name = name_, .shape = {0}});  // an empty tensor keeps it trainable
  }
  own.end_ = count;
  own.begin_ = begin_ + begin;
  return own;
}

SUPEROFFLOAD_INLINE void unit_layout::append(tensor_entry tensor) {
  tensor.offset = end_;
  end_ += tensor.count();
  tensors_.push_back(std::move(tensor));
}

SUPEROFFLOAD_INLINE bool trainable(unit_layout const& unit, parameter const& p) {
  for (auto const& tensor : unit.tensors()) {
    bool const inside = tensor.offset >= p.offset && tensor.offset < p.offset + p.count();
    if (inside && tensor.trainable) {
      return true;
    }
  }
  return false;
}

SUPEROFFLOAD_INLINE parameter
unit_layout::add_vector(std::vector<std::pair<std::string, std::int64_t>> const& parts) {
  std::int64_t count = 0;
  for (auto const& [tensor, elements] : parts) { count += elements; }
  parameter const added = start(count);
  for (auto const& [tensor, elements] : parts) { append({tensor, {elements}}); }
  return finish(added, 1);
}

}  // namespace superoffload::autograd
