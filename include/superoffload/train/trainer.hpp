// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/bytes_text.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/data/mean_step.hpp>
#include <superoffload/data/row_sizes.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/engine/weights.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/planned_engine.hpp>
#include <superoffload/train/planning/alternatives.hpp>
#include <superoffload/train/planning/document_cost.hpp>
#include <superoffload/train/planning/step_plan.hpp>
#include <superoffload/train/reports/run_description.hpp>
#include <superoffload/train/run/activity.hpp>
#include <superoffload/train/run/metrics.hpp>
#include <superoffload/train/run/report.hpp>
#include <superoffload/train/run/run_data.hpp>
#include <superoffload/train/run/run_output.hpp>
#include <superoffload/train/run/run_report.hpp>
#include <superoffload/train/run/run_setup.hpp>
#include <superoffload/train/run/run_state.hpp>
#include <superoffload/train/run/run_summary.hpp>
#include <superoffload/train/run/shared_run.hpp>
#include <superoffload/train/run/stop_request.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>

namespace superoffload::train {

/// A whole fine-tuning run with an engine: data, schedule, evaluation, metrics, checkpoints, export. `Core`
/// is an engine_core, so a run is compiled once for all architectures. See train::trainer.
///
/// Larger members are defined outside the class, so that an explicit instantiation declaration keeps them
/// from being compiled elsewhere.
template <class Core>
class basic_trainer {
public:
  using device_type = typename Core::device_type;    ///< of the engine
  using element_type = typename Core::element_type;  ///< of working weights, activations and gradients
  using group_type = typename Core::group_type;      ///< by which ranks communicate

  /// Reads the data and makes the plan; allocates nothing large. All arguments must outlive this.
  basic_trainer(device_type& device, Core& engine, run_setup const& setup);
  basic_trainer(basic_trainer const&) = delete;
  basic_trainer& operator=(basic_trainer const&) = delete;
  ~basic_trainer();

  /// The plan of the steps, made before anything is allocated and followed by the run.
  [[nodiscard]] offload::plan const& plan() const noexcept { return planned_.plan; }
  /// The machine of the plan.
  [[nodiscard]] std::string const& machine_name() const noexcept { return planned_.machine.name; }
  /// Does this rank report, and write what is not sharded?
  [[nodiscard]] bool is_rank_zero() const noexcept { return setup_->is_rank_zero(); }
  /// The plan as text.
  [[nodiscard]] std::string plan_text() const;
  /// What else the run could be, planned with the rates that were measured for it: a table.
  [[nodiscard]] std::string alternatives_text() const;
  /// \throws error(cannot_fit) if the plan needs more memory than there is.
  void expect_fits() const { offload::expect_fits(planned_.plan); }

  /// A run is start(), step() until it returns false, and finish(). Every rank makes these calls. \throws
  /// error with the exit codes of docs/command-line.md; earlier checkpoints stay valid, the trainer is
  /// unusable then.
  ///
  /// Allocates what the plan says, reads the weights or the checkpoint to resume from, and evaluates.
  void start();
  /// Trains a step, and evaluates and saves when due. Returns false, and does nothing, at the end of the run
  /// or after a signal.
  bool step();
  /// Evaluates and exports the model; after a signal it saves a checkpoint instead.
  run_summary finish();
  /// All three.
  run_summary run();

private:
  [[nodiscard]] std::optional<expected_step> expected_of_data(training_options const& o) const;
  void settle_plan();
  [[nodiscard]] step_shape shape_with(training_options const& o) const;
  [[nodiscard]] run_description description() const;
  void settle_algorithms();
  void outline_without_tokens();
  template <class Body>
  auto guarded(Body&& body);
  void load();
  void tell_notes() const;
  void train_one_step();
  [[nodiscard]] std::optional<double> deepspeed_tflops(std::int64_t sequences, double seconds) const;
  void count_updates(step_metrics& m);
  void check_loss(step_result const& result, std::int64_t label_tokens);
  void evaluate_before();
  double evaluate();

  /// Ranks and micro-batches get parts of equal cost for this model. Batches have few sizes on a device that
  /// chooses algorithms by size.
  [[nodiscard]] data::loader_options shared_by_cost(data::loader_options options,
                                                    std::int64_t most_rows) const {
    options.cost = document_cost_of(engine_->model());
    options.most_rows = tuned_device<device_type> ? most_rows : 0;
    return options;
  }
  [[nodiscard]] bool has_tokenizer() const {
    return io::model_directory{setup_->options.model}.has("tokenizer.json");
  }
  [[nodiscard]] std::string element_name() const {
    return dtype_name<element_type>(engine_->model().settings());
  }
  [[nodiscard]] bool due(std::int64_t interval) const { return interval > 0 && state_.step % interval == 0; }

