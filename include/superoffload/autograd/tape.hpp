// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/activation_checkpointing.hpp>
#include <superoffload/autograd/activation_memory.hpp>
#include <superoffload/autograd/arena.hpp>
#include <superoffload/autograd/entered_units.hpp>
#include <superoffload/autograd/offloaded_activations.hpp>
#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/device.hpp>
#include <superoffload/core/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

namespace superoffload::autograd {

template <device_policy D, element T>
class tape;

namespace detail {
/// Outside the tape, whose member `launch` would hide the device's.
template <class Stream, class Arguments>
void launch_on(Stream& stream, Arguments const& arguments) {
  launch(stream, arguments);
}
template <class Device, class Arguments>
std::size_t scratch_bytes_on(Device const& device, Arguments const& arguments) {
  return scratch_bytes(device, arguments);
}

template <class Function>
constexpr bool in_place() {
  if constexpr (requires { Function::in_place; }) {
    return Function::in_place;
  } else {
    return false;
  }
}
/// The work of running a function whose results have `bytes` bytes.
template <class Function>
work work_of(Function const& function, std::size_t bytes) {
  if constexpr (requires { function.forward_work(); }) {
    return function.forward_work();
  } else {
    return {.bytes = 2.0 * static_cast<double>(bytes)};
  }
}
/// What the function's backward runs again of its forward.
template <class Function>
work again_of(Function const& function) {
  if constexpr (requires { function.again(); }) {
    return function.again();
  } else {
    return {};
  }
}
}  // namespace detail

/// A matrix [rows, columns] on the tape: its value and, after its first writer in the backward, its gradient.
/// A handle of two pointers; the tape owns what they point to.
template <device_policy D, element T>
class variable {
public:
  /// What all copies of a handle share. It lives until the tape's reset, or, without a backward, its block's
  /// end.
  struct contents {
    T* value;           ///< [rows, columns] in device memory; of a dry tape not to be dereferenced
    T* gradient;        ///< [rows, columns], null until its first writer in the backward
    std::int64_t rows,  ///< tokens, mostly
        columns;        ///< elements of a row
    bool kept = true;   ///< from forward to backward
  };

  variable() = default;
  variable(tape<D, T>& owner, contents* what) : tape_{&owner}, contents_{what} {}  ///< for tapes

  [[nodiscard]] tape<D, T>& on() const noexcept { return *tape_; }      ///< the tape that owns it
  [[nodiscard]] T* value() const noexcept { return contents_->value; }  ///< [rows, columns], device memory
  /// Null until its first writer in the backward.
  [[nodiscard]] T* gradient() const noexcept { return contents_->gradient; }
  [[nodiscard]] std::int64_t rows() const noexcept { return contents_->rows; }  ///< of the matrix
  /// Elements of a row; rows lie one behind the other.
  [[nodiscard]] std::int64_t columns() const noexcept { return contents_->columns; }
  [[nodiscard]] std::int64_t count() const noexcept { return rows() * columns(); }  ///< elements

  /// Does its value stay from forward to backward, or is it recomputed?
  [[nodiscard]] bool kept() const noexcept { return contents_->kept; }
  /// Set by the tape when the function has run.
  void kept(bool does) const noexcept { contents_->kept = does; }
  /// Takes over the value of another, in every copy of this handle.
  void adopt_value(variable const& other) const noexcept { contents_->value = other.value(); }

  /// Makes `storage` the gradient. For a function that no longer needs its own gradient's memory.
  void adopt_gradient(T* storage) const noexcept { contents_->gradient = storage; }

private:
  tape<D, T>* tape_ = nullptr;
  contents* contents_ = nullptr;
};

/// Where a function writes a gradient: of a variable, or of a parameter, where G may be wide<T>.
template <element G>
struct gradient_destination {
  G* gradient;      ///< [rows, columns]; null for a parameter on a dry tape
  bool accumulate;  ///< false: overwrite it, as its first writer
};

/// Records differentiable functions in forward and runs them in reverse in backward.
///
/// A function is a struct with `forward(tape&)` and `backward(tape&)`. Its members, which are trivially
/// destructible, hold what backward needs. run(function) calls forward and, while recording, keeps the
/// struct. All device work goes to one stream by `launch`. Memory comes from one stack arena. On a dry tape,
/// which has no memory, the same program launches nothing, touches no store and gives the peak.
///
/// A function inside a block need not keep its results (activation_checkpointing). They then live until the
/// end of the block's forward, and the block's backward begins by running such functions again in their
/// order. What blocks keep may also go to host memory, and come back ahead of their backward
/// (offloaded_activations). Forward must therefore give the same results from the same inputs. A function
/// that works in place declares `static constexpr bool in_place = true` and is kept or recomputed with its
/// input x. `work forward_work() const` is the work of running it; by default, twice the bytes of its
/// results. `work again() const` is what its own backward runs again of that; by default nothing.
template <device_policy D, element T>
class tape {
public:
  using device_type = D;                 ///< where the functions run
  using element_type = T;                ///< of activations and weights
  using variable_type = variable<D, T>;  ///< what functions read and return

