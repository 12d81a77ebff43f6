// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/precision.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/data/batch.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/offload/none.hpp>
#include <superoffload/optim/adamw.hpp>
#include <superoffload/optim/clip.hpp>
#include <superoffload/train/batch_staging.hpp>
#include <superoffload/train/plan.hpp>
#include <superoffload/train/recompute.hpp>
#include <superoffload/train/tensor_reader.hpp>
#include <superoffload/zero/resident.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace superoffload::train {

/// What an engine is told at run time.
struct engine_options {
  optim::adamw_settings adamw{};
  double max_grad_norm = 1.0;      ///< 0: no clipping
  std::int64_t max_rows = 0;       ///< tokens of the largest micro-batch, padding included
  std::int64_t max_positions = 0;  ///< tokens of the longest document
  bool accumulates = false;        ///< will a step have several micro-batches?
  bool recompute_blocks = false;   ///< read by recompute::configured
  /// Which tensors train, and which of those decay; all of both when empty.
  std::function<bool(autograd::tensor_entry const&)> trainable{};
  std::function<bool(autograd::tensor_entry const&)> decays{};
};

/// What step() did.
struct step_result {
  double grad_norm = 0.0;  ///< before clipping
  float factor = 1.0F;     ///< the clip factor that was applied
  bool accepted = true;    ///< false: the gradient was not finite, or there was no label; nothing was changed
};

/// A model with its optimizer on one device: forward, backward, step.
///
/// A step is begin_step(N, micro_batches), then per micro-batch forward() and backward(), then step(rate). N
/// is the number of label tokens of the whole step: every loss and gradient is that of the sum over all
/// targets / N. All calls from one thread. Errors of the device surface at the next call that waits.
template <class Architecture, class Device, class Precision, class Sharding, class Offload, class Recompute>
class basic_engine {
public:
  using device_type = Device;
  using element_type = typename Precision::element;
  using T = element_type;
  using store_type = typename Sharding::template store<Device, T>;
  using state_type = typename Offload::template state<Device, T>;

  /// Lays the model out and computes the plan; allocates nothing on the device yet.
  basic_engine(Device& device, model::config const& config, engine_options options)
      : device_{&device}, model_{config}, options_{std::move(options)} {
    optim::check(options_.adamw);
    expect(config.model_type == Architecture::model_type(), exit_code::bad_input, "this program trains '",
           Architecture::model_type(), "', but the configuration is of type '", config.model_type, "'");
    expect(options_.max_rows > 0 && options_.max_positions > 0, exit_code::bad_input,
           "the largest micro-batch must have at least one token");
    for (auto& unit : model_.units()) {
      for (auto& tensor : unit.tensors()) {
        tensor.trainable = !options_.trainable || options_.trainable(tensor);
        tensor.decays = !options_.decays || options_.decays(tensor);
      }
    }
    model_.apply_freeze();
    make_plan();
  }
  basic_engine(basic_engine const&) = delete;
  basic_engine& operator=(basic_engine const&) = delete;
  ~basic_engine() {
    // Queued work uses the buffers: it has to be done before they go.
    try {
      if (stream_) {
        stream_->synchronize();
      }
    } catch (...) {  // reported by the call that waited, or too late to be
    }
  }

  [[nodiscard]] train::plan const& plan() const noexcept { return plan_; }
  [[nodiscard]] Architecture const& model() const noexcept { return model_; }
  [[nodiscard]] engine_options const& options() const noexcept { return options_; }

  /// Changes engine_options::recompute_blocks and the plan with it. Before initialize() only.
  void recompute_blocks(bool wanted) {
    options_.recompute_blocks = wanted;
    make_plan();
  }

  /// Allocates what the plan says and fills masters and weights from `read`.
  void initialize(tensor_reader const& read) {
    stream_.emplace(*device_);
    auto const& units = model_.units();
    store_.emplace(*device_, *stream_, units, options_.accumulates,
                   zero::gradient_sink{this, [](void* self, int unit, void const* gradient) {
                                         static_cast<basic_engine*>(self)->state_->ready(
                                             unit, static_cast<T const*>(gradient));
                                       }});
    state_.emplace(*device_, *stream_, units, [this](int unit) { return store_->weights(unit); });
    tables_.emplace(model_.template make_tables<Device, T>(*device_, *stream_, options_.max_positions));
    staging_.emplace(*device_, *stream_, options_.max_rows);
    activations_ = buffer<Device>{*device_, plan_.activations};
    tape_.emplace(*stream_, autograd::activation_arena{activations_.data(), activations_.bytes()},
                  autograd::unit_access::to(*store_), static_cast<int>(units.size()));
    loss_ = buffer<Device>{*device_, sizeof(double), memory::host};
    load(read);
  }

