// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/offloaded_activations.hpp>
#include <superoffload/autograd/tape.hpp>
#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/buffer.hpp>
#include <superoffload/core/precision.hpp>
#include <superoffload/core/profile.hpp>
#include <superoffload/core/range.hpp>
#include <superoffload/core/recorder.hpp>
#include <superoffload/data/batch.hpp>
#include <superoffload/model/view.hpp>
#include <superoffload/offload/offload_policy.hpp>
#include <superoffload/offload/state/step_record.hpp>
#include <superoffload/optim/adamw.hpp>
#include <superoffload/optim/clip.hpp>
#include <superoffload/train/engine/allocation.hpp>
#include <superoffload/train/engine/batch_staging.hpp>
#include <superoffload/train/engine/dry_model.hpp>
#include <superoffload/train/engine/engine_agreement.hpp>
#include <superoffload/train/engine/engine_memory.hpp>
#include <superoffload/train/engine/engine_options.hpp>
#include <superoffload/train/engine/kept_activations.hpp>
#include <superoffload/train/engine/state_io.hpp>
#include <superoffload/train/engine/step_progress.hpp>
#include <superoffload/train/engine/tensor_reader.hpp>
#include <superoffload/train/engine/update_aware_store.hpp>
#include <superoffload/zero/shard.hpp>
#include <superoffload/zero/sharding_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace superoffload::train {

/// A model with its optimizer on one device: forward, backward, step. This is an engine without its
/// architecture's type: it reaches the model through a view, and is compiled once for all architectures. See
/// train::engine.
///
/// A step is begin_step(N, micro_batches), then for each micro-batch forward() and backward(), then
/// step(rate). N is the number of label tokens of the whole step: losses and gradients are those of the sum
/// over all targets / N. A step that begins before the last one had its step() replaces it: the last one then
/// changes nothing. All calls come from one thread. Errors of the device appear at the next call that waits.
/// \throws error(bad_input) from any call that comes before initialize(), or out of this order.
///
/// With zero::sharded, and with zero::offloaded_or_sharded and a group, this is one rank's engine. All ranks
/// make the same calls with the same arguments, except that each has its own batches, or each group of
/// engine_options::sequence_ranks neighbours. Losses and norms are those over all ranks.
///
/// Larger members are defined outside the class, so that an explicit instantiation declaration keeps them
/// from being compiled elsewhere.
template <class Device, class Precision, class Sharding, class Offload>
class engine_core {
public:
  static_assert(device_policy<Device>,
                "a device must have what superoffload::device_policy asks for (core/device.hpp)");
  static_assert(precision_policy<Precision>,
                "a precision must have what superoffload::precision_policy asks for (core/precision.hpp)");
  using device_type = Device;                        ///< a device_policy
  using element_type = typename Precision::element;  ///< of working weights, activations and gradients
  using T = element_type;                            ///< the same
  static_assert(zero::sharding_policy<Sharding, Device, T>,
                "a sharding policy must have what zero::sharding_policy asks for (zero/sharding_policy.hpp)");
  static_assert(
      offload::offload_policy<Offload, Device, T>,
      "an offload policy must have what offload::offload_policy asks for (offload/offload_policy.hpp)");
  using store_type = typename Sharding::template store<Device, T>;  ///< of weights and gradients
  using state_type = typename Offload::template state<Device, T>;   ///< of the optimizer
  using group_type = typename store_type::group_type;               ///< by which ranks communicate
  using core_type = engine_core;              ///< for code that has an engine and needs its core
  using model_view = model::view<Device, T>;  ///< the model without its type
  /// Does engine_options::configuration decide where state lives?
  static constexpr bool configures = Offload::configures;
  /// Does it also decide where weights live, and which gradients leave the device as they become final?
  static constexpr bool offloads = Sharding::offloads;
  /// Can the engine be without a group?
  static constexpr bool alone = Sharding::alone, shards = Sharding::shards;  ///< can it be a rank of a group?
  static_assert(configures || !offloads,
                "weights that live in host memory are updated there: zero::offloaded needs offload::super");

  /// Computes the memory; allocates nothing on the device yet. \throws comm::agreed_error(bad_input) if the
  /// ranks cannot share micro-batches as the options say. Model and group must outlive this; the group
  /// is null for an engine without ranks. If an exception destroys a rank's engine, the group must abort
  /// before (comm::abort_on_exception): queued collectives wait for the other ranks.
  engine_core(Device& device, group_type* group, model_view model, engine_options options);
  engine_core(engine_core const&) = delete;
  engine_core& operator=(engine_core const&) = delete;
  ~engine_core();