  /// A tape that runs: `memory` is the activation arena, `access` reaches the weights, `offloaded` moves
  /// activations between device and host; without it, activation_checkpointing may not offload any.
  tape(D const& device, typename D::stream& stream, activation_arena memory, unit_access access, int units,
       offloaded_activations<D>* offloaded = nullptr)
      : device_{&device}, stream_{&stream}, memory_{memory, offloaded}, units_{units, access} {}
  tape(D const& device, int units) : device_{&device}, units_{units} {}  ///< dry
  tape(tape const&) = delete;
  tape& operator=(tape const&) = delete;

  [[nodiscard]] bool dry() const noexcept { return memory_.dry(); }     ///< launches and copies do nothing
  [[nodiscard]] bool recording() const noexcept { return recording_; }  ///< a backward is to follow
  [[nodiscard]] std::size_t peak_bytes() const noexcept { return memory_.peak_bytes(); }  ///< in use at once

  /// Sets what blocks keep from now on; null: everything. Must outlive its use, and must not change between a
  /// forward and its backward.
  void retain(activation_checkpointing const* what) noexcept { checkpointing_ = what; }
  /// Lists the functions that run inside blocks, in order; null: does not.
  void list_activations(std::vector<activation>* list) noexcept { activations_ = list; }

  /// Drops everything recorded. Without backward the next forward keeps nothing but its result.
  void reset(bool with_backward = true) {
    nodes_.release({});
    last_ = nullptr;
    block_ = {};
    recording_ = with_backward;
    units_.begin_run(with_backward);
    memory_.begin_run(with_backward && checkpointing_ != nullptr ? checkpointing_->buffers()
                                                                 : activation_buffers{});
  }

  /// The next writer of each parameter's gradient overwrites it; later writers add to it.
  void forget_gradients() { units_.forget_gradients(); }

  // What functions use
  // -----------------------------------------------------------------------------------------------

  /// Queues the kernel on the tape's stream.
  template <class Arguments>
  void launch(Arguments const& arguments) {
    static_assert(launches<D, Arguments>,
                  "this device has no kernel for these arguments and this element type");
    if (!dry()) {
      detail::launch_on(*stream_, arguments);
    }
  }
  /// The same for a kernel with scratch memory, which is free for the next launch.
  template <class Arguments>
  void launch_with_scratch(Arguments arguments) {
    auto const before = mark();
    auto const bytes = detail::scratch_bytes_on(*device_, arguments);
    arguments.scratch = {allocate<std::byte>(static_cast<std::int64_t>(bytes)), bytes};
    launch(arguments);
    release(before);
  }
  /// Queued on the stream; between host and device memory as well.
  void copy(void* to, void const* from, std::size_t bytes) {
    if (!dry()) {
      stream_->copy(to, from, bytes);
    }
  }
  /// Queued on the stream.
  void fill_zero(void* to, std::size_t bytes) {
    if (!dry()) {
      stream_->fill_zero(to, bytes);
    }
  }

  /// Part i of `from` goes to the i-th of the ranks that share the micro-batch's rows, and its part for this
  /// rank to part i of `to`: [ranks, bytes] each. In the order of the stream.
  void exchange(void const* from, void* to, std::size_t bytes) {
    if (!dry()) {
      units_.exchange(from, to, bytes);
    }
  }

  /// Device memory until the end of the running block, not initialised.
  template <class U>
  U* allocate(std::int64_t count) {
    return memory_.template allocate<U>(count);
  }
  /// @{
  /// Scratch of one function: memory allocated since mark() is free after release() of what it returned.
  [[nodiscard]] auto mark() noexcept { return memory_.mark(); }
  void release(typename activation_memory<D>::scratch_begin const& begin) noexcept { memory_.release(begin); }
  /// @}

