// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/tape.hpp>
#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/single.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/precision.hpp>
#include <superoffload/core/profile.hpp>
#include <superoffload/core/range.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/kernels.hpp>
#include <superoffload/data/batch.hpp>
#include <superoffload/model/architecture.hpp>
#include <superoffload/offload/arrangement.hpp>
#include <superoffload/offload/none.hpp>
#include <superoffload/offload/step_record.hpp>
#include <superoffload/optim/adamw.hpp>
#include <superoffload/optim/clip.hpp>
#include <superoffload/train/batch_staging.hpp>
#include <superoffload/train/dry_pass.hpp>
#include <superoffload/train/lay_out.hpp>
#include <superoffload/train/plan.hpp>
#include <superoffload/train/recompute.hpp>
#include <superoffload/train/tensor_reader.hpp>
#include <superoffload/zero/flow.hpp>
#include <superoffload/zero/resident.hpp>
#include <superoffload/zero/sharded.hpp>
#include <superoffload/zero/unit_store.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace superoffload::train {

/// What an engine is told at run time.
struct engine_options {
  optim::adamw_settings adamw{};
  double max_grad_norm = 1.0;      ///< 0: no clipping
  std::int64_t max_rows = 0;       ///< tokens of the largest micro-batch, padding included
  std::int64_t max_positions = 0;  ///< tokens of the longest document
  bool accumulates = false;        ///< will a step have several micro-batches?
  recompute::choice recompute = recompute::choice::none;  ///< read by recompute::configured
  /// Of the optimizer's state and of what flows, read by offload::super and zero::streamed; its rooms by
  /// zero::sharded.
  offload::arrangement arrangement{};
  tensor_choice trainable{}, decays{};  ///< which tensors train, and which of those decay
  bool records = false;                 ///< note what works when: basic_engine::times()
};

/// What step() did.
struct step_result {
  double grad_norm = 0.0;  ///< before clipping
  float factor = 1.0F;     ///< the clip factor that was applied
  /// False: the gradient was not finite, or there was no label. Nothing was changed then, except that in the
  /// immediate mode (offload::arrangement) a gradient that was not finite may have reached the state, and no
  /// forward is possible any more.
  bool accepted = true;
};

namespace detail {
/// The group that a sharding policy is made for; of the others, which have none, that of one rank.
template <class Sharding, class Device>
struct group_of {
  using type = comm::single_communicator<Device>;
};
template <class Sharding, class Device>
  requires Sharding::shards
struct group_of<Sharding, Device> {
  using type = typename Sharding::template communicator<Device>;
};
}  // namespace detail

/// A model with its optimizer on one device: forward, backward, step.
///
/// A step is begin_step(N, micro_batches), then per micro-batch forward() and backward(), then step(rate). N
/// is the number of label tokens of the whole step: every loss and gradient is that of the sum over all
/// targets / N. All calls from one thread. Errors of the device surface at the next call that waits.
///
/// With zero::sharded, and with zero::streamed_or_sharded where there is a group, this is one rank's engine.
/// All ranks make the same calls with the same arguments but for the batches, of which each has its own;
/// losses and norms that they get are those of all of them.
template <class Architecture, class Device, class Precision, class Sharding, class Offload, class Recompute,
          profile::profile_policy Profile>
class basic_engine {
public:
  using device_type = Device;
  using element_type = typename Precision::element;
  using T = element_type;
  using store_type = typename Sharding::template store<Device, T>;
  using state_type = typename Offload::template state<Device, T>;
  /// Does engine_options::arrangement decide where state lives?
  static constexpr bool arranges = Offload::arranges;
  /// And where weights live, and which gradients leave the device as they come?
  static constexpr bool flows = Sharding::flows;
  /// Can it be a rank of a group, with a shard of everything?
  static constexpr bool shards = Sharding::shards;
  using group_type = typename detail::group_of<Sharding, Device>::type;
  static_assert(arranges || !flows,
                "weights that live in host memory are updated there: zero::streamed needs offload::super");