  /// The memory that the engine takes, as planned last.
  [[nodiscard]] train::allocation const& allocation() const noexcept { return memory_.allocation; }
  /// As it was given; the model lives elsewhere.
  [[nodiscard]] model_view const& model() const noexcept { return model_; }
  /// Is this a rank's engine, with a shard of everything?
  [[nodiscard]] bool is_rank() const noexcept { return group_ != nullptr; }
  /// As given, with the configuration of configure().
  [[nodiscard]] engine_options const& options() const noexcept { return options_; }
  /// As it was given; the engine does not own it.
  [[nodiscard]] Device& device() const noexcept { return *device_; }
  /// Null for an engine without ranks.
  [[nodiscard]] group_type* group() const noexcept { return group_; }

  /// The units of the optimizer state and of engine_options::configuration: the model's, or this rank's
  /// shards of them.
  [[nodiscard]] std::vector<autograd::unit_layout> const& units_of_state() const {
    return is_rank() ? owned_ : model_.units();
  }

  /// With recompute::choice::automatic, keeps as many activations as fit a total of `bytes` bytes. By default
  /// all are kept. Before initialize() only.
  void fit_into(std::size_t bytes) {
    expect_no_memory("fit_into()");
    make_plan(bytes);
  }

  /// Replaces engine_options::configuration and fits into `bytes` as fit_into() does. The engine reads the
  /// parts that its policies use. Before initialize() only.
  void configure(offload::configuration configuration, std::size_t bytes);

  /// Allocates memory and fills masters and weights from `read`. \throws error(cannot_fit) for lack of
  /// memory. Once only, unless it throws.
  void initialize(tensor_reader const& read);
  /// Fills masters and weights from `read`; moments stay. A rank reads only what it owns.
  void load(tensor_reader const& read) {
    expect_weights("load()");
    io_->load(read);
  }

  /// Starts a step of `micro_batches` micro-batches with `label_tokens` targets in all. `rate` is the step's
  /// learning rate, if it is known by now: it permits updates before the gradient check, and step() must get
  /// the same rate.
  void begin_step(std::int64_t label_tokens, std::int64_t micro_batches = 1,
                  std::optional<double> rate = std::nullopt);
  /// \returns the loss of a micro-batch: the sum over its targets, divided by the step's label tokens.
  /// Without begin_step(), the batch is the whole step. Waits for the device. \throws error(bad_input) for a
  /// batch that is larger than engine_options say, or that data::expect_valid refuses, as evaluate() and
  /// logits() do.
  double forward(data::batch const& batch);
  /// Queues the backward of the micro-batch of the last forward().
  void backward();
  /// FLOPs that the backwards since begin_step() compute again.
  [[nodiscard]] double recomputed_flops() const noexcept { return recomputed_flops_; }
  /// Checks the step's gradient and, if it is finite, queues the update with learning rate `rate`.
  step_result step(double rate);

  /// The sum of a batch's token losses, without a backward.
  double evaluate(data::batch const& batch) {
    expect_valid(batch);
    progress_.expect_nothing_recorded("evaluate()");
    return run_forward(batch, batch.label_tokens(), false);
  }
  /// The logits of every row, [rows, vocabulary]. For inspection: the batch must be small enough to hold them
  /// all.
  std::vector<float> logits(data::batch const& batch);

  /// The optimizer state, from initialize() on.
  [[nodiscard]] state_type const& state() const noexcept { return *state_; }
  /// The recorder of what works when, from initialize() on; null without engine_options::records. It starts
  /// anew with each step; the caller must collect, or it grows.
  [[nodiscard]] recorder<Device>* times() noexcept { return times_ ? &*times_ : nullptr; }
  /// Waits for all queued work of the compute stream.
  void synchronize() {
    expect_weights("synchronize()");
    stream_->synchronize();
  }

  /// The number of steps that changed the weights: `t` of the bias corrections.
  [[nodiscard]] std::int64_t accepted_steps() const noexcept { return accepted_steps_; }
  /// Sets it after write_state(), to that of the checkpoint.
  void set_accepted_steps(std::int64_t steps) noexcept { accepted_steps_ = steps; }