  /// Fills masters and weights from `read`, moments stay.
  void load(tensor_reader const& read) {
    std::vector<float> chunk(std::size_t{1} << 20);
    for (auto const& unit : model_.units()) {
      for (auto const& tensor : unit.tensors()) {
        for (std::int64_t first = 0; first < tensor.count();
             first += static_cast<std::int64_t>(chunk.size())) {
          auto const n =
              std::min<std::int64_t>(static_cast<std::int64_t>(chunk.size()), tensor.count() - first);
          std::span<float> const to{chunk.data(), static_cast<std::size_t>(n)};
          read(tensor.name, first, to);
          check_range(tensor, to);
          put(unit, tensor.offset + first, to);
        }
      }
    }
    state_->emit_weights();
    stream_->synchronize();
  }

  /// Starts a step of `micro_batches` micro-batches with `label_tokens` targets in all.
  void begin_step(std::int64_t label_tokens, std::int64_t micro_batches = 1) {
    expect(micro_batches == 1 || options_.accumulates, exit_code::internal,
           "engine_options::accumulates must be set for steps of several micro-batches");
    label_tokens_ = label_tokens;
    micro_batches_ = micro_batches;
    micro_batch_ = 0;
  }

  /// The loss of a micro-batch: the sum over its targets, divided by the step's label tokens. Without
  /// begin_step, the batch is the whole step.
  double forward(data::batch const& batch) {
    if (micro_batch_ == micro_batches_) {
      begin_step(batch.label_tokens());
    }
    bool const first = micro_batch_ == 0;
    store_->set_micro_batch(first, micro_batch_ + 1 == micro_batches_);
    for (auto const& unit : model_.units()) {
      if (first || store_->restarts_each_micro_batch(unit.id())) {
        tape_->forget_gradients(unit.id());
      }
    }
    return run_forward(batch, label_tokens_, true) /
           static_cast<double>(std::max<std::int64_t>(1, label_tokens_));
  }

  /// Queues the gradients of the micro-batch that forward() has seen.
  void backward() {
    tape_->backward();
    ++micro_batch_;
  }

  /// Judges the step's gradient and, when it is finite, queues the update with learning rate `rate`.
  step_result step(double rate) {
    expect(micro_batch_ == micro_batches_, exit_code::internal,
           "step() before the backward of every micro-batch");
    auto const verdict = state_->judge();
    step_result result{.grad_norm = verdict.norm,
                       .factor = optim::clip_factor(verdict.norm, options_.max_grad_norm),
                       .accepted = verdict.finite && label_tokens_ > 0};
    if (result.accepted) {
      state_->update(options_.adamw, rate, ++accepted_steps_, result.factor);
    }
    return result;
  }

  /// The sum of the token losses of a batch, nothing recorded.
  double evaluate(data::batch const& batch) { return run_forward(batch, batch.label_tokens(), false); }

  /// The logits of every row, [rows, vocabulary]: for inspection, of a batch small enough to have them all in
  /// memory.
  std::vector<float> logits(data::batch const& batch) {
    autograd::tape<Device, T> dry{static_cast<int>(model_.units().size())};
    auto const compute = [&](auto& tape, nn::batch const& b) {
      tape.reset(false);
      return model_.template logits<Device, T>(tape, b, &*tables_);
    };
    auto const& staged = staging_->put(batch, 1);
    compute(dry, staged);
    buffer<Device> const memory{*device_, dry.peak_bytes()};
    autograd::tape<Device, T> tape{*stream_, autograd::activation_arena{memory.data(), memory.bytes()},
                                   autograd::unit_access::to(*store_),
                                   static_cast<int>(model_.units().size())};
    auto const result = compute(tape, staged);
    std::vector<float> values(static_cast<std::size_t>(result.count()));
    fetch_weights(result.value(), values);
    return values;
  }

