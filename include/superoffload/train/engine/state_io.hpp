// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/masters.hpp>
#include <superoffload/core/range.hpp>
#include <superoffload/cpu/cores.hpp>
#include <superoffload/cpu/threads.hpp>
#include <superoffload/offload/state/step_record.hpp>
#include <superoffload/train/engine/tensor_reader.hpp>
#include <superoffload/zero/shard.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace superoffload::train {

/// A named part of a checkpoint: fp32 master, m or v of a trainable unit, or the weights of a frozen unit. It
/// does not depend on where and how the state is kept.
struct state_field {
  std::string name;                         ///< such as "unit3.master"
  std::size_t bytes;                        ///< of the whole field, on all ranks
  int unit;                                 ///< its unit_layout::id()
  std::optional<offload::state_part> part;  ///< none: the weights, in element_type
};
/// The bytes of a field that are kept here: all, or a rank's part. The parts of all ranks in order are the
/// field.
struct kept_bytes {
  /// From the beginning of the field.
  std::size_t offset = 0, bytes = 0;  ///< 0: none are kept here
};

/// Reads and writes an engine's weights, gradients and state. With several ranks, each reads or writes its
/// own part, or all gather the whole. Every call waits for the device.
template <device_policy D, element T, class Store, class State>
class state_io {
public:
  /// `shares`: is it a rank's, with a shard of every unit? All arguments must outlive this.
  state_io(typename D::stream& stream, std::vector<autograd::unit_layout> const& units, Store& store,
           State& state, comm::host_group ranks, bool shares)
      : stream_{&stream},
        units_{&units},
        store_{&store},
        state_{&state},
        ranks_{std::move(ranks)},
        shares_{shares} {}

  /// Fills masters and weights from `read`; moments stay. A rank reads only what it owns. If `read` allows
  /// it, threads share the work: reading and rounding take longer than the copies to a device. One of the
  /// errors is thrown.
  void load(tensor_reader const& read) {
    enter_range("loading of weights");
    for (auto const& unit : *units_) { store_->expect_writes(unit.id()); }
    auto const pieces = pieces_to_load();
    auto const count = std::ssize(pieces);
    auto const threads = std::min<std::int64_t>({count, cpu::default_threads(), most_loading_threads});
    cpu::thread_pool pool{read.is_concurrent ? static_cast<int>(std::max<std::int64_t>(threads, 1)) : 1};
    pool.parallel_for(count, 1, [&](std::int64_t index, std::int64_t) {
      auto const& piece = pieces[static_cast<std::size_t>(index)];
      static thread_local std::vector<float> memory;  // kept: new pages would cost more time than the copies
      memory.resize(std::max(memory.size(), piece.count));
      auto const values = std::span{memory}.first(piece.count);
      read(piece.tensor->name, piece.first, values);
      auto const at = first_beyond_masters(std::span<float const>{values});
      expect(at == values.size(), exit_code::bad_input, "tensor '", piece.tensor->name, "': element ",
             piece.first + at, " is not finite or too large for bfloat16; expected finite weights");
      put(*piece.unit, piece.tensor->offset + piece.first, values);
    });
  }

  /// Reads elements [first, first + size): masters, or the working weights of a frozen unit. Ranks call it
  /// together.
  void read_weights(autograd::unit_layout const& unit, std::int64_t first, std::span<float> to) {
    expect_inside(unit, first, to.size());
    from_owners(unit, first, to, [&](std::int64_t begin, std::span<float> own) {
      if (unit.trainable()) {
        state_->read(unit.id(), offload::state_part::master, begin, own);
      } else {
        fetch(store_->weights(unit.id()) + begin, own);
      }
    });
  }
  /// Reads the last final gradient, rounded to T; zeros for a frozen unit. Ranks call it together. \throws
  /// error(bad_input) if the gradient has left the device
  void read_gradient(autograd::unit_layout const& unit, std::int64_t first, std::span<float> to) {
    expect_inside(unit, first, to.size());
    auto const gradient = store_->gradient(unit.id());
    if (gradient.data == nullptr) {
      expect(!unit.trainable(), exit_code::bad_input, "the gradient of unit ", unit.id(),
             " has left the device: it cannot be read after the step");
      std::fill(to.begin(), to.end(), 0.0F);
      return;
    }
    gradient.template with_type<T>([&](auto const* from) {
      from_owners(unit, first, to,
                  [&](std::int64_t begin, std::span<float> own) { fetch(from + begin, own); });
      std::transform(to.begin(), to.end(), to.begin(),
                     [](float value) { return static_cast<float>(static_cast<T>(value)); });
    });
  }
  /// Reads values in device memory and widens them.
  template <class U>
  void fetch(U const* from, std::span<float> to) {
    std::vector<U> values(to.size());
    stream_->copy(values.data(), from, values.size() * sizeof(U));
    stream_->synchronize();
    std::transform(values.begin(), values.end(), to.begin(),
                   [](U value) { return static_cast<float>(value); });
  }