  /// Reads elements [first, first + size) of a unit's weights: masters, or the working weights of a frozen
  /// unit.
  void read_weights(autograd::unit_layout const& unit, std::int64_t first, std::span<float> to) {
    expect_weights("read_weights()");
    io_->read_weights(unit, first, to);
  }
  /// Reads the last step's final gradient as the optimizer saw it, widened; zeros for a frozen unit.
  void read_gradient(autograd::unit_layout const& unit, std::int64_t first, std::span<float> to) {
    expect_weights("read_gradient()");
    io_->read_gradient(unit, first, to);
  }

  /// The parts of a checkpoint besides accepted_steps().
  using state_field = train::state_field;
  using kept_bytes = train::kept_bytes;  ///< all, or a rank's part
  /// In the order of the units; the same for every placement of the state.
  [[nodiscard]] std::vector<state_field> state_fields() const { return io_type::fields(model_.units()); }
  /// Reads bytes [offset, offset + size) of a field; both are multiples of its number size. Waits for the
  /// device.
  void read_state(state_field const& field, std::size_t offset, std::span<std::byte> to) {
    expect_weights("read_state()");
    io_->read(field, offset, to);
  }
  /// Of this rank.
  [[nodiscard]] kept_bytes kept_here(state_field const& field) const {
    expect_weights("kept_here()");
    return io_->kept_here(field);
  }
  /// As read_state(), for bytes that are kept on this rank, without a collective.
  void read_kept_state(state_field const& field, std::size_t offset, std::span<std::byte> to) {
    expect_weights("read_kept_state()");
    io_->read_kept(field, offset, to);
  }
  /// Writes bytes of a field; a rank writes only what it keeps. A written master also sets its working
  /// weight.
  void write_state(state_field const& field, std::size_t offset, std::span<std::byte const> from) {
    expect_weights("write_state()");
    io_->write(field, offset, from);
  }

  /// Holds the whole working weights of a unit on the device during its lifetime. One at a time. All ranks
  /// construct it for the same units in the same order.
  class whole_weights {
  public:
    /// Waits until the unit is updated; a rank gathers it. The engine must outlive this.
    whole_weights(engine_core& engine, autograd::unit_layout const& unit)
        : engine_{&engine}, unit_{unit.id()} {
      engine.state_->await(unit_, engine.store_->reader(unit_));
      weights_ = static_cast<T const*>(engine.store_->acquire(unit_, autograd::pass::forward).weights);
    }
    whole_weights(whole_weights const&) = delete;
    whole_weights& operator=(whole_weights const&) = delete;
    ~whole_weights() { engine_->store_->release(unit_, autograd::pass::forward); }

    [[nodiscard]] int unit() const noexcept { return unit_; }  ///< its unit_layout::id()
    /// As many elements from `first` on as `to` has room for, in the engine's element type. Waits for the
    /// device.
    void copy(std::int64_t first, std::span<std::byte> to) const {
      engine_->stream_->copy(to.data(), weights_ + first, to.size());
      engine_->stream_->synchronize();
    }

  private:
    engine_core* engine_;
    int unit_;
    T const* weights_;
  };

private:
  using stream_type = typename Device::stream;
  using io_type = state_io<Device, T, store_type, state_type>;
  using update_aware_type = update_aware_store<Device, store_type, state_type>;

  [[nodiscard]] zero::store_options store_options() const {
    auto const& c = options_.configuration;
    return {.accumulates = options_.accumulates,
            .buffers = c.buffers,
            .offloaded = c.offloaded,
            .sequence_ranks = options_.sequence_ranks,
            .weight_ranks = c.weight_ranks,
            .sums_in_copies = c.sums_in_copies};
  }
  [[nodiscard]] offload::step_record record_of(double rate, float factor) const {
    return {options_.adamw, rate, accepted_steps_ + 1, factor};
  }
  [[nodiscard]] zero::gradient_sink<stream_type> sink();
  void expect_weights(char const* call) const {
    expect(initialized_, exit_code::bad_input, call,
           " of an engine without weights; call initialize() first");
  }
  void expect_no_memory(char const* call) const {
    expect(!initialized_, exit_code::bad_input, call,
           " of an engine that has its memory and its weights; expected before initialize()");
  }
  void make_plan(std::size_t memory = std::numeric_limits<std::size_t>::max());
  [[nodiscard]] offload::gradient_check check_gradient(double rate);
  void abandon_step();
  void expect_valid(data::batch const& whole) const;
  double run_forward(data::batch const& whole, std::int64_t divisor, bool with_backward);
  [[nodiscard]] data::batch own_slice(data::batch const& whole) const;