  /// Waits for everything queued.
  void synchronize() { stream_->synchronize(); }

  /// Steps that changed the weights, the `t` of the bias corrections.
  [[nodiscard]] std::int64_t accepted_steps() const noexcept { return accepted_steps_; }
  void set_accepted_steps(std::int64_t steps) noexcept { accepted_steps_ = steps; }

  /// Reads a tensor's weights, master precision where there is one.
  void read_weights(autograd::unit_layout const& unit, std::int64_t first, std::span<float> to) {
    auto const master = state_->at(unit.id()).master;
    if (master != nullptr) {
      fetch(to.data(), master + first, to.size());
    } else {
      fetch_weights(store_->weights(unit.id()) + first, to);
    }
  }

  /// The final gradient of the last step, widened; zeros for a unit that is frozen as a whole.
  void read_gradient(autograd::unit_layout const& unit, std::int64_t first, std::span<float> to) {
    auto const* const gradient = store_->gradient(unit.id());
    if (gradient == nullptr) {
      std::fill(to.begin(), to.end(), 0.0F);
    } else {
      fetch_weights(gradient + first, to);
    }
  }

  /// A named piece of training state in device memory. Saved and loaded as bytes; the engine must be
  /// synchronized.
  struct state_blob {
    std::string name;
    std::byte* data;
    std::size_t bytes;
  };
  /// Everything that a checkpoint must hold besides accepted_steps(): per unit weights or master, m and v.
  [[nodiscard]] std::vector<state_blob> state_blobs() {
    std::vector<state_blob> blobs;
    auto const add = [&](std::string name, auto* data, std::int64_t n) {
      blobs.push_back(
          {std::move(name), reinterpret_cast<std::byte*>(data), static_cast<std::size_t>(n) * sizeof(*data)});
    };
    for (auto const& unit : model_.units()) {
      auto const prefix = "unit" + std::to_string(unit.id()) + ".";
      auto const state = state_->at(unit.id());
      if (state.master == nullptr) {
        add(prefix + "weights", store_->weights(unit.id()), unit.elements());
        continue;
      }
      add(prefix + "master", state.master, unit.elements());
      add(prefix + "m", state.m, unit.elements());
      add(prefix + "v", state.v, unit.elements());
    }
    return blobs;
  }
  void read_state(state_blob const& blob, std::size_t offset, std::span<std::byte> to) {
    stream_->copy(to.data(), blob.data + offset, to.size());
    stream_->synchronize();
  }
  void write_state(state_blob const& blob, std::size_t offset, std::span<std::byte const> from) {
    stream_->copy(blob.data + offset, from.data(), from.size());
    stream_->synchronize();
  }
  /// After the last write_state: makes the working weights from the masters.
  void state_written() {
    state_->emit_weights();
    stream_->synchronize();
  }

private:
  static constexpr bool recomputes(engine_options const& options) {
    return Recompute::blocks(options.recompute_blocks);
  }

  void make_plan() {
    auto const& units = model_.units();
    plan_ = {};
    for (auto const& unit : units) {
      for (auto const& tensor : unit.tensors()) {
        plan_.parameters += tensor.count();
        plan_.trainable_parameters += tensor.trainable ? tensor.count() : 0;
      }
    }
    auto const store = store_type::bytes(units, options_.accumulates);
    plan_.weights = store.weights;
    plan_.gradients = store.gradients;
    plan_.optimizer_state = state_type::bytes(units);
    plan_.batches = batch_staging<Device>::device_bytes(options_.max_rows) +
                    model_.template table_bytes<T>(options_.max_positions);
    plan_.recompute_blocks = recomputes(options_);
    plan_.activations = dry_peak();
  }

  /// Runs the largest forward and backward without memory.
  [[nodiscard]] std::size_t dry_peak() const {
    autograd::tape<Device, T> dry{static_cast<int>(model_.units().size())};
    nn::batch largest;
    largest.rows = options_.max_rows;
    largest.documents = 1;
    largest.longest = static_cast<std::int32_t>(options_.max_positions);
    typename Architecture::template tables<Device, T> const no_tables;
    dry.reset();
    model_.template loss<Device, T>(dry, largest, &no_tables, recomputes(options_));
    dry.backward();
    return dry.peak_bytes();
  }