  /// Lays the model out and computes the plan; allocates nothing on the device yet.
  basic_engine(Device& device, model::config const& config, engine_options options)
    requires(flows || !shards)
      : basic_engine{device, nullptr, config, std::move(options)} {}
  /// The same for a rank of `group`, which outlives this. Whoever ends it by an exception has the group abort
  /// before (comm::abort_on_exception): what is queued waits for the other ranks.
  basic_engine(Device& device, group_type& group, model::config const& config, engine_options options)
    requires shards
      : basic_engine{device, &group, config, std::move(options)} {}
  /// Either of them: `group` is null for one who is alone.
  basic_engine(Device& device, group_type* group, model::config const& config, engine_options options)
      : device_{&device},
        group_{group},
        model_{lay_out<Architecture>(config, options.trainable, options.decays)},
        options_{std::move(options)} {
    optim::check(options_.adamw);
    expect(options_.max_rows > 0 && options_.max_positions > 0, exit_code::bad_input,
           "the largest micro-batch must have at least one token");
    expect(flows || !shards || group_ != nullptr, exit_code::internal, "zero::sharded needs a group");
    if constexpr (shards) {
      if (is_rank()) {
        owned_ = zero::shards_of(model_.units(), group_->rank(), group_->ranks());
      }
    }
    make_plan();
  }

  basic_engine(basic_engine const&) = delete;
  basic_engine& operator=(basic_engine const&) = delete;
  ~basic_engine() {
    if (stream_) {
      drain(*stream_);  // queued work uses the buffers
    }
  }

  [[nodiscard]] train::plan const& plan() const noexcept { return plan_; }
  [[nodiscard]] Architecture const& model() const noexcept { return model_; }
  /// Is this a rank's, with a shard of everything?
  [[nodiscard]] bool is_rank() const noexcept { return shards && group_ != nullptr; }
  [[nodiscard]] engine_options const& options() const noexcept { return options_; }

  /// The units that state is kept of, and that engine_options::arrangement is about: the model's, or this
  /// rank's shards of them.
  [[nodiscard]] std::vector<autograd::unit_layout> const& units_of_state() const {
    return is_rank() ? owned_ : model_.units();
  }

  /// Lets recompute::choice::automatic keep as much as makes a plan of at most `bytes`; before initialize()
  /// only. Until then it keeps everything.
  void fit_into(std::size_t bytes) { make_plan(bytes); }

  /// Changes engine_options::arrangement, of which an engine reads what its policies say, and the plan with
  /// it, as fit_into(bytes); before initialize() only.
  void arrange(offload::arrangement arrangement, std::size_t bytes) {
    options_.arrangement = std::move(arrangement);
    make_plan(bytes);
  }

  /// Allocates what the plan says and fills masters and weights from `read`.
  void initialize(tensor_reader const& read) {
    expect_same_on_ranks();
    stream_.emplace(*device_);
    if (options_.records) {
      times_.emplace(*device_, *stream_);
      compute_track_ = times_->add_track(resource::device, "device");
      wait_track_ = times_->add_track(resource::waiting, "device waits for weights");
    }
    auto const& units = model_.units();
    zero::gradient_sink<typename Device::stream> const sink{
        this,
        [](void* self, int unit, zero::unit_gradient gradient) {
          static_cast<basic_engine*>(self)->hand_over(unit, gradient);
        },
        [](void* self, int unit, typename Device::stream& stream) {
          static_cast<basic_engine*>(self)->state_->await_gradient(unit, stream);
        }};
    if constexpr (shards && flows) {
      store_.emplace(*device_, *stream_, units, options_.accumulates, group_, options_.arrangement.rooms,
                     options_.arrangement.flow, sink, times());
    } else if constexpr (shards) {
      store_.emplace(*device_, *stream_, units, options_.accumulates, *group_, options_.arrangement.rooms,
                     zero::flow{}, sink, times());
    } else if constexpr (flows) {
      store_.emplace(*device_, *stream_, units, options_.accumulates, options_.arrangement.flow, sink,
                     times());
    } else {
      store_.emplace(*device_, *stream_, units, options_.accumulates, sink);
    }
    state_.emplace(
        *device_, *stream_, units_of_state(), options_.arrangement,
        [this](int unit) { return store_->weights(unit); }, times());
    tables_.emplace(model_.template make_tables<Device, T>(*device_, *stream_, options_.max_positions));
    staging_.emplace(*device_, *stream_, options_.max_rows);
    activations_ = buffer<Device>{*device_, plan_.activations};
    tape_.emplace(*device_, *stream_, autograd::activation_arena{activations_.data(), activations_.bytes()},
                  autograd::unit_access::to(gate_, &units), static_cast<int>(units.size()));
    tape_->retain(&retention_);
    loss_ = buffer<Device>{*device_, sizeof(double), memory::host};
    load(read);
  }