  Device* device_;
  group_type* group_;  ///< null without ranks
  comm::host_group ranks_;
  model_view model_;
  std::vector<autograd::unit_layout> owned_;  ///< this rank's shards; empty without ranks
  engine_options options_;
  engine_memory memory_;

  std::optional<stream_type> stream_;
  std::optional<recorder<Device>> times_;
  std::optional<store_type> store_;
  std::optional<state_type> state_;
  std::optional<io_type> io_;
  typename model_view::tables tables_;
  std::optional<batch_staging<Device>> staging_;
  buffer<Device> activations_, loss_;
  std::optional<autograd::offloaded_activations<Device>> offloaded_activations_;
  std::optional<update_aware_type> aware_store_;
  std::optional<autograd::tape<Device, T>> tape_;
  std::optional<kept_activations> kept_;

  step_progress progress_;
  std::int64_t accepted_steps_ = 0;
  double recomputed_flops_ = 0.0;
  bool initialized_ = false;
  bool lost_ = false;  // a gradient that was not finite has reached the state
};

template <class Device, class P, class S, class O>
engine_core<Device, P, S, O>::engine_core(Device& device, group_type* group, model_view model,
                                          engine_options options)
    : device_{&device},
      group_{group},
      ranks_{comm::host_group_of(group)},
      model_{model},
      options_{std::move(options)} {
  optim::check(options_.adamw);
  expect(options_.max_grad_norm >= 0.0, exit_code::bad_input, "engine_options::max_grad_norm is ",
         options_.max_grad_norm, ", expected at least 0, which is off");
  expect_gemms<T>(device, model_.settings());
  expect(options_.max_rows > 0 && options_.max_positions > 0, exit_code::bad_input,
         "the largest micro-batch must have at least one token");
  expect(is_rank() ? shards : alone, exit_code::bad_input,
         is_rank() ? "an engine whose policies shard nothing got a group" : "zero::sharded needs a group");
  if (options_.sequence_ranks != 1) {
    comm::together(ranks_,
                   [this] { expect_shareable(options_.sequence_ranks, ranks_.ranks(), model_.settings()); });
  }
  if (is_rank()) {
    owned_ = zero::shards_of(model_.units(), ranks_.rank(), ranks_.ranks());
  }
  make_plan();
}

template <class D, class P, class S, class O>
engine_core<D, P, S, O>::~engine_core() {
  if (stream_) {
    drain(*stream_);  // queued work uses the buffers
  }
}

template <class D, class P, class S, class O>
void engine_core<D, P, S, O>::configure(offload::configuration configuration, std::size_t bytes) {
  expect_no_memory("configure()");
  options_.configuration = std::move(configuration);
  make_plan(bytes);
}

template <class D, class P, class S, class O>
void engine_core<D, P, S, O>::make_plan(std::size_t memory) {
  auto& configuration = options_.configuration;
  auto const& offloaded = configuration.offloaded;
  expect(offloads || !(offloaded.any_weights() || offloaded.any_gradient()), exit_code::bad_input,
         "a configuration offloads weights or gradients, but this engine's sharding policy keeps them on the "
         "device; expected zero::offloaded or zero::offloaded_or_sharded");
  expect(!is_rank() || (!offloaded.any_weights() && (!offloaded.any_gradient() || configuration.immediate)),
         exit_code::bad_input,
         "a configuration offloads weights, or gradients that wait for the gradient check, but this is a "
         "rank's engine, whose units are sharded");
  expect(configures || configuration.format == state_format::float32, exit_code::bad_input,
         "a configuration has state in ", name_of(configuration.format),
         ", but offload::none keeps it in float32; expected offload::super");
  expect_copies(configuration.weight_ranks, ranks_.ranks());
  configuration.buffers.tied_embeddings = model_.settings().tied_head;
  memory_ = plan_memory(dry_model_of<T>(*device_, model_), options_,
                        store_type::bytes(model_.units(), store_options(), group_),
                        state_type::bytes(units_of_state(), configuration), memory);
}