  /// A new variable, its value not initialised.
  variable_type make(std::int64_t rows, std::int64_t columns) {
    return make_at(allocate<T>(rows * columns), rows, columns);
  }
  /// A variable in memory that exists already, for functions that work in place.
  variable_type make_at(T* value, std::int64_t rows, std::int64_t columns) {
    return {*this, nodes_.template make<typename variable_type::contents>(value, nullptr, rows, columns)};
  }

  using destination = gradient_destination<T>;  ///< of a variable's gradient
  /// The first call in a backward allocates the gradient.
  destination gradient_of(variable_type x) {
    if (x.gradient() != nullptr) {
      return {x.gradient(), true};
    }
    x.adopt_gradient(allocate<T>(x.count()));
    return {x.gradient(), false};
  }

  /// [rows, columns] of the parameter, whose unit is entered; null on a dry tape.
  T const* weights(parameter const& p) const {
    if (dry()) {
      return nullptr;
    }
    return static_cast<T const*>(units_.buffers(p).weights) + p.offset;
  }

  /// Counts as a write. The parameter's unit is entered, for a backward or both.
  template <class G>
  gradient_destination<G> gradient_of(parameter const& p) {
    bool const accumulate = units_.written(p);
    if (dry()) {
      return {nullptr, accumulate};
    }
    return {static_cast<G*>(units_.buffers(p).gradient) + p.offset, accumulate};
  }
  /// Calls f with a value of the element type of the parameter's gradient.
  template <class F>
  void with_gradient_type(parameter const& p, F&& f) const {
    if (!dry() && units_.buffers(p).gradient_is_wide) {
      f(wide<T>{});
    } else {
      f(T{});
    }
  }

  // What models use
  // --------------------------------------------------------------------------------------------------

  /// Runs a function now and keeps it for the backward. \returns its result, the member `y`.
  template <class Function>
  auto run(Function function) {
    if constexpr (std::is_same_v<decltype(function.y), variable_type>) {
      if (recording_ && block_.unit >= 0) {
        return run_in_block(function);
      }
    }
    function.forward(*this);
    if (recording_) {
      record(function);
    }
    return function.y;
  }

  /// Runs body() with the given units acquired, at most two. They are acquired again around its backward.
  template <class Body>
  auto scope(std::initializer_list<int> units, pass p, Body&& body) {
    unit_list const list{units};
    scope_begin* const begin = recording_ ? record(scope_begin{list}) : nullptr;
    for (int const u : list) { units_.enter(u, p); }
    auto const result = body();
    for (int const u : list) { units_.leave(u, p); }
    if (begin != nullptr) {
      for (int const u : list) { units_.record_use(u); }
      record(scope_end{begin});
    }
    return result;
  }

  /// y = block(x, arguments...) with `unit` acquired. The block must outlive the call; what its functions
  /// point to must outlive the backward.
  template <class Block, class... Arguments>
  variable_type unit(int unit, Block const& block, variable_type x, Arguments const&... arguments) {
    if (!recording_) {  // no backward: the block's memory is free when it has run
      return scope({unit}, pass::forward, [&] { return condensed(block, x, arguments...); });
    }
    block_ = {.unit = unit};
    int const number = memory_.enter_forward();
    auto const y = scope({unit}, pass::forward, [&] { return block(x, arguments...); });
    expect(x.kept() && y.kept(), exit_code::internal, "the result of the block of unit ", unit,
           " is needed by the next, but activation checkpointing drops it");
    if (activations_ != nullptr) {
      activations_->back().result = true;
    }
    memory_.leave_forward(number, unit);
    auto& end = static_cast<node_of<scope_end>*>(last_)->function;
    end.recompute = block_.first_dropped;
    end.begin->block = {x, y, number};
    block_ = {};
    return y;
  }

  /// Runs everything recorded in reverse. After the last use of a unit, the store's `reduce` gets its
  /// gradient.
  void backward() {
    recording_ = false;
    while (last_ != nullptr) {
      node* const current = last_;
      last_ = current->previous;
      current->backward(current, *this);
    }
  }

private:
  struct node {
    node* previous;
    void (*backward)(node*, tape&);
  };
  template <class Function>
  struct node_of : node {
    Function function;
  };