  /// The fields of a checkpoint, in the order of the units.
  static std::vector<state_field> fields(std::vector<autograd::unit_layout> const& units) {
    std::vector<state_field> all;
    for (auto const& unit : units) {
      auto const prefix = "unit" + std::to_string(unit.id()) + ".";
      auto const elements = static_cast<std::size_t>(unit.elements());
      if (!unit.trainable()) {
        all.push_back({prefix + "weights", elements * sizeof(T), unit.id(), std::nullopt});
        continue;
      }
      for (auto const& [name, part] :
           {std::pair{"master", offload::state_part::master}, std::pair{"m", offload::state_part::m},
            std::pair{"v", offload::state_part::v}}) {
        all.push_back({prefix + name, elements * sizeof(float), unit.id(), part});
      }
    }
    return all;
  }
  /// Reads bytes [offset, offset + size) of a field, gathered from all ranks. Both are multiples of the
  /// number size.
  void read(state_field const& field, std::size_t offset, std::span<std::byte> to) {
    check_piece(field, offset, to.size());
    auto const& unit = at(field.unit);
    if (field.part) {
      from_owners(unit, static_cast<std::int64_t>(offset / sizeof(float)),
                  std::span{reinterpret_cast<float*>(to.data()), to.size() / sizeof(float)},
                  [&](std::int64_t begin, std::span<float> own) {
                    state_->read(field.unit, *field.part, begin, own);
                  });
    } else {
      from_owners(unit, static_cast<std::int64_t>(offset / sizeof(T)),
                  std::span{reinterpret_cast<T*>(to.data()), to.size() / sizeof(T)},
                  [&](std::int64_t begin, std::span<T> own) {
                    stream_->copy(own.data(), store_->weights(field.unit) + begin, own.size_bytes());
                    stream_->synchronize();
                  });
    }
  }
  /// The part of the field that this rank keeps; without ranks, all of it.
  [[nodiscard]] kept_bytes kept_here(state_field const& field) const {
    auto const& unit = at(field.unit);
    auto const number = field.part ? sizeof(float) : sizeof(T);
    auto const own = owned_part(unit, 0, static_cast<std::size_t>(unit.elements()));
    return {static_cast<std::size_t>(own.skip) * number, static_cast<std::size_t>(own.count) * number};
  }
  /// As read(), for bytes that are kept on this rank, without a collective.
  void read_kept(state_field const& field, std::size_t offset, std::span<std::byte> to) {
    check_piece(field, offset, to.size());
    auto const number = field.part ? sizeof(float) : sizeof(T);
    auto const own =
        owned_part(at(field.unit), static_cast<std::int64_t>(offset / number), to.size() / number);
    expect(static_cast<std::size_t>(own.count) * number == to.size(), exit_code::internal, "bytes ", offset,
           " to ", offset + to.size(), " of state '", field.name, "' are another rank's");
    if (field.part) {
      state_->read(field.unit, *field.part, own.begin,
                   {reinterpret_cast<float*>(to.data()), static_cast<std::size_t>(own.count)});
    } else {
      stream_->copy(to.data(), store_->weights(field.unit) + own.begin, to.size());
      stream_->synchronize();
    }
  }
  /// Writes bytes of a field; a rank writes only what it keeps. A written master also sets its working
  /// weight.
  void write(state_field const& field, std::size_t offset, std::span<std::byte const> from) {
    check_piece(field, offset, from.size());
    store_->expect_writes(field.unit);
    auto const& unit = at(field.unit);
    if (field.part) {
      std::span const values{reinterpret_cast<float const*>(from.data()), from.size() / sizeof(float)};
      auto const own = owned_part(unit, static_cast<std::int64_t>(offset / sizeof(float)), values.size());
      state_->write(field.unit, *field.part, own.begin, piece_of(values, own));
    } else {
      std::span const values{reinterpret_cast<T const*>(from.data()), from.size() / sizeof(T)};
      auto const own = owned_part(unit, static_cast<std::int64_t>(offset / sizeof(T)), values.size());
      stream_->copy(store_->weights(field.unit) + own.begin, piece_of(values, own).data(),
                    static_cast<std::size_t>(own.count) * sizeof(T));
      stream_->synchronize();
    }
  }

private:
  static constexpr std::int64_t most_loading_threads = 16;