  /// Fills masters and weights from `read`, which a rank asks for no more than it owns; moments stay.
  void load(tensor_reader const& read) {
    enter_range("loading of weights");
    std::vector<float> chunk(std::size_t{1} << 20);
    for (auto const& unit : model_.units()) {
      store_->expect_writes(unit.id());
      for (auto const& tensor : unit.tensors()) {
        auto const own = owned_part(unit, tensor.offset, static_cast<std::size_t>(tensor.count()));
        auto const end = own.skip + own.count;
        for (std::int64_t first = own.skip; first < end; first += static_cast<std::int64_t>(chunk.size())) {
          auto const n = std::min<std::int64_t>(static_cast<std::int64_t>(chunk.size()), end - first);
          std::span<float> const to{chunk.data(), static_cast<std::size_t>(n)};
          read(tensor.name, first, to);
          check_range(tensor, to);
          put(unit, tensor.offset + first, to);
        }
      }
    }
  }

  /// Starts a step of `micro_batches` micro-batches with `label_tokens` targets in all. Where its learning
  /// rate is known by now, `rate` permits to update state before the step is judged, and step() must be given
  /// the same.
  void begin_step(std::int64_t label_tokens, std::int64_t micro_batches = 1,
                  std::optional<double> rate = std::nullopt) {
    expect(micro_batches == 1 || options_.accumulates, exit_code::internal,
           "engine_options::accumulates must be set for steps of several micro-batches");
    if (times_) {
      times_->start();
    }
    label_tokens_ = label_tokens;
    micro_batches_ = micro_batches;
    micro_batch_ = 0;
    announced_rate_ = label_tokens > 0 ? rate : std::nullopt;
    if (announced_rate_) {
      state_->announce(record_of(*rate, 1.0F));
    }
  }

  /// The loss of a micro-batch: the sum over its targets, divided by the step's label tokens. Without
  /// begin_step, the batch is the whole step.
  double forward(data::batch const& batch) {
    if (micro_batch_ == micro_batches_) {
      begin_step(over_ranks(batch.label_tokens()));
    }
    expect(!lost_, exit_code::nonfinite,
           "a gradient was not finite, and buckets are updated as it comes: go on from the last checkpoint");
    store_->set_last_micro_batch(micro_batch_ + 1 == micro_batches_);
    if (micro_batch_ == 0 || is_rank()) {  // a sharded store adds up micro-batches itself
      tape_->forget_gradients();
    }
    return run_forward(batch, label_tokens_, true) /
           static_cast<double>(std::max<std::int64_t>(1, label_tokens_));
  }

  /// Queues the gradients of the micro-batch that forward() has seen.
  void backward() {
    tape_->backward();
    ++micro_batch_;
    if constexpr (shards) {
      if (is_rank() && micro_batch_ == micro_batches_) {
        store_->settle();
      }
    }
  }

