// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::autograd {

/// A tensor of a checkpoint inside a unit's flat buffer, row-major.
struct tensor_entry {
  std::string name;                 ///< as Hugging Face names it
  std::vector<std::int64_t> shape;  ///< extents, the last of them contiguous
  std::int64_t offset = 0;          ///< in elements from the start of the unit
  bool trainable = true;            ///< false: frozen; the store zeroes its gradient, and no step changes it
  bool decays = true;               ///< takes part in weight decay

  /// Elements, padding not included; 1 for a scalar.
  [[nodiscard]] std::int64_t count() const {
    std::int64_t product = 1;
    for (auto const extent : shape) { product *= extent; }
    return product;
  }
};

/// A layer's weight: its position in a unit. Neighbours such as q|k|v are one parameter of several tensors.
struct parameter {
  int unit = -1;             ///< the unit's id; -1: there is no such weight
  int index = 0;             ///< among the unit's parameters
  std::int64_t offset = 0;   ///< in elements
  std::int64_t rows = 0;     ///< of the matrix that a GEMM reads; 1 for a vector
  std::int64_t columns = 0;  ///< of that matrix; the elements of a row are contiguous
  bool trainable = true;     ///< false: its gradient is not needed

  /// Elements of the matrix.
  [[nodiscard]] std::int64_t count() const noexcept { return rows * columns; }
  /// Is there such a weight, for example a bias?
  explicit operator bool() const noexcept { return unit >= 0; }
};

/// The layout of a unit: the parameters that are gathered, offloaded and released together, in one flat
/// buffer.
class unit_layout {
public:
  /// Every parameter starts at a multiple of this many elements. Padding between them is zero and stays zero.
  static constexpr std::int64_t alignment = 128;

  /// `wide_gradient`: several GEMMs add to its gradients even in one micro-batch, so stores keep them in
  /// wide<T>.
  explicit unit_layout(int id, std::string name, bool wide_gradient = false)
      : id_{id}, name_{std::move(name)}, wide_gradient_{wide_gradient} {}

  /// Adds one parameter [rows, columns] of the named tensors, stacked: {name, its rows}.
  parameter add_matrix(std::vector<std::pair<std::string, std::int64_t>> const& parts, std::int64_t columns);

  /// Adds one parameter that is a tensor of any shape, seen as a matrix with its last extent as columns.
  parameter add_tensor(std::string const& name, std::vector<std::int64_t> const& shape);

  /// Adds one vector parameter, seen as a row, of the named tensors side by side: {name, its elements}.
  parameter add_vector(std::vector<std::pair<std::string, std::int64_t>> const& parts);
  /// Adds a vector parameter of one tensor.
  parameter add_vector(std::string const& name, std::int64_t count);

  /// Its index among the model's units, in the order of the forward.
  [[nodiscard]] int id() const noexcept { return id_; }
  /// A name for messages, plans and profilers, such as "layer 3".
  [[nodiscard]] std::string const& name() const noexcept { return name_; }
  /// Do stores keep its gradient in wide<T>?
  [[nodiscard]] bool wide_gradient() const noexcept { return wide_gradient_; }
  [[nodiscard]] int parameters() const noexcept { return parameters_; }  ///< the number of add_... calls
  /// Its tensors, in the order of their offsets.
  [[nodiscard]] std::vector<tensor_entry> const& tensors() const noexcept { return tensors_; }
  /// For setting `trainable` and `decays`, before a store is made.
  [[nodiscard]] std::vector<tensor_entry>& tensors() noexcept { return tensors_; }
  /// Is any of its tensors trainable? Otherwise stores keep no gradient of the unit.
  [[nodiscard]] bool trainable() const {
    for (auto const& tensor : tensors_) {
      if (tensor.trainable) {
        return true;
      }
    }
    return false;
  }
  /// Elements [begin, begin + count) as a unit of their own, with the part of each tensor in them, flat.
  /// `count` is a multiple of `alignment`. Elements behind the whole unit's last one are padding. The part is
  /// trainable if the whole unit is. Its gradient is not wide, since it is one sum over the ranks.
  [[nodiscard]] unit_layout part(std::int64_t begin, std::int64_t count) const;