  template <class Function>
  Function* record(Function const& function) {
    auto* const added = nodes_.make<node_of<Function>>(
        node{last_, [](node* self, tape& t) { static_cast<node_of<Function>*>(self)->function.backward(t); }},
        function);
    last_ = added;
    return &added->function;
  }

  /// A function whose results are recomputed when its block's backward begins.
  struct dropped {
    node* function;
    void (*run_again)(node*, tape&);
    dropped* next = nullptr;
  };

  /// The block whose forward runs.
  struct current_block {
    int unit = -1;
    int functions = 0;  // so far
    dropped* first_dropped = nullptr;
    dropped* last_dropped = nullptr;
  };

  template <class Function>
  variable_type run_in_block(Function& function) {
    bool keeps = true;
    int index = 0;
    if constexpr (detail::in_place<Function>()) {
      keeps = function.x.kept();
    } else {
      index = block_.functions++;
      keeps = checkpointing_ == nullptr || checkpointing_->keeps(block_.unit, index);
    }
    auto const bytes = memory_.allocate_in_block(keeps, [&] { function.forward(*this); });
    function.y.kept(keeps);
    if constexpr (!detail::in_place<Function>()) {
      if (activations_ != nullptr) {
        activations_->push_back({.unit = block_.unit,
                                 .index = index,
                                 .bytes = bytes,
                                 .recompute = detail::work_of(function, bytes),
                                 .again = detail::again_of(function)});
      }
    }
    record(function);
    if (!keeps) {
      drop<Function>(last_);
    }
    return function.y;
  }

  template <class Function>
  void drop(node* what) {
    auto* const added = nodes_.make<dropped>(what, [](node* self, tape& t) {
      auto& function = static_cast<node_of<Function>*>(self)->function;
      auto const result = function.y;
      function.forward(t);
      result.adopt_value(function.y);
      function.y = result;
    });
    (block_.last_dropped == nullptr ? block_.first_dropped : block_.last_dropped->next) = added;
    block_.last_dropped = added;
  }

  // Scopes
  // -----------------------------------------------------------------------------------------------------------

  /// Recorded first, so its backward runs last. With a block it frees what the block's backward allocated.
  struct scope_begin {
    /// A block and its ends.
    struct framed_block {
      variable_type x,  ///< its input
          y;            ///< its result
      int number;       ///< in the order of the forward
    };
    unit_list units;
    std::optional<framed_block> block{};
    std::size_t mark = 0;

    void backward(tape& t) {
      for (int const u : units) { t.units_.leave_backward(u); }
      if (block) {
        t.keep_gradient(block->x, block->y, mark);
        t.memory_.leave_backward(block->number, mark);
      }
    }
  };
  struct scope_end {
    scope_begin* begin;
    dropped* recompute = nullptr;

    void backward(tape& t) {
      for (int const u : begin->units) { t.units_.enter(u, pass::backward); }
      if (begin->block) {
        begin->mark = t.memory_.enter_backward(begin->block->number);
      }
      for (auto* d = recompute; d != nullptr; d = d->next) { d->run_again(d->function, t); }
    }
  };

  /// Runs a block without a backward: its result moves to the begin of its memory, and the rest is free.
  template <class Block, class... Arguments>
  variable_type condensed(Block const& block, variable_type x, Arguments const&... arguments) {
    variable_type const y = make(x.rows(), x.columns());
    auto const begin = mark();
    auto const nodes = nodes_.mark();
    variable_type const inside = block(x, arguments...);
    copy(y.value(), inside.value(), static_cast<std::size_t>(y.count()) * sizeof(T));
    nodes_.release(nodes);
    release(begin);
    return y;
  }

  /// Call before the block's memory is freed: moves the gradient of x to the memory of y's gradient, which is
  /// no longer needed.
  void keep_gradient(variable_type x, variable_type y, std::size_t mark) {
    if (!memory_.ends_with_block(x.gradient(), mark)) {
      return;
    }
    copy(y.gradient(), x.gradient(), static_cast<std::size_t>(x.count()) * sizeof(T));
    x.adopt_gradient(y.gradient());
  }

  D const* device_;
  typename D::stream* stream_ = nullptr;
  activation_memory<D> memory_;
  node_arena nodes_;
  entered_units units_;
  activation_checkpointing const* checkpointing_ = nullptr;
  std::vector<activation>* activations_ = nullptr;
  node* last_ = nullptr;
  current_block block_;
  bool recording_ = true;
};

}  // namespace superoffload::autograd