  /// Judges the step's gradient and, when it is finite, queues the update with learning rate `rate`.
  step_result step(double rate) {
    expect(micro_batch_ == micro_batches_, exit_code::internal,
           "step() before the backward of every micro-batch");
    auto const verdict = [&] {
      profile::range const named{"verdict"};
      return label_tokens_ > 0 ? judge() : offload::verdict{};
    }();
    step_result result{.grad_norm = verdict.norm,
                       .factor = optim::clip_factor(verdict.norm, options_.max_grad_norm),
                       .accepted = verdict.finite && label_tokens_ > 0};
    expect(!announced_rate_ || *announced_rate_ == rate, exit_code::internal,
           "step() was given another learning rate than begin_step()");
    if (result.accepted) {
      enter_range("optimizer step");
      profile::range const named{"optimizer step"};
      state_->update(record_of(rate, result.factor));
      if constexpr (shards) {
        if (is_rank()) {
          store_->weights_changed();
        }
      }
      ++accepted_steps_;
    } else {
      lost_ = options_.arrangement.immediate && announced_rate_.has_value();
      state_->skip();
    }
    return result;
  }

  /// The sum of the token losses of a batch, nothing recorded.
  double evaluate(data::batch const& batch) { return run_forward(batch, batch.label_tokens(), false); }

  /// The logits of every row, [rows, vocabulary]: for inspection, of a batch small enough to have them all in
  /// memory.
  std::vector<float> logits(data::batch const& batch) {
    autograd::tape<Device, T> dry{*device_, static_cast<int>(model_.units().size())};
    auto const compute = [&](auto& tape, nn::batch const& b) {
      tape.reset(false);
      return model_.template logits<Device, T>(tape, b, &*tables_);
    };
    auto const& staged = staging_->put(batch, 1);
    compute(dry, staged);
    buffer<Device> const memory{*device_, dry.peak_bytes()};
    autograd::tape<Device, T> tape{*device_, *stream_,
                                   autograd::activation_arena{memory.data(), memory.bytes()},
                                   autograd::unit_access::to(gate_), static_cast<int>(model_.units().size())};
    auto const result = compute(tape, staged);
    std::vector<float> values(static_cast<std::size_t>(result.count()));
    fetch(result.value(), values);
    return values;
  }

  /// The optimizer's state, from initialize() on.
  [[nodiscard]] state_type const& state() const noexcept { return *state_; }

  /// With engine_options::records, from initialize() on: what works when. It begins to look with each step;
  /// whoever asks for it collects, or it grows. Null without.
  [[nodiscard]] recorder<Device>* times() noexcept { return times_ ? &*times_ : nullptr; }

  /// Waits for everything queued.
  void synchronize() { stream_->synchronize(); }

  /// Steps that changed the weights, the `t` of the bias corrections.
  [[nodiscard]] std::int64_t accepted_steps() const noexcept { return accepted_steps_; }
  void set_accepted_steps(std::int64_t steps) noexcept { accepted_steps_ = steps; }

  /// Reads a tensor's weights, master precision where there is one.
  void read_weights(autograd::unit_layout const& unit, std::int64_t first, std::span<float> to) {
    from_owners(unit, first, to, [&](std::int64_t begin, std::span<float> own) {
      if (unit.trainable()) {
        state_->read(unit.id(), offload::state_part::master, begin, own);
      } else {
        fetch(store_->weights(unit.id()) + begin, own);
      }
    });
  }