  /// Its first element's index in the whole unit; 0 unless it is a part().
  [[nodiscard]] std::int64_t begin() const noexcept { return begin_; }
  /// Elements of the flat buffer, padding included.
  [[nodiscard]] std::int64_t elements() const noexcept { return aligned(end_); }

private:
  static std::int64_t aligned(std::int64_t count) { return (count + alignment - 1) / alignment * alignment; }

  parameter start(std::int64_t columns) {
    end_ = aligned(end_);
    return {.unit = id_, .index = parameters_, .offset = end_, .columns = columns};
  }
  void append(tensor_entry tensor);
  parameter finish(parameter added, std::int64_t rows) {
    ++parameters_;
    added.rows = rows;
    return added;
  }

  int id_;
  std::string name_;
  bool wide_gradient_;
  int parameters_ = 0;
  std::int64_t begin_ = 0, end_ = 0;
  std::vector<tensor_entry> tensors_;
};

/// Is any tensor of the parameter trainable?
bool trainable(unit_layout const& unit, parameter const& p);

/// The purpose of entering a unit. `both`: a forward that already writes gradients, as the head with its loss
/// does.
enum class pass { forward, backward, both };

/// A unit's flat buffers in device memory while it is acquired. `gradient` is null in a plain forward; its
/// elements have the weights' type, or its wide type.
struct unit_buffers {
  void const* weights = nullptr;  ///< [elements of the unit] T
  void* gradient = nullptr;       ///< [elements of the unit] T or wide<T>; reduce() zeroes frozen tensors
  bool gradient_is_wide = false;  ///< the gradient's elements are wide<T>
};

/// How a tape reaches the store of weights and gradients, type-erased once per unit and not once per
/// parameter. Calls refer to the stream's order: buffers of acquire are for work queued after it.
struct unit_access {
  void* store = nullptr;                                       ///< the first argument of each call below
  void (*prefetch)(void*, int unit, pass) noexcept = nullptr;  ///< a hint that `unit` comes next
  unit_buffers (*acquire)(void*, int unit, pass) = nullptr;    ///< counted; null: the tape is dry
  void (*release)(void*, int unit, pass) noexcept = nullptr;   ///< matches an acquire
  void (*reduce)(void*, int unit) = nullptr;  ///< the gradient of the micro-batch is complete
  /// Sends `bytes` to each rank that shares the micro-batch's rows, and receives as many from each: [ranks,
  /// bytes], in the order of the compute stream. Null: no ranks share rows.
  void (*exchange)(void*, void const* from, void* to, std::size_t bytes) = nullptr;
  std::vector<unit_layout> const* units = nullptr;  ///< for the names of profiler ranges; null: no ranges

  /// Access to a store, which must outlive the tape, as must `units`. See zero::unit_store for the calls.
  template <class Store>
  static unit_access to(Store& store, std::vector<unit_layout> const* units = nullptr) {
    unit_access all{
        .store = &store,
        .prefetch = [](void* self, int unit,
                       pass p) noexcept { static_cast<Store*>(self)->prefetch(unit, p); },
        .acquire = [](void* self, int unit, pass p) { return static_cast<Store*>(self)->acquire(unit, p); },
        .release = [](void* self, int unit, pass p) noexcept { static_cast<Store*>(self)->release(unit, p); },
        .reduce = [](void* self, int unit) { static_cast<Store*>(self)->reduce(unit); },
        .units = units};
    if constexpr (requires(void* bytes) { store.exchange(bytes, bytes, std::size_t{}); }) {
      all.exchange = [](void* self, void const* from, void* to, std::size_t bytes) {
        static_cast<Store*>(self)->exchange(from, to, bytes);
      };
    }
    return all;
  }
};

}  // namespace superoffload::autograd

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/autograd/impl/unit_inl.hpp>
#endif