  device_type* device_;
  Core* engine_;
  run_setup const* setup_;
  planned_steps planned_;
  std::optional<run_data> data_;
  std::optional<data::loader> loader_;
  std::int64_t rows_ = 0;  // of the data set, if it is not tokenised
  std::int64_t total_steps_ = 0;
  run_state state_;
  offload::worker_counts counted_;
  std::optional<stop_request> stop_;  // from start() to finish()
  int signal_ = 0;
  std::optional<double> eval_before_;
  run_report report_;
  run_output<Core> output_;
};

template <class Core>
basic_trainer<Core>::basic_trainer(device_type& device, Core& engine, run_setup const& setup)
    : device_{&device},
      engine_{&engine},
      setup_{&setup},
      report_{setup.options, setup.is_rank_zero(), engine.model().units()},
      output_{device, engine, setup, state_, report_} {
  auto const& options = setup.options;
  expect_same_options(setup.ranks, options, element_name());
  output_.look_at_directory();
  expect_freezes_something(engine.model().units(), options);
  expect(engine.allocation().trainable_parameters > 0 || options.eval_only, exit_code::bad_input,
         "--freeze leaves no tensor to train");
  if (options.dry_run && (options.dataset.empty() || !has_tokenizer())) {
    outline_without_tokens();
  } else {
    activity const shown{"tokenizing", is_rank_zero()};
    comm::together(setup.ranks, [&] {
      data_.emplace(load_data(options, setup.config));
      output_.read_model_files();
    });
    loader_.emplace(data_->training, shared_by_cost(data_->loader_options(options), most_rows(options)));
    total_steps_ = options.eval_only       ? 0
                   : options.max_steps > 0 ? options.max_steps
                                           : loader_->steps_in(options.epochs);
  }
  activity const shown{"measuring and planning", is_rank_zero()};
  settle_plan();
}

template <class Core>
basic_trainer<Core>::~basic_trainer() = default;

template <class Core>
std::string basic_trainer<Core>::plan_text() const {
  return train::plan_text(*engine_, planned_.plan) +
         describe(setup_->options, {.sequences = data_ ? data_->training.size() : rows_,
                                    .tokens = data_ ? data_->epoch_tokens() : 0,
                                    .steps = total_steps_,
                                    .format = data_ ? data_->formats() : std::string{}});
}

/// What body() throws is told to the other ranks, and of a device that is lost what stands.
template <class Core>
template <class Body>
auto basic_trainer<Core>::guarded(Body&& body) {
  try {
    return body();
  } catch (error const& e) {
    stop_.reset();
    setup_->ranks.abort(e.what());  // before collectives that wait for the other ranks are destroyed
    report_.failed(e.what());
    if (e.code() != exit_code::device_lost) {
      throw;
    }
    try {  // a running write reads from a copy in host memory
      output_.wait();
    } catch (error const&) {}  // the checkpoint before it is valid
    fail(e.code(), e.what(), "; ", output_.last_checkpoint(),
         output_.checkpoint().empty() ? "" : ", --resume goes on from it");
  } catch (std::exception const& e) {
    stop_.reset();
    setup_->ranks.abort(e.what());
    throw;
  }
}

template <class Core>
run_summary basic_trainer<Core>::run() {
  start();
  while (step()) {}
  return finish();
}

template <class Core>
void basic_trainer<Core>::start() {
  guarded([this] {
    stop_.emplace();
    load();
    if (!setup_->options.eval_only) {
      settle_algorithms();
      output_.begin();
    }
    report_.begin(state_.step, total_steps_);
    evaluate_before();
  });
}

template <class Core>
bool basic_trainer<Core>::step() {
  return guarded([this] {
    if (state_.step >= total_steps_ ||
        (signal_ = comm::max_over_ranks(setup_->ranks, stop_->signal())) != 0) {
      return false;
    }
    train_one_step();
    output_.look();
    if (due(setup_->options.eval_steps) && state_.step < total_steps_) {
      evaluate();
    }
    if (due(setup_->options.save_steps)) {
      output_.save();
    }
    return true;
  });
}

template <class Core>
run_summary basic_trainer<Core>::finish() {
  return guarded([this] {
    report_.end_steps(engine_->times());
    run_summary summary;
    summary.steps = state_.step;
    summary.eval_before = eval_before_;
    summary.signal = signal_;
    summary.planned = {planned_.plan.step_time,
                       static_cast<double>(detail::expected_of(planned_.shape).tokens)};
    summary.measured = report_.mean_step();
    summary.is_rank_zero = is_rank_zero();
    if (signal_ != 0) {
      output_.save();
    } else if (!setup_->options.eval_only) {
      if (!data_->held_out.empty()) {
        summary.eval_after = evaluate();
      }
      if ((setup_->options.save_steps > 0 || setup_->options.save_at_end) && !output_.saved()) {
        output_.save();
      }
      if (setup_->options.exports) {
        summary.exported = output_.export_to("model");
      }
    }
    output_.wait();
    summary.checkpoint = output_.checkpoint();
    report_.end(signal_);
    stop_.reset();
    return summary;
  });
}

template <class Core>
void basic_trainer<Core>::load() {
  auto const& options = setup_->options;
  io::hub_checkpoint const weights = io::hub_checkpoint::open(options.model_source());
  expect_quantisation(setup_->config, weights);
  expect_tensors(engine_->model().units(), weights);
  expect_fits();  // after the checks of the tensors, whose messages are more precise
  state_.identity = identity_of(options, setup_->config, *data_, element_name());
  state_.settings = settings_of(options, output_.model_files(), *data_);
  output_.expect_resumable();
  output_.claim_directory(total_steps_);
  {
    activity const shown{"reading the weights", is_rank_zero(), static_cast<std::size_t>(weights.bytes())};
    engine_->initialize(weights_of(weights));
  }
  if (is_rank_zero()) {
    for (auto const& line : engine_->state().notes()) { log_line(log_level::note, line); }
  }
  {
    activity const shown{"reading the checkpoint", is_rank_zero() && !options.resume.empty()};
    output_.resume(*loader_);
  }
  comm::together(setup_->ranks, [this] { output_.settle_directory(description()); });
  output_.expect_shared();
  tell_notes();
}

/// What the user may not expect of this run. Said when nothing else can refuse it.
template <class Core>
void basic_trainer<Core>::tell_notes() const {
  if (!is_rank_zero() || !data_) {
    return;
  }
  for (auto const& line : data_->notes) { log_line(log_level::note, line); }
  auto const warm_up = setup_->options.warmup_steps;
  if (total_steps_ > 0 && warm_up >= total_steps_) {
    log(log_level::note, "--lr_warmup_steps is ", warm_up, ", but the run has ", total_steps_,
        " steps: the rate never reaches --lr");
  }
  if (state_.step > 0 && state_.step >= total_steps_) {
    log(log_level::note, "the run ends at step ", total_steps_, ", and its checkpoint is at step ",
        state_.step, ": nothing is trained; more --max_steps or --num_train_epochs continue it");
  }
}

/// What the reports say of the run.
template <class Core>
run_description basic_trainer<Core>::description() const {
  auto const& m = planned_.machine;
  auto const gib = [](std::size_t bytes) { return bytes_text(bytes); };
  auto const teraflops = [](double rate) { return concat(std::round(1e-10 * rate) / 100.0, " TFLOP/s"); };
  auto const gigabytes = [](double rate) { return concat(std::round(1e-7 * rate) / 100.0, " GB/s"); };
  run_description d{.identity = {},
                    .title = concat("fine-tuning ", setup_->options.model.filename().string()),
                    .settings = reported_settings(setup_->options),
                    .machine = {{"machine", m.name},
                                {"device", device_->description()},
                                {"element type", element_name()},
                                {"ranks", concat(setup_->options.ranks)},
                                {"device memory", gib(m.device.memory)},
                                {"host memory", gib(m.host.memory)},
                                {"host cores", concat(m.host.cores)},
                                {"GEMMs", teraflops(m.device.gemms)},
                                {"memory of the device", gigabytes(m.device.bandwidth)}},
                    .plan_text = plan_text(),
                    .plan = planned_.plan,
                    .gemm_rate = m.device.gemms * setup_->options.ranks,
                    .units = {},
                    .total_steps = total_steps_,
                    .wandb = setup_->options.wandb};
  if (m.link.alone.down > 0.0) {
    d.machine.emplace_back("link to the host", gigabytes(m.link.alone.down));
    d.machine.emplace_back("link to the device", gigabytes(m.link.alone.up));
    d.machine.emplace_back("threads of CPU Adam", concat(m.adam.threads));
  }
  for (auto const& unit : engine_->model().units()) { d.units.push_back(unit.name()); }
  return d;
}

/// The mean step of the data set, if it is tokenised. Its micro-batch has documents of one length, with as
/// many pairs in attention as the actual ones have.
template <class Core>
std::optional<expected_step> basic_trainer<Core>::expected_of_data(training_options const& o) const {
  if (!data_) {
    return std::nullopt;
  }
  auto const mean =
      data::mean_step_of(data_->training, shared_by_cost(data_->loader_options(o), most_rows(o)));
  auto const rounded = [](double value, std::int64_t most) {
    return std::clamp<std::int64_t>(std::llround(value), 1, most);
  };
  auto const rows = rounded(mean.batch_rows, most_rows(o));
  return expected_step{
      {data::rows_of_slice(rows, o.sequence_ranks),
       rounded(mean.square / mean.batch_rows, std::min(rows, o.max_length)), o.sequence_ranks},
      std::llround(mean.tokens)};
}

/// Plans the steps and configures the engine. If the plan does not fit, its refusal names flags with which it
/// would.
template <class Core>
void basic_trainer<Core>::settle_plan() {
  auto const& options = setup_->options;
  auto const asked = shape_of(options);
  planned_ = plan_engine(*engine_, {.offload = options.offload,
                                    .micro_batches = asked.micro_batches,
                                    .checks_gradient = asked.checks_gradient,
                                    .hit_rate = output_.hit_rate_before(),
                                    .expected = expected_of_data(options)});
  if (!planned_.plan.fits) {
    planned_.plan.refusal =
        refusal_of(planned_.plan, device_->description(), options, [this](training_options const& o) {
          return step_fits(dry_model_of<element_type>(*device_, engine_->model().with_tiled_mlp(o.tiled_mlp)),
                           shape_with(o), planned_.machine, planned_.settings);
        });
  }
}

/// The steps of this engine with other options. \throws error(bad_input) if ranks cannot share the rows of
/// this model's micro-batches as the options say
template <class Core>
step_shape basic_trainer<Core>::shape_with(training_options const& o) const {
  expect_shareable(o.sequence_ranks, o.ranks, engine_->model().settings());
  auto other = shape_of(o);
  other.hit_rate = planned_.shape.hit_rate;
  other.offloads = planned_.shape.offloads;
  other.whole_gradients = planned_.shape.whole_gradients;
  return other;
}

template <class Core>
std::string basic_trainer<Core>::alternatives_text() const {
  activity const shown{"planning alternatives", is_rank_zero()};
  auto options = setup_->options;
  options.offload = planned_.settings;
  auto const& machine = planned_.machine;
  bool const one_memory = machine.device.is_the_host;
  run_planner const planner{
      .plan =
          [&](training_options const& other) {
            auto shape = shape_with(other);
            shape.expected = expected_of_data(other);
            return plan_step(
                dry_model_of<element_type>(*device_, engine_->model().with_tiled_mlp(other.tiled_mlp)), shape,
                within_budget(machine, other.offload), other.offload);
          },
      .fits_in =
          [&](std::size_t on_device, std::size_t on_host) {
            return step_fits(dry_model_of<element_type>(*device_, engine_->model()), planned_.shape,
                             offload::with_memory(machine, on_device, on_host), options.offload);
          },
      .one_memory = one_memory,
      .rates_of_offloading = !one_memory && options.offload.how != offload::mode::none,
      .ranks_of_host = machine.peers.ranks_of_host};
  return describe(alternatives_of(options, planned_.plan, planner));
}

/// Lets the device measure its algorithms for the expected micro-batch, for smaller and larger ones and for
/// the largest now, and not in a step, by steps without labels: these change nothing.
template <class Core>
void basic_trainer<Core>::settle_algorithms() {
  if constexpr (tuned_device<device_type>) {
    auto& tuning = device_->tuning();
    tuning.settle(false);  // of a run before
    activity const shown{"measuring GEMMs", is_rank_zero()};
    auto const& options = engine_->options();
    auto const usual = options.sequence_ranks * detail::expected_of(planned_.shape).micro_batch.rows;
    auto const micro_batches = std::min<std::int64_t>(setup_->options.accumulation, 2);
    // Others take the choice of the nearest. What is near the largest fills a GPU as the largest does. Where
    // the mean is, smaller ones are rare.
    auto const largest = std::min(options.max_rows, options.sequence_ranks * tuning.most_tokens);
    std::set<std::int64_t> sizes{largest};
    for (auto const share : {1.0, std::numbers::sqrt2 / 2, std::numbers::sqrt2}) {
      auto const rows = std::llround(share * static_cast<double>(usual));
      if (5 * rows > 4 * largest) {
        break;
      }
      sizes.insert(data::rounded_rows(rows, options.max_rows));
    }
    for (auto const rows : sizes) {
      data::batch batch;
      data::add_rows_without_targets(batch, rows, options.max_positions, data_->pad_id);
      engine_->begin_step(0, micro_batches);
      for (std::int64_t i = 0; i < micro_batches; ++i) {
        engine_->forward(batch);
        engine_->backward();
      }
      engine_->step(0.0);
    }
    engine_->synchronize();
    tuning.settle(true);
  }
}

/// Counts a dry run's steps from the rows of the data set alone.
template <class Core>
void basic_trainer<Core>::outline_without_tokens() {
  total_steps_ = setup_->options.max_steps;
  if (setup_->options.dataset.empty()) {
    return;
  }
  rows_ = count_rows(setup_->options);
  if (total_steps_ == 0 && !setup_->options.packing && setup_->options.tokens_per_batch == 0) {
    auto const per_epoch = (rows_ + setup_->options.batch_size - 1) / setup_->options.batch_size;
    total_steps_ =
        static_cast<std::int64_t>(std::ceil(static_cast<double>(per_epoch) * setup_->options.epochs - 1e-6));
  }
}

template <class Core>
void basic_trainer<Core>::train_one_step() {
  using clock = std::chrono::steady_clock;
  auto const begin = clock::now();
  auto const data = loader_->next();
  step_metrics m;
  m.lr = learning_rate(setup_->options, state_.step, total_steps_);
  engine_->begin_step(data.label_tokens, static_cast<std::int64_t>(data.micro_batches.size()), m.lr);
  for (auto const& micro_batch : data.micro_batches) {
    m.loss += engine_->forward(micro_batch);
    engine_->backward();
  }
  auto const result = engine_->step(m.lr);
  ++state_.step;
  state_.accepted_steps = engine_->accepted_steps();
  state_.where = loader_->where();
  check_loss(result, data.label_tokens);
  m.step = state_.step;
  report_.look_at_times(engine_->times(), m);

  double const seconds = std::chrono::duration<double>(clock::now() - begin).count();
  auto const& model = engine_->model();
  double const forward = model.forward_flops(data.tokens, [&](std::int32_t window) {
    std::int64_t pairs = 0;
    for (auto const length : data.lengths) { pairs += kernel::visible_pairs(length, window); }
    return pairs;
  });
  m.grad_norm = result.grad_norm;
  m.epoch = data.epoch;
  m.step_time_ms = seconds * 1e3;
  m.tokens_per_second = static_cast<double>(data.tokens) / seconds;
  m.label_tokens = data.label_tokens;
  m.tokens = data.tokens;
  m.model_tflops = 3.0 * forward / seconds * 1e-12;
  m.hardware_tflops = (3.0 * forward + engine_->recomputed_flops()) / seconds * 1e-12;
  m.deepspeed_tflops = deepspeed_tflops(data.sequences, seconds);
  m.host_bytes = peak_resident_bytes();
  m.device_bytes = device_->peak_bytes();
  m.skipped = !result.accepted;
  count_updates(m);
  report_.step(m);
}

/// TFLOP/s by the formula of DeepSpeed's SuperOffload example (finetune_zero3.py), which is for dense models;
/// none: nobody asked for a breakdown.
template <class Core>
std::optional<double> basic_trainer<Core>::deepspeed_tflops(std::int64_t sequences, double seconds) const {
  auto const& config = setup_->config;
  if (!setup_->options.wall_clock_breakdown || config.experts > 0) {
    return std::nullopt;
  }
  auto const& allocation = engine_->allocation();
  double const passes = allocation.recomputed_flops_per_token > 0.0 ? 4.0 : 3.0;
  auto const length = static_cast<double>(setup_->options.max_length);
  double const of_sequence =
      2.0 * passes * static_cast<double>(allocation.parameters) * length +
      4.0 * passes * static_cast<double>(config.layers * config.hidden) * length * length;
  return 1e-12 * static_cast<double>(sequences) * of_sequence / seconds;
}

/// Counts this step's updates of buckets off the device.
template <class Core>
void basic_trainer<Core>::count_updates(step_metrics& m) {
  auto const& buckets = engine_->options().configuration.buckets;
  if (std::any_of(buckets.begin(), buckets.end(),
                  [](auto const& b) { return b.where != offload::tier::resident; })) {
    auto const counts = engine_->state().counts();
    m.buckets = counts - counted_;
    m.hit_rate = engine_->state().hit_rate();
    counted_ = counts;
  }
}

template <class Core>
void basic_trainer<Core>::check_loss(step_result const& result, std::int64_t label_tokens) {
  if (result.accepted) {
    state_.skips_in_a_row = 0;
    return;
  }
  if (label_tokens == 0) {
    return;
  }
  output_.wait();
  auto const last = output_.last_checkpoint();
  expect(setup_->options.nonfinite == on_nonfinite::skip, exit_code::nonfinite, "step ", state_.step,
         ": the gradient is not finite; weights are unchanged, ", last,
         "; a lower --lr or --max_grad_norm may help");
  ++state_.skips_in_a_row;
  expect(state_.skips_in_a_row < setup_->options.most_skips, exit_code::nonfinite, "step ", state_.step,
         ": the gradient was not finite in ", state_.skips_in_a_row,
         " steps in a row; weights are unchanged, ", last);
}

/// The loss before the first step is that of the run, also of one that is resumed.
template <class Core>
void basic_trainer<Core>::evaluate_before() {
  if (data_->held_out.empty()) {
    return;
  }
  if (state_.step > 0 && state_.first_eval_loss >= 0.0) {
    eval_before_ = state_.first_eval_loss;
    return;
  }
  eval_before_ = evaluate();
  if (state_.step == 0 && std::isfinite(*eval_before_)) {
    state_.first_eval_loss = *eval_before_;
  }
}

template <class Core>
double basic_trainer<Core>::evaluate() {
  std::optional<activity> shown;
  shown.emplace("evaluating", is_rank_zero());
  data::loader held_out{data_->held_out, shared_by_cost(data_->evaluation_options(setup_->options),
                                                        most_rows(setup_->options))};
  double sum = 0.0;
  std::int64_t targets = 0;
  for (std::int64_t i = held_out.steps_per_epoch(); i > 0; --i) {
    auto const batches = held_out.next();
    for (auto const& batch : batches.micro_batches) { sum += engine_->evaluate(batch); }
    targets += batches.label_tokens;
  }
  shown.reset();
  double const loss = sum / static_cast<double>(std::max<std::int64_t>(1, targets));
  report_.evaluation({.step = state_.step, .loss = loss, .label_tokens = targets});
  if (setup_->options.export_best && state_.step > 0 &&
      (state_.best_eval_loss < 0.0 || loss < state_.best_eval_loss)) {
    state_.best_eval_loss = loss;
    output_.export_to("model-best");
  }
  return loss;
}

namespace detail {
/// The members of a trainer that are constructed before its run and destroyed after it.
template <class Engine>
struct below_run {
  run_setup setup;
  Engine engine;

  below_run(typename Engine::device_type& device, training_options options,
            typename Engine::group_type* group)
      : setup{std::move(options), comm::host_group_of(group),
              model::own_family<typename Engine::architecture_type>()},
        engine{device, group, setup.config, engine_options_of(setup.options)} {}
};
}  // namespace detail

/// A fine-tuning run with its engine.
template <class Engine>
class trainer : private detail::below_run<Engine>, public basic_trainer<typename Engine::core_type> {
  using below_run = detail::below_run<Engine>;
  using run_type = basic_trainer<typename Engine::core_type>;

public:
  using typename run_type::device_type;  ///< of the engine
  using typename run_type::group_type;   ///< by which ranks communicate

  /// Reads configuration and data and makes the plan; allocates nothing large. `group` must outlive this;
  /// null: a single rank. Each rank of a group has a trainer, with the same options except for the rank.
  explicit trainer(device_type& device, training_options options, group_type* group = nullptr)
      : below_run{device, std::move(options), group}, run_type{device, below_run::engine, below_run::setup} {}

  /// The trainer's own engine.
  [[nodiscard]] Engine& engine() noexcept { return below_run::engine; }
};

}  // namespace superoffload::train