  /// The final gradient of the last step as the optimizer saw it, widened; zeros for a unit that is frozen as
  /// a whole.
  void read_gradient(autograd::unit_layout const& unit, std::int64_t first, std::span<float> to) {
    auto const gradient = store_->gradient(unit.id());
    if (gradient.data == nullptr) {
      expect(!unit.trainable(), exit_code::internal, "the gradient of unit ", unit.id(),
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

  /// A named piece of what a checkpoint must hold besides accepted_steps(), the same wherever and however the
  /// state is kept: fp32 master, m and v of a unit that trains, the weights of one that is frozen as a whole.
  struct state_field {
    std::string name;
    std::size_t bytes;
    int unit;
    std::optional<offload::state_part> part;  ///< none: the weights, element_type
  };
  [[nodiscard]] std::vector<state_field> state_fields() const {
    std::vector<state_field> fields;
    for (auto const& unit : model_.units()) {
      auto const prefix = "unit" + std::to_string(unit.id()) + ".";
      auto const elements = static_cast<std::size_t>(unit.elements());
      if (!unit.trainable()) {
        fields.push_back({prefix + "weights", elements * sizeof(T), unit.id(), std::nullopt});
        continue;
      }
      for (auto const& [name, part] :
           {std::pair{"master", offload::state_part::master}, std::pair{"m", offload::state_part::m},
            std::pair{"v", offload::state_part::v}}) {
        fields.push_back({prefix + name, elements * sizeof(float), unit.id(), part});
      }
    }
    return fields;
  }
  /// Bytes [offset, offset + size) of a field, whole numbers of it. Waits for everything queued.
  void read_state(state_field const& field, std::size_t offset, std::span<std::byte> to) {
    check_piece(field, offset, to.size());
    auto const& unit = model_.units()[static_cast<std::size_t>(field.unit)];
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
  /// Of a field, the bytes that are kept here: all of them, or a rank's part. The parts of all ranks one
  /// after the other are the field.
  struct kept_bytes {
    std::size_t offset = 0, bytes = 0;
  };
  [[nodiscard]] kept_bytes kept_here(state_field const& field) const {
    auto const& unit = model_.units()[static_cast<std::size_t>(field.unit)];
    auto const number = field.part ? sizeof(float) : sizeof(T);
    auto const own = owned_part(unit, 0, static_cast<std::size_t>(unit.elements()));
    return {static_cast<std::size_t>(own.skip) * number, static_cast<std::size_t>(own.count) * number};
  }
  /// As read_state(), of bytes that are kept here, and without the other ranks.
  void read_kept_state(state_field const& field, std::size_t offset, std::span<std::byte> to) {
    check_piece(field, offset, to.size());
    auto const& unit = model_.units()[static_cast<std::size_t>(field.unit)];
    auto const number = field.part ? sizeof(float) : sizeof(T);
    auto const own = owned_part(unit, static_cast<std::int64_t>(offset / number), to.size() / number);
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
  /// As read_state(), written, by a rank as far as it is kept there; working weights follow their masters.
  void write_state(state_field const& field, std::size_t offset, std::span<std::byte const> from) {
    check_piece(field, offset, from.size());
    store_->expect_writes(field.unit);
    auto const& unit = model_.units()[static_cast<std::size_t>(field.unit)];
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

  /// The working weights of a unit, all of them, while this lives. One at a time; all ranks make it for the
  /// same units in the same order.
  class whole_weights {
  public:
    whole_weights(basic_engine& engine, autograd::unit_layout const& unit)
        : engine_{&engine}, unit_{unit.id()} {
      engine.state_->await(unit_, engine.store_->reader(unit_));
      weights_ = static_cast<T const*>(engine.store_->acquire(unit_, autograd::pass::forward).weights);
    }
    whole_weights(whole_weights const&) = delete;
    whole_weights& operator=(whole_weights const&) = delete;
    ~whole_weights() { engine_->store_->release(unit_, autograd::pass::forward); }

    [[nodiscard]] int unit() const noexcept { return unit_; }
    /// Elements [first, first + size). Waits for the device.
    void read(std::int64_t first, std::span<float> to) const { engine_->fetch(weights_ + first, to); }

  private:
    basic_engine* engine_;
    int unit_;
    T const* weights_;
  };

private:
  /// The store, whose weights may only be used once the state has updated them.
  struct gate {
    basic_engine* engine;

    void prefetch(int unit, autograd::pass p) noexcept {
      try {
        // What has not returned cannot be fetched. But ranks exchange by the order of calls alone: there it
        // is waited for.
        if (engine->is_rank() || engine->state_->returned(unit)) {
          engine->state_->await(unit, engine->store_->reader(unit));
          engine->store_->prefetch(unit, p);
        }
      } catch (...) {}  // acquire will say
    }
    autograd::unit_buffers acquire(int unit, autograd::pass p) {
      autograd::unit_buffers buffers;
      record_span(engine->times(), engine->wait_track_, *engine->stream_, "wait for ", unit, [&] {
        engine->state_->await(unit, engine->store_->reader(unit));
        buffers = engine->store_->acquire(unit, p);
      });
      if (engine->times_ && engine->acquired_++ == 0) {
        engine->times_->begin(engine->compute_track_, *engine->stream_,
                              p == autograd::pass::backward ? "backward of " : "forward of ", unit);
      }
      return buffers;
    }
    void release(int unit, autograd::pass p) noexcept {
      if (engine->times_ && --engine->acquired_ == 0) {
        engine->times_->end(engine->compute_track_, *engine->stream_);
      }
      engine->store_->release(unit, p);
    }
    void reduce(int unit) { engine->store_->reduce(unit); }
  };

  /// A step without labels has no gradient, and changes nothing.
  void hand_over(int unit, zero::unit_gradient gradient) {
    if (label_tokens_ > 0) {
      state_->ready(unit, gradient);
    }
  }
  /// The sum over all ranks, in their order.
  template <class Number>
  Number over_ranks(Number own) {
    if constexpr (shards) {
      if (is_rank()) {
        return comm::sum_over_ranks(*group_, own);
      }
    }
    return own;
  }
  /// What must be the same on all ranks, before anything is exchanged that depends on it.
  void expect_same_on_ranks() {
    if constexpr (shards) {
      if (!is_rank()) {
        return;
      }
      std::string layout;
      for (auto const& unit : model_.units()) {
        layout += concat(unit.name(), " ", unit.elements(), unit.wide_gradient() ? " wide" : "", ":");
        for (auto const& t : unit.tensors()) {
          layout += concat(" ", t.name, " ", t.offset, " ", t.count(), t.trainable ? " trains" : "",
                           t.decays ? " decays" : "", ";");
        }
      }
      auto const& o = options_;
      comm::expect_same(*group_, "the element type", name_of(dtype_of<T>));
      comm::expect_same(*group_, "the layout of the model", layout);
      comm::expect_same(*group_, "max_grad_norm", concat(o.max_grad_norm));
      comm::expect_same(*group_, "the settings of AdamW",
                        concat("betas ", o.adamw.beta1, " ", o.adamw.beta2, ", eps ", o.adamw.epsilon,
                               ", decay ", o.adamw.weight_decay));
      comm::expect_same(*group_, "accumulates", concat(o.accumulates));
      auto const& rooms = o.arrangement.rooms;
      comm::expect_same(*group_, "rooms", concat(rooms.weights, " ", rooms.gradients));
    }
  }
  offload::verdict judge() {
    if constexpr (shards) {
      if (is_rank()) {
        return state_->judge(group_->ranks(), [this](double const* from, double* to, std::size_t count) {
          group_->gather(from, to, count * sizeof(double));
        });
      }
    }
    return state_->judge();
  }
  /// This rank's part of elements [first, first + count) of a unit.
  [[nodiscard]] zero::owned_range owned_part(autograd::unit_layout const& unit, std::int64_t first,
                                             std::size_t count) const {
    auto const n = static_cast<std::int64_t>(count);
    if constexpr (shards) {
      if (is_rank()) {
        return zero::owned_part(unit, group_->rank(), group_->ranks(), first, n);
      }
    }
    return {first, 0, n};
  }
  template <class Value>
  static std::span<Value> piece_of(std::span<Value> values, zero::owned_range const& own) {
    return values.subspan(static_cast<std::size_t>(own.skip), static_cast<std::size_t>(own.count));
  }
  /// Elements [first, first + size) of a unit, on every rank: read(begin, to) reads a rank's own.
  template <class Value, class Read>
  void from_owners(autograd::unit_layout const& unit, std::int64_t first, std::span<Value> to, Read&& read) {
    auto const own = owned_part(unit, first, to.size());
    if (own.count > 0) {
      read(own.begin, piece_of(to, own));
    }
    if constexpr (shards) {
      if (!is_rank()) {
        return;
      }
      auto const part = [&](int r) {
        return zero::owned_part(unit, r, group_->ranks(), first, static_cast<std::int64_t>(to.size()));
      };
      std::size_t most = 0;
      for (int r = 0; r < group_->ranks(); ++r) {
        most = std::max(most, static_cast<std::size_t>(part(r).count));
      }
      std::vector<Value> mine(most);
      std::vector<Value> all(most * static_cast<std::size_t>(group_->ranks()));
      std::ranges::copy(piece_of(to, own), mine.begin());
      group_->gather(mine.data(), all.data(), most * sizeof(Value));
      for (int r = 0; r < group_->ranks(); ++r) {
        std::copy_n(all.data() + static_cast<std::size_t>(r) * most, part(r).count,
                    piece_of(to, part(r)).begin());
      }
    }
  }

  [[nodiscard]] auto bytes_of_store(std::vector<autograd::unit_layout> const& units,
                                    engine_options const& o) const {
    auto const& flow = o.arrangement.flow;
    expect(
        !is_rank() || (!flow.any_weights() && (!flow.any_gradient() || o.arrangement.immediate)),
        exit_code::internal,
        "an arrangement lets weights flow, or gradients that a verdict is needed for, but this is a rank's "
        "engine, whose units are sharded");
    expect(flows || !(flow.any_weights() || flow.any_gradient()), exit_code::internal,
           "an arrangement lets weights or gradients flow, but this engine has ",
           shards ? "zero::sharded" : "zero::resident");
    if constexpr (shards && flows) {
      return store_type::bytes(units, o.accumulates, group_, o.arrangement.rooms, flow);
    } else if constexpr (shards) {
      return store_type::bytes(units, o.accumulates, *group_, o.arrangement.rooms);
    } else if constexpr (flows) {
      return store_type::bytes(units, o.accumulates, flow);
    } else {
      return store_type::bytes(units, o.accumulates);
    }
  }

  [[nodiscard]] offload::step_record record_of(double rate, float factor) const {
    return {options_.adamw, rate, accepted_steps_ + 1, factor};
  }

  void make_plan(std::size_t memory = std::numeric_limits<std::size_t>::max()) {
    auto const& units = model_.units();
    options_.arrangement.rooms.ends_meet = model_.settings().tied_head;
    plan_ = {};
    for (auto const& unit : units) {
      for (auto const& tensor : unit.tensors()) {
        plan_.parameters += tensor.count();
        plan_.trainable_parameters += tensor.trainable ? tensor.count() : 0;
      }
    }
    auto const store = bytes_of_store(units, options_);
    plan_.weights = store.weights;
    plan_.gradients = store.gradients;
    auto const state = state_type::bytes(units_of_state(), options_.arrangement);
    plan_.optimizer_state = state.device;
    plan_.host = state.host + store.host + batch_staging<Device>::bytes(options_.max_rows) + sizeof(double);
    plan_.batches = batch_staging<Device>::bytes(options_.max_rows) +
                    model_.template table_bytes<T>(options_.max_positions);
    plan_.workspaces = Device::product_workspace_bytes;
    choose_recompute(memory);
  }

  void choose_recompute(std::size_t memory) {
    std::vector<autograd::activation> activations;
    plan_.activations = dry_peak({}, &activations);
    auto const wanted = Recompute::of(options_.recompute);
    retention_ = {};
    if (wanted == recompute::choice::every_block) {
      retention_ = recompute::inputs_only(activations);
    } else if (wanted == recompute::choice::automatic && plan_.total() > memory) {
      auto const fixed = plan_.total() - plan_.activations;
      retention_ = recompute::fit(activations, Device::flops_per_byte, memory > fixed ? memory - fixed : 0,
                                  [this](auto const& kept) { return dry_peak(kept); });
    }
    plan_.activations = dry_peak(retention_);
    plan_.results = static_cast<std::int64_t>(activations.size());
    for (auto const& a : activations) {
      if (!retention_.keeps(a.unit, a.index)) {
        ++plan_.results_recomputed;
        plan_.recomputed_flops_per_token += a.again.all_flops() / static_cast<double>(options_.max_rows);
      }
    }
  }

  /// Runs the largest forward and backward without memory.
  [[nodiscard]] std::size_t dry_peak(autograd::retention const& kept,
                                     std::vector<autograd::activation>* activations = nullptr) const {
    return dry_pass<T>(*device_, model_, {options_.max_rows, options_.max_positions}, kept, activations);
  }

  double run_forward(data::batch const& batch, std::int64_t divisor, bool with_backward) {
    expect(batch.rows() <= options_.max_rows, exit_code::bad_input, "a micro-batch of ", batch.rows(),
           " tokens, but engine_options::max_rows is ", options_.max_rows);
    tape_->reset(with_backward);
    auto const& staged = staging_->put(batch, divisor);
    expect(staged.longest <= options_.max_positions, exit_code::bad_input, "a document of ", staged.longest,
           " tokens, but engine_options::max_positions is ", options_.max_positions);
    auto const loss = model_.template loss<Device, T>(*tape_, staged, &*tables_);
    stream_->copy(loss_.data(), loss.total, sizeof(double));
    if (times_) {
      times_->synchronize(*stream_);
    } else {
      stream_->synchronize();
    }
    return over_ranks(*loss_.template as<double>());
  }

  static void check_range(autograd::tensor_entry const& tensor, std::span<float const> values) {
    // Larger magnitudes would not survive the rounding to a working weight.
    for (auto const value : values) {
      expect(std::abs(value) < 0x1.ffp127F, exit_code::bad_input, "tensor '", tensor.name,
             "' holds a value that is not finite or too large for bfloat16; expected finite weights");
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

  static void check_piece(state_field const& field, std::size_t offset, std::size_t size) {
    auto const number = field.part ? sizeof(float) : sizeof(T);
    expect(
        offset <= field.bytes && size <= field.bytes - offset && offset % number == 0 && size % number == 0,
        exit_code::internal, "bytes ", offset, " to ", offset + size, " of state '", field.name, "' of ",
        field.bytes, ": expected whole numbers inside it");
  }
  template <class U>
  void fetch(U const* from, std::span<float> to) {
    std::vector<U> values(to.size());
    stream_->copy(values.data(), from, values.size() * sizeof(U));
    stream_->synchronize();
    std::transform(values.begin(), values.end(), to.begin(),
                   [](U value) { return static_cast<float>(value); });
  }

  [[no_unique_address]] typename Profile::session profile_;
  Device* device_;
  group_type* group_;  ///< null where nothing is sharded
  Architecture model_;
  std::vector<autograd::unit_layout> owned_;  ///< this rank's shards, where there are any
  engine_options options_;
  train::plan plan_;
  autograd::retention retention_;

  std::optional<typename Device::stream> stream_;
  std::optional<recorder<Device>> times_;
  int compute_track_ = -1, wait_track_ = -1;
  int acquired_ = 0;  // units in use, as often as they are
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
  std::optional<double> announced_rate_;
  bool lost_ = false;  // a step that was not finite has reached the state
  gate gate_{this};
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
  static_assert(count_of<category::profile, Policies...> <= 1,
                "train::engine takes at most one profile policy");
  using type = basic_engine<pick<category::architecture, void, Policies...>,  //
                            pick<category::device, cpu::device, Policies...>,
                            pick<category::precision, precision::fp32, Policies...>,
                            pick<category::sharding, zero::resident, Policies...>,
                            pick<category::offload, offload::none, Policies...>,
                            pick<category::recompute, recompute::configured, Policies...>,
                            pick<category::profile, profile::none, Policies...>>;
};
}  // namespace detail

/// The engine of the given policies, in any order: the same policies name the same type. Defaults:
/// cpu::device, precision::fp32, zero::resident, offload::none, recompute::configured, profile::none.
template <class... Policies>
using engine = typename detail::engine_of<Policies...>::type;

}  // namespace superoffload::train