template <class D, class P, class S, class O>
void engine_core<D, P, S, O>::initialize(tensor_reader const& read) {
  expect_no_memory("initialize()");
  auto const& units = model_.units();
  if (is_rank()) {
    expect_same_engines(ranks_, units, dtype_of<T>, options_);
  }
  stream_.emplace(*device_);
  if (options_.records) {
    times_.emplace(*device_, *stream_);
  }
  typename update_aware_type::tracks const tracks{times()};
  store_.emplace(*device_, *stream_, units, store_options(), group_, sink(), times());
  state_.emplace(*device_, *stream_, units_of_state(), options_.configuration,
                 offload::unit_weights<T>{[this](int unit) { return store_->weights(unit); }}, times());
  io_.emplace(*stream_, units, *store_, *state_, ranks_, is_rank());
  tables_ = model_.make_tables(*device_, *stream_, options_.max_positions);
  auto const shared_by = options_.sequence_ranks;
  staging_.emplace(*device_, *stream_, options_.largest_batch().rows, shared_by, ranks_.rank() % shared_by);
  activations_ = buffer<D>{*device_, memory_.allocation.activations};
  if (auto const bytes = memory_.allocation.activations_on_host; bytes > 0) {
    offloaded_activations_.emplace(*device_, *stream_, bytes, times());
  }
  aware_store_.emplace(*stream_, *store_, *state_, is_rank(), tracks);
  tape_.emplace(*device_, *stream_, autograd::activation_arena{activations_.data(), activations_.bytes()},
                autograd::unit_access::to(*aware_store_, &units), static_cast<int>(units.size()),
                offloaded_activations_ ? &*offloaded_activations_ : nullptr);
  kept_.emplace(dry_model_of<T>(*device_, model_), options_, memory_);
  loss_ = buffer<D>{*device_, sizeof(double), memory::host};
  io_->load(read);
  initialized_ = true;
}

/// Without label tokens a step has no gradient and changes nothing, so the state gets none.
template <class D, class P, class S, class O>
auto engine_core<D, P, S, O>::sink() -> zero::gradient_sink<stream_type> {
  return {this,
          [](void* self, int unit, zero::unit_gradient gradient) {
            if (auto& engine = *static_cast<engine_core*>(self); engine.progress_.label_tokens() > 0) {
              engine.state_->ready(unit, gradient);
            }
          },
          [](void* self, int unit, stream_type& stream) {
            static_cast<engine_core*>(self)->state_->await_gradient(unit, stream);
          }};
}

template <class D, class P, class S, class O>
void engine_core<D, P, S, O>::begin_step(std::int64_t label_tokens, std::int64_t micro_batches,
                                         std::optional<double> rate) {
  expect_weights("begin_step()");
  expect(micro_batches <= 1 || options_.accumulates, exit_code::bad_input,
         "engine_options::accumulates must be set for steps of several micro-batches");
  if (progress_.is_complete()) {
    abandon_step();
  }
  progress_.begin(label_tokens, micro_batches, rate);
  if (times_) {
    times_->start();
  }
  recomputed_flops_ = 0.0;
  if (progress_.announced_rate()) {
    state_->announce(record_of(*rate, 1.0F));
  }
}

/// Its gradient has reached the state, and the step changes nothing all the same.
template <class D, class P, class S, class O>
void engine_core<D, P, S, O>::abandon_step() {
  expect(!(options_.configuration.immediate && progress_.announced_rate()), exit_code::bad_input,
         "a step begins, but the last one had no step(), and its buckets were updated as their gradients "
         "became final (offload::configuration::immediate); expected step() after the last backward()");
  static_cast<void>(check_gradient(0.0));
  state_->skip();
  progress_.end();
}

template <class D, class P, class S, class O>
double engine_core<D, P, S, O>::forward(data::batch const& batch) {
  expect_valid(batch);
  if (!progress_.is_under_way()) {
    begin_step(comm::sum_over_ranks(ranks_, batch.label_tokens()) / options_.sequence_ranks);
  }
  expect(!lost_, exit_code::nonfinite,
         "a gradient was not finite, and buckets were updated with it: continue from the last checkpoint");
  store_->set_last_micro_batch(progress_.is_last());
  if (progress_.is_first() || is_rank()) {  // a sharded store adds up micro-batches itself
    tape_->forget_gradients();
  }
  auto const sum = run_forward(batch, progress_.label_tokens(), true);
  progress_.forward();
  return sum / static_cast<double>(progress_.divisor());
}