  double run_forward(data::batch const& batch, std::int64_t divisor, bool with_backward) {
    expect(batch.rows() <= options_.max_rows, exit_code::bad_input, "a micro-batch of ", batch.rows(),
           " tokens, but engine_options::max_rows is ", options_.max_rows);
    tape_->reset(with_backward);
    auto const& staged = staging_->put(batch, divisor);
    expect(staged.longest <= options_.max_positions, exit_code::bad_input, "a document of ", staged.longest,
           " tokens, but engine_options::max_positions is ", options_.max_positions);
    auto const loss = model_.template loss<Device, T>(*tape_, staged, &*tables_, recomputes(options_));
    stream_->copy(loss_.data(), loss.total, sizeof(double));
    stream_->synchronize();
    return *loss_.template as<double>();
  }

  static void check_range(autograd::tensor_entry const& tensor, std::span<float const> values) {
    // Larger magnitudes would not survive the rounding to a working weight.
    for (auto const value : values) {
      expect(std::abs(value) < 0x1.ffp127F, exit_code::bad_input, "tensor '", tensor.name,
             "' holds a value that is not finite or too large for bfloat16; expected finite weights");
    }
  }

  void put(autograd::unit_layout const& unit, std::int64_t first, std::span<float const> values) {
    auto const master = state_->at(unit.id()).master;
    if (master != nullptr) {
      stream_->copy(master + first, values.data(), values.size_bytes());
      stream_->synchronize();
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
    stream_->copy(store_->weights(unit.id()) + first, rounded.data(), rounded.size() * sizeof(T));
    stream_->synchronize();
  }

  void fetch(void* to, void const* from, std::size_t count) {
    stream_->copy(to, from, count * sizeof(float));
    stream_->synchronize();
  }
  void fetch_weights(T const* from, std::span<float> to) {
    std::vector<T> values(to.size());
    stream_->copy(values.data(), from, values.size() * sizeof(T));
    stream_->synchronize();
    std::transform(values.begin(), values.end(), to.begin(),
                   [](T value) { return static_cast<float>(value); });
  }

  Device* device_;
  Architecture model_;
  engine_options options_;
  train::plan plan_;

  std::optional<typename Device::stream> stream_;
  std::optional<store_type> store_;
  std::optional<state_type> state_;
  std::optional<typename Architecture::template tables<Device, T>> tables_;
  std::optional<batch_staging<Device>> staging_;
  buffer<Device> activations_, loss_;
  std::optional<autograd::tape<Device, T>> tape_;

  std::int64_t label_tokens_ = 0;
  std::int64_t micro_batches_ = 0;
  std::int64_t micro_batch_ = 0;
  std::int64_t accepted_steps_ = 0;
};

namespace detail {
template <class... Policies>
struct engine_of {
  static_assert((policy<Policies> && ...),
                "every argument of train::engine is a policy: a type with policy_category");
  static_assert(count_of<category::architecture, Policies...> == 1,
                "train::engine needs exactly one model architecture");
  static_assert(count_of<category::device, Policies...> <= 1, "train::engine takes at most one device");
  static_assert(count_of<category::precision, Policies...> <= 1, "train::engine takes at most one precision");
  static_assert(count_of<category::sharding, Policies...> <= 1,
                "train::engine takes at most one sharding policy");
  static_assert(count_of<category::offload, Policies...> <= 1,
                "train::engine takes at most one offload policy");
  static_assert(count_of<category::recompute, Policies...> <= 1,
                "train::engine takes at most one recompute policy");
  using type = basic_engine<pick<category::architecture, void, Policies...>,  //
                            pick<category::device, cpu::device, Policies...>,
                            pick<category::precision, precision::fp32, Policies...>,
                            pick<category::sharding, zero::resident, Policies...>,
                            pick<category::offload, offload::none, Policies...>,
                            pick<category::recompute, recompute::configured, Policies...>>;
};
}  // namespace detail

/// The engine of the given policies, in any order: the same policies name the same type. Defaults:
/// cpu::device, precision::fp32, zero::resident, offload::none, recompute::configured.
template <class... Policies>
using engine = typename detail::engine_of<Policies...>::type;

}  // namespace superoffload::train