  /// Elements [first, first + count) of a tensor.
  struct tensor_piece {
    autograd::unit_layout const* unit;
    autograd::tensor_entry const* tensor;
    std::int64_t first;
    std::size_t count;
  };
  /// What load() reads, in pieces of at most 4 MiB.
  [[nodiscard]] std::vector<tensor_piece> pieces_to_load() const {
    constexpr std::int64_t largest = std::int64_t{1} << 20;
    std::vector<tensor_piece> pieces;
    for (auto const& unit : *units_) {
      for (auto const& tensor : unit.tensors()) {
        auto const own = owned_part(unit, tensor.offset, static_cast<std::size_t>(tensor.count()));
        auto const end = own.skip + own.count;
        for (std::int64_t first = own.skip; first < end; first += largest) {
          pieces.push_back({&unit, &tensor, first, static_cast<std::size_t>(std::min(largest, end - first))});
        }
      }
    }
    return pieces;
  }

  [[nodiscard]] autograd::unit_layout const& at(int unit) const {
    return (*units_)[static_cast<std::size_t>(unit)];
  }

  /// This rank's part of elements [first, first + count) of a unit.
  [[nodiscard]] zero::owned_range owned_part(autograd::unit_layout const& unit, std::int64_t first,
                                             std::size_t count) const {
    auto const n = static_cast<std::int64_t>(count);
    return shares_ ? zero::owned_part(unit, ranks_.rank(), ranks_.ranks(), first, n)
                   : zero::owned_range{first, 0, n};
  }
  template <class Value>
  static std::span<Value> piece_of(std::span<Value> values, zero::owned_range const& own) {
    return values.subspan(static_cast<std::size_t>(own.skip), static_cast<std::size_t>(own.count));
  }
  /// Gathers elements [first, first + size) of a unit on every rank. read(begin, to) reads a rank's own part.
  template <class Value, class Read>
  void from_owners(autograd::unit_layout const& unit, std::int64_t first, std::span<Value> to, Read&& read) {
    auto const own = owned_part(unit, first, to.size());
    if (own.count > 0) {
      read(own.begin, piece_of(to, own));
    }
    if (!shares_) {
      return;
    }
    auto const part = [&](int r) {
      return zero::owned_part(unit, r, ranks_.ranks(), first, static_cast<std::int64_t>(to.size()));
    };
    std::size_t most = 0;
    for (int r = 0; r < ranks_.ranks(); ++r) {
      most = std::max(most, static_cast<std::size_t>(part(r).count));
    }
    std::vector<Value> mine(most);
    std::vector<Value> all(most * static_cast<std::size_t>(ranks_.ranks()));
    std::ranges::copy(piece_of(to, own), mine.begin());
    ranks_.gather(mine.data(), all.data(), most * sizeof(Value));
    for (int r = 0; r < ranks_.ranks(); ++r) {
      std::copy_n(all.data() + static_cast<std::size_t>(r) * most, part(r).count,
                  piece_of(to, part(r)).begin());
    }
  }

  void put(autograd::unit_layout const& unit, std::int64_t first, std::span<float const> values) {
    auto const own = owned_part(unit, first, values.size());
    values = piece_of(values, own);
    if (unit.trainable()) {
      state_->write(unit.id(), offload::state_part::master, own.begin, values);
      return;
    }
    std::vector<T> rounded(values.size());
    std::transform(values.begin(), values.end(), rounded.begin(), [](float value) {
      if constexpr (std::is_same_v<T, bfloat16>) {
        return bfloat16::of_master(value);
      } else {
        return static_cast<T>(value);
      }
    });
    stream_->copy(store_->weights(unit.id()) + own.begin, rounded.data(), rounded.size() * sizeof(T));
    stream_->synchronize();
  }

  void expect_inside(autograd::unit_layout const& unit, std::int64_t first, std::size_t size) const {
    expect(0 <= unit.id() && unit.id() < std::ssize(*units_) && 0 <= first && first <= unit.elements() &&
               size <= static_cast<std::size_t>(unit.elements() - first),
           exit_code::bad_input, "elements ", first, " to ", first + static_cast<std::int64_t>(size),
           " of unit ", unit.id(), ", which has ", unit.elements(),
           "; expected a part of a unit of the model");
  }

  static void check_piece(state_field const& field, std::size_t offset, std::size_t size) {
    auto const number = field.part ? sizeof(float) : sizeof(T);
    expect(
        offset <= field.bytes && size <= field.bytes - offset && offset % number == 0 && size % number == 0,
        exit_code::bad_input, "bytes ", offset, " to ", offset + size, " of state '", field.name, "' of ",
        field.bytes, ": expected whole numbers inside it");
  }

  typename D::stream* stream_;
  std::vector<autograd::unit_layout> const* units_;
  Store* store_;
  State* state_;
  comm::host_group ranks_;
  bool shares_;
};

}  // namespace superoffload::train