template <class D, class P, class S, class O>
double engine_core<D, P, S, O>::run_forward(data::batch const& whole, std::int64_t divisor,
                                            bool with_backward) {
  std::optional<data::batch> slice;
  if (options_.sequence_ranks > 1) {
    slice = own_slice(whole);
  }
  data::batch const& batch = slice ? *slice : whole;
  if (with_backward) {
    auto const& choice = kept_->of(batch.rows());
    recomputed_flops_ += choice.recomputed_flops_per_token * static_cast<double>(batch.rows());
    tape_->retain(&choice.kept);
  }
  tape_->reset(with_backward);
  auto const& staged = staging_->put(batch, divisor);
  auto const loss = model_.loss(*tape_, staged, tables_);
  stream_->copy(loss_.data(), loss.total, sizeof(double));
  if (times_) {
    times_->synchronize(*stream_);
  } else {
    stream_->synchronize();
  }
  return comm::sum_over_ranks(ranks_, *loss_.template as<double>());
}

/// Before anything is queued.
template <class D, class P, class S, class O>
void engine_core<D, P, S, O>::expect_valid(data::batch const& whole) const {
  expect(initialized_, exit_code::bad_input,
         "an engine without weights was given a micro-batch; call initialize() first");
  expect(whole.rows() <= options_.max_rows, exit_code::bad_input, "a micro-batch of ", whole.rows(),
         " tokens, but engine_options::max_rows is ", options_.max_rows);
  for (std::size_t d = 1; d < whole.starts.size(); ++d) {
    auto const tokens = std::int64_t{whole.starts[d]} - whole.starts[d - 1];
    expect(tokens <= options_.max_positions, exit_code::bad_input, "a document of ", tokens,
           " tokens, but engine_options::max_positions is ", options_.max_positions);
  }
  data::expect_valid(whole, model_.settings().vocabulary, options_.max_positions);
}

/// All groups of ranks exchange at once, so the largest micro-batch decides the rows of all.
template <class D, class P, class S, class O>
data::batch engine_core<D, P, S, O>::own_slice(data::batch const& whole) const {
  auto const ranks = options_.sequence_ranks;
  return data::slice_of(whole, comm::max_over_ranks(ranks_, whole.rows()), ranks_.rank() % ranks, ranks,
                        options_.max_positions);
}

template <class D, class P, class S, class O>
void engine_core<D, P, S, O>::backward() {
  progress_.backward();
  tape_->backward();
  if (progress_.is_complete()) {
    store_->settle();
  }
}

template <class D, class P, class S, class O>
offload::gradient_check engine_core<D, P, S, O>::check_gradient(double rate) {
  profile::range const named{"gradient check"};
  if (progress_.label_tokens() == 0) {
    return {};
  }
  step_arguments const own{rate, static_cast<double>(progress_.label_tokens())};
  return state_->check_gradient(ranks_.ranks(), [&](double const* from, double* to, std::size_t count) {
    gather_with_arguments(ranks_, own, from, to, count);
  });
}

template <class D, class P, class S, class O>
step_result engine_core<D, P, S, O>::step(double rate) {
  progress_.expect_complete(rate);
  auto const gradient_check = check_gradient(rate);
  step_result result{.grad_norm = gradient_check.norm,
                     .factor = optim::clip_factor(gradient_check.norm, options_.max_grad_norm),
                     .accepted = gradient_check.finite && progress_.label_tokens() > 0};
  if (result.accepted) {
    enter_range("optimizer step");
    profile::range const named{"optimizer step"};
    state_->update(record_of(rate, result.factor));
    store_->weights_changed();
    ++accepted_steps_;
  } else {
    lost_ = options_.configuration.immediate && progress_.announced_rate().has_value();
    state_->skip();
  }
  progress_.end();
  return result;
}

template <class D, class P, class S, class O>
std::vector<float> engine_core<D, P, S, O>::logits(data::batch const& batch) {
  expect(options_.sequence_ranks == 1, exit_code::bad_input,
         "ranks that share rows have no logits of all rows, expected engine_options::sequence_ranks 1");
  expect_valid(batch);
  progress_.expect_nothing_recorded("logits()");
  auto const units = static_cast<int>(model_.units().size());
  auto const& staged = staging_->put(batch, 1);
  autograd::tape<D, T> dry{*device_, units};
  dry.reset(false);
  model_.logits(dry, staged, tables_);
  buffer<D> const memory{*device_, dry.peak_bytes()};
  autograd::tape<D, T> tape{*device_, *stream_, autograd::activation_arena{memory.data(), memory.bytes()},
                            autograd::unit_access::to(*aware_store_), units};
  tape.reset(false);
  auto const result = model_.logits(tape, staged, tables_);
  std::vector<float> values(static_cast<std::size_t>(result.count()));
  io_->fetch(result.value(), values);
  return values;
}

}  // namespace superoffload::train
