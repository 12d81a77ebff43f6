// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/train/checkpoint_writer.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/metrics.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/plan_file.hpp>
#include <superoffload/train/progress.hpp>
#include <superoffload/train/report.hpp>
#include <superoffload/train/run_data.hpp>
#include <superoffload/train/run_directory.hpp>
#include <superoffload/train/run_state.hpp>
#include <superoffload/train/shared_run.hpp>
#include <superoffload/train/step_plan.hpp>
#include <superoffload/train/step_trace.hpp>
#include <superoffload/train/stop_request.hpp>
#include <superoffload/train/weights.hpp>
#include <superoffload/zero/gradient_layout.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::train {

/// How a run ended.
struct run_summary {
  std::int64_t steps = 0;
  std::optional<double> eval_before, eval_after;  ///< mean loss per label token of the held-out data
  std::filesystem::path exported;                 ///< empty: nothing was exported
  std::filesystem::path checkpoint;               ///< the last one, saved or resumed from; empty: none
  int signal = 0;                                 ///< that ended the run early; 0: it went to its end
  double planned_step_time = 0.0;                 ///< s, of steps whose micro-batches are full
  std::optional<double> median_step_time;         ///< s; none: there was no step
};

/// A whole fine-tuning run above an engine: data, schedule, evaluation, metrics, checkpoints, export.
template <class Engine>
class trainer {
public:
  using device_type = typename Engine::device_type;
  using element_type = typename Engine::element_type;
  using group_type = typename Engine::group_type;

  /// Reads configuration and data and makes the plan; allocates nothing large. Ranks that train together each
  /// have a trainer, with the same options but for their number, and a group that outlives it: null for one
  /// alone.
  explicit trainer(device_type& device, training_options options, group_type* group = nullptr)
      : device_{&device},
        ranks_{comm::host_group_of(group)},
        options_{checked(std::move(options), ranks_)},
        config_{config_of(options_, ranks_)},
        engine_{device, group, config_, engine_options_of(options_)} {
    expect_told_alike(ranks_, options_, element_name());
    look_at_directory();
    expect_length(options_, config_);
    expect_trainable();
    settle_plan(group);
    if (options_.dry_run && (options_.dataset.empty() || !has_tokenizer())) {
      outline_without_tokens();
    } else {
      comm::together(ranks_, [this] {
        data_.emplace(load_data(options_, config_));
        files_ = io::model_files::read(options_.model);
      });
      loader_.emplace(data_->training, data_->loader_options(options_));
      total_steps_ = options_.max_steps > 0 ? options_.max_steps : loader_->steps_in(options_.epochs);
    }
  }
  trainer(trainer const&) = delete;
  trainer& operator=(trainer const&) = delete;

  /// What a step will take and do: decided before anything is allocated, and obeyed.
  [[nodiscard]] offload::plan const& plan() const noexcept { return plan_; }
  /// The machine that it was made for.
  [[nodiscard]] std::string const& machine_name() const noexcept { return machine_name_; }
  /// Is this the rank that tells how the run goes, and writes what is not sharded?
  [[nodiscard]] bool speaks() const noexcept { return ranks_.is_first(); }
  /// The plan as text.
  [[nodiscard]] std::string plan_text() const {
    return describe(plan_, engine_.plan(), config_, options_,
                    {.device = device_->description(),
                     .element_type = element_name(),
                     .attention = attention_name(),
                     .sequences = data_ ? data_->training.size() : rows_,
                     .tokens = data_ ? data_->training.tokens() : 0,
                     .steps = total_steps_,
                     .lockable = device_->lockable_bytes()});
  }
  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  /// \throws error(cannot_fit) when the plan needs more memory than there is.
  void expect_fits() const { offload::expect_fits(plan_); }

  /// Trains to the end or to a signal. \throws error as the exit codes say; what was saved before stays
  /// valid.
  run_summary run() {
    try {
      return run_to_the_end();
    } catch (error const& e) {
      ranks_.abort(e.what());  // before what waits for the others is destroyed
      if (e.code() != exit_code::device_lost) {
        throw;
      }
      try {  // one that is being written is written from a copy in the host's memory
        announce(checkpoints_ ? checkpoints_->wait() : std::nullopt);
      } catch (error const&) {}  // the one before stands
      fail(e.code(), e.what(), "; ", last_checkpoint(),
           checkpoint_.empty() ? "" : ", --resume goes on from it");
    } catch (std::exception const& e) {
      ranks_.abort(e.what());
      throw;
    }
  }

private:
  run_summary run_to_the_end() {
    stop_request const stop;
    start();
    run_summary summary;
    unit_names_.clear();
    for (auto const& unit : engine_.model().units()) { unit_names_.push_back(unit.name()); }
    trace_.reset();
    if (!options_.trace.empty()) {
      trace_.emplace(unit_names_);
      io::replace_file(options_.trace,
                       trace_->json({}));  // what cannot be written ends the run now, not later
    }
    if (speaks()) {
      progress_.emplace(state_.step, total_steps_, options_.log_interval);
    }
    checkpoints_.emplace(options_.output, options_.save_total_limit, ranks_,
                         directory_ ? directory_->run() : "");
    if (!data_->held_out.empty()) {
      summary.eval_before = evaluate();
    }
    while (state_.step < total_steps_ && (summary.signal = comm::most_of_ranks(ranks_, stop.signal())) == 0) {
      train_one_step();
      announce(checkpoints_->completed());
      if (due(options_.eval_steps) && state_.step < total_steps_) {
        evaluate();
      }
      if (due(options_.save_steps)) {
        save();
      }
    }
    if (trace_ && trace_->steps() > 0) {  // the run was shorter
      write_trace();
    }
    summary.steps = state_.step;
    summary.planned_step_time = plan_.step_time;
    summary.median_step_time = median_step_time();
    if (summary.signal != 0) {
      save();
    } else {
      if (!data_->held_out.empty()) {
        summary.eval_after = evaluate();
      }
      if (options_.save_steps > 0 && saved_step_ != state_.step) {
        save();
      }
      summary.exported = export_to("model");
    }
    announce(checkpoints_->wait());
    summary.checkpoint = checkpoint_;
    progress_.reset();
    return summary;
  }

  static model::config config_of(training_options const& options, comm::host_group const& ranks) {
    std::optional<model::config> config;
    comm::together(ranks, [&] { config = model::read_config(options.model); });
    return *std::move(config);
  }
  static training_options checked(training_options options, comm::host_group const& ranks) {
    check(options);
    expect(options.rank == ranks.rank() && options.ranks == ranks.ranks(), exit_code::internal,
           "options of rank ", options.rank, " of ", options.ranks, " for rank ", ranks.rank(), " of ",
           ranks.ranks());
    if (!ranks.is_first()) {  // it does not speak
      options.metrics.clear();
      options.trace.clear();
      options.wall_clock_breakdown = false;
    }
    return options;
  }

  /// Plans the steps, and lets the engine take what the plan says: places of the optimizer's state, and what
  /// is computed again.
  void settle_plan(group_type* group) {
    auto s = options_.offload;
    if constexpr (!Engine::arranges) {
      expect(s.how == offload::mode::none || (s.how == offload::mode::automatic && !s.ratio),
             exit_code::bad_input, "--offload super|zero needs an engine with offload::super");
      s.how = offload::mode::none;
    }
    auto const machine = machine_for<element_type>(*device_, engine_.model(), shape_of(options_), s, group);
    machine_name_ = machine.name;
    auto const shape = [&, whole_gradients = whole_gradients_of(engine_),
                        acceptance = acceptance_before()](training_options const& o) {
      auto of_engine = shape_of(o);
      of_engine.acceptance = acceptance;
      of_engine.flows = lets_flow(engine_, o.ranks);
      of_engine.whole_gradients = whole_gradients;
      return of_engine;
    };
    plan_ = plan_step<element_type>(*device_, engine_.model(), shape(options_), machine, s);
    comm::expect_same(ranks_, "the plan", to_json(plan_, {}));
    engine_.arrange(plan_.state, plan_.on_device.total());
    if (!plan_.fits) {
      plan_.refusal = refusal_of(plan_, device_->description(), options_, [&](training_options const& o) {
        return step_fits<element_type>(*device_, engine_.model(), shape(o), machine, s);
      });
    }
  }

  /// How often steps were accepted in the run that is resumed; 1 where that is not known, or cannot be read:
  /// who resumes says why.
  [[nodiscard]] double acceptance_before() const {
    try {
      auto const found = checkpoint_to_resume();
      return found ? parse_run_state(found->state_json(), found->directory().string()).acceptance : 1.0;
    } catch (error const&) { return 1.0; }
  }

  static engine_options engine_options_of(training_options const& o) {
    engine_options e;
    e.adamw = o.adamw;
    e.max_grad_norm = o.max_grad_norm;
    e.max_rows = most_rows(o);
    e.max_positions = o.max_length;
    e.accumulates = o.accumulation > 1;
    e.recompute = o.recompute;
    e.records = o.wall_clock_breakdown || !o.trace.empty();
    e.trainable = trained_by(o);
    if (o.undecayed == no_decay::norms_and_biases) {
      e.decays = [](autograd::tensor_entry const& tensor) { return tensor.shape.size() > 1; };
    }
    return e;
  }

  /// What a dry run can tell from the data set's rows alone.
  void outline_without_tokens() {
    total_steps_ = options_.max_steps;
    if (options_.dataset.empty()) {
      return;
    }
    rows_ = count_rows(options_);
    if (total_steps_ == 0 && !options_.packing) {
      auto const per_epoch = (rows_ + options_.batch_size - 1) / options_.batch_size;
      total_steps_ =
          static_cast<std::int64_t>(std::ceil(static_cast<double>(per_epoch) * options_.epochs - 1e-6));
    }
  }

  [[nodiscard]] bool has_tokenizer() const {
    return std::filesystem::exists(options_.model / "tokenizer.json");
  }
  static std::string element_name() { return std::is_same_v<element_type, bfloat16> ? "bf16" : "float32"; }
  [[nodiscard]] std::string attention_name() const {
    if constexpr (requires { device_->attention(); }) {
      return device_->attention() != nullptr ? device_->attention()->name() : "flash";
    } else {
      return {};
    }
  }
  [[nodiscard]] bool due(std::int64_t interval) const { return interval > 0 && state_.step % interval == 0; }

  // Start -------------------------------------------------------------------------------------------------

  void start() {
    io::hub_checkpoint const weights = io::hub_checkpoint::open(options_.model);
    expect_quantisation(config_, weights);
    expect_tensors(engine_.model().units(), weights);
    expect_fits();  // sizes that the tensors have, too
    state_.identity = identity_of(options_, config_, *data_, element_name());
    state_.settings = settings_of(options_, *files_, *data_);
    expect_resumable();
    comm::together(ranks_, [this] { claim_directory(); });
    engine_.initialize(weights_of(weights));
    if constexpr (Engine::arranges) {
      if (auto const* workers = engine_.state().workers(); workers != nullptr && speaks()) {
        for (auto const& line : workers->notes()) { std::fprintf(stderr, "note: %s\n", line.c_str()); }
      }
    }
    resume();
    comm::together(ranks_, [this] { settle_directory(); });
  }

  // The first rank alone has to do with the directory, where all of them count as one run.
  void look_at_directory() {
    comm::together(ranks_, [this] {
      if (speaks() && !options_.dry_run) {
        directory_.emplace(options_);
        directory_->expect_own();
      }
    });
  }
  /// What can be known of saving and exporting before weights are read.
  void claim_directory() {
    if (!directory_) {
      return;
    }
    directory_->claim(state_);
    if (!directory_->weakness().empty()) {
      std::fprintf(stderr, "note: %s: take care that no other run writes there\n",
                   directory_->weakness().c_str());
    }
    auto const expect_exportable = [&](std::string const& name) {
      io::expect_exportable(options_.model, options_.output / name);
    };
    expect_exportable("model");
    if (options_.export_best) {
      expect_exportable("model-best");
    }
    if (options_.export_every_save) {
      for (auto const& name : io::list_directory(options_.output)) {
        if (name.starts_with("model-step-")) {
          expect_exportable(name);
        }
      }
    }
    if (!directory_->has_others()) {
      expect_room();
    }
  }
  /// What only a run that is sure to begin may change.
  void settle_directory() {
    if (!directory_) {
      return;
    }
    if (!options_.metrics.empty()) {
      metrics_.emplace(options_.metrics, saved_step_);
    }
    if (directory_->has_others()) {
      directory_->remove_others();
      expect_room();
    }
    directory_->record(state_);
  }

  /// For the export at the end, beside what it replaces, and for one more checkpoint where any is to be
  /// saved.
  void expect_room() const {
    std::uint64_t exported = files_->bytes(), saved = 0;
    for (auto const& unit : engine_.model().units()) {
      exported += static_cast<std::uint64_t>(unit.elements()) * sizeof(element_type);
    }
    if (options_.save_steps > 0 && resumed_at_ < total_steps_) {
      for (auto const& field : engine_.state_fields()) { saved += field.bytes; }
    }
    auto const free = io::free_bytes(options_.output);
    expect(exported + saved <= free, exit_code::io_failure, io::shown(options_.output), ": has ",
           bytes_text(free), " free, but the export takes ", bytes_text(exported),
           saved == 0 ? std::string{} : concat(" and a checkpoint ", bytes_text(saved)),
           "; make room, or choose another --output_dir");
  }

  void expect_trainable() const {
    for (auto const& pattern : options_.freeze) { expect_freezes_something(pattern); }
    expect(engine_.plan().trainable_parameters > 0, exit_code::bad_input,
           "--freeze leaves no tensor to train");
  }

  void expect_freezes_something(std::string const& pattern) const {
    for (auto const& unit : engine_.model().units()) {
      for (auto const& tensor : unit.tensors()) {
        if (matches(pattern, tensor.name)) {
          return;
        }
      }
    }
    fail(exit_code::bad_input, "--freeze '", printable(pattern), "' matches no tensor of the model");
  }

  /// What the manifest tells, before weights are read.
  void expect_resumable() {
    if (auto const found = checkpoint_to_resume()) {
      resumed_at_ = saved_state(*found).step;
    }
  }
  [[nodiscard]] std::optional<io::checkpoint_reader> checkpoint_to_resume() const {
    if (options_.resume.empty()) {
      return std::nullopt;
    }
    return options_.resume == "auto" ? io::newest_checkpoint(
                                           options_.output, [](std::string const&) {}, [](auto const&) {})
                                     : io::checkpoint_reader::open(options_.resume);
  }

  /// \throws error(bad_input) unless the checkpoint is of such a run as this one.
  run_state saved_state(io::checkpoint_reader const& checkpoint) const {
    auto const origin = checkpoint.directory().string();
    auto saved = parse_run_state(checkpoint.state_json(), origin);
    expect_same_identity(saved, state_, origin);
    auto const other = differences(saved.settings, state_.settings);
    expect(other.empty() || options_.resume != "auto", exit_code::bad_input, origin,
           ": is of a run that differs: ", other, "; use the same, or --resume ", origin,
           " to go on with what is new");
    return saved;
  }

  void resume() {
    if (options_.resume.empty()) {
      return;
    }
    std::vector<std::string> rejected;  // newest first
    bool found = true;
    if (options_.resume == "auto") {
      found = io::newest_checkpoint(
                  options_.output, [&](std::string const& reason) { rejected.push_back(reason); },
                  [this](io::checkpoint_reader const& checkpoint) { take(checkpoint); })
                  .has_value();
    } else {
      take(io::checkpoint_reader::open(options_.resume));
    }
    comm::expect_same(ranks_, "the step to go on from", concat(state_.step));
    expect(found || rejected.empty(), exit_code::bad_input, options_.output.string(),
           ": no checkpoint is valid: ", rejected.empty() ? "" : rejected.front(),
           "; start without --resume to begin anew");
    if (!speaks()) {
      return;
    }
    for (auto const& reason : rejected) { std::fprintf(stderr, "passed over: %s\n", reason.c_str()); }
    if (!changed_.empty()) {
      std::fprintf(stderr, "note: goes on otherwise than it began: %s\n", changed_.c_str());
    }
    if (found) {
      std::fprintf(stderr, "resumed at step %lld from %s\n", static_cast<long long>(state_.step),
                   checkpoint_.c_str());
    } else {
      std::fprintf(stderr, "no checkpoint in %s: starting at step 0\n", options_.output.c_str());
    }
  }

  /// Overwrites the whole state: where reading fails in the middle, another checkpoint may be taken.
  void take(io::checkpoint_reader const& checkpoint) {
    comm::expect_same(ranks_, "the checkpoint to go on from", concat(checkpoint.step()));
    auto saved = saved_state(checkpoint);
    // What one rank cannot read none of them takes.
    comm::together(ranks_, [&] {
      read_state(checkpoint);
      take_tuning(checkpoint);
    });
    engine_.set_accepted_steps(saved.accepted_steps);
    loader_->seek(saved.where);
    changed_ = saved.settings.empty() ? std::string{"the checkpoint does not say with which settings"}
                                      : differences(saved.settings, state_.settings);
    saved.identity = state_.identity;
    saved.settings = state_.settings;
    state_ = std::move(saved);
    saved_step_ = state_.step;
    checkpoint_ = checkpoint.directory();
  }

  void read_state(io::checkpoint_reader const& checkpoint) {
    std::vector<std::byte> chunk(std::size_t{4} << 20);
    for (auto const& field : engine_.state_fields()) {
      auto const bytes = checkpoint.whole_bytes(field.name);
      expect(bytes == field.bytes, exit_code::bad_input, checkpoint.directory().string(), ": '", field.name,
             "' has ", bytes, " bytes, expected ", field.bytes);
      auto const kept = engine_.kept_here(field);
      engine_.write_state(field, 0, {});  // also where nothing of it is
      for (std::size_t done = 0; done < kept.bytes; done += chunk.size()) {
        std::span<std::byte> const part{chunk.data(), std::min(chunk.size(), kept.bytes - done)};
        checkpoint.read_whole(field.name, kept.offset + done, part);
        engine_.write_state(field, kept.offset + done, part);
      }
    }
  }

  /// How products were computed, so that they still are: older checkpoints, and other devices', do not say.
  void take_tuning(io::checkpoint_reader const& checkpoint) {
    if constexpr (tuned_device<device_type>) {
      if (checkpoint.has(tuning_field)) {
        auto const bytes = checkpoint.blob_bytes(tuning_field);
        auto const origin =
            concat(checkpoint.directory().string(), ": '", std::string_view{tuning_field}, "'");
        expect(bytes <= most_tuning_bytes, exit_code::bad_input, origin, " has ", bytes,
               " bytes, expected at most ", most_tuning_bytes);
        std::string text(bytes, ' ');
        checkpoint.read(tuning_field, 0, std::as_writable_bytes(std::span{text}));
        device_->tuning().load(text, origin);
      }
    }
  }
  void add_tuning(std::vector<io::blob>& blobs) const {
    if constexpr (tuned_device<device_type>) {
      std::string text = device_->tuning().save();
      auto const bytes = text.size();
      blobs.push_back(
          {tuning_field, bytes, [text = std::move(text)](std::uint64_t offset, std::span<std::byte> to) {
             std::memcpy(to.data(), text.data() + offset, to.size());
           }});
    }
  }
  static constexpr auto tuning_field = "tuning";
  static constexpr std::uint64_t most_tuning_bytes = std::uint64_t{64} << 20;

  // Steps -------------------------------------------------------------------------------------------------

  void train_one_step() {
    using clock = std::chrono::steady_clock;
    auto const begin = clock::now();
    auto const data = loader_->next();
    step_metrics m;
    m.lr = learning_rate(options_, state_.step, total_steps_);
    engine_.begin_step(data.label_tokens, static_cast<std::int64_t>(data.micro_batches.size()), m.lr);
    for (auto const& micro_batch : data.micro_batches) {
      m.loss += engine_.forward(micro_batch);
      engine_.backward();
    }
    auto const result = engine_.step(m.lr);
    ++state_.step;
    state_.accepted_steps = engine_.accepted_steps();
    state_.where = loader_->where();
    judge(result, data.label_tokens);
    look_at_times(m);

    double const seconds = std::chrono::duration<double>(clock::now() - begin).count();
    auto const& model = engine_.model();
    double const forward = model.forward_flops(data.tokens, [&](std::int32_t window) {
      std::int64_t pairs = 0;
      for (auto const length : data.lengths) { pairs += kernel::visible_pairs(length, window); }
      return pairs;
    });
    double const again = engine_.plan().recomputed_flops_per_token * static_cast<double>(data.tokens);
    step_times_.push_back(seconds);
    m.step = state_.step;
    m.grad_norm = result.grad_norm;
    m.epoch = data.epoch;
    m.step_time_ms = seconds * 1e3;
    m.tokens_per_second = static_cast<double>(data.tokens) / seconds;
    m.label_tokens = data.label_tokens;
    m.tokens = data.tokens;
    m.model_tflops = 3.0 * forward / seconds * 1e-12;
    m.hardware_tflops = (3.0 * forward + again) / seconds * 1e-12;
    m.host_bytes = peak_resident_bytes();
    m.device_bytes = device_->peak_bytes();
    m.skipped = !result.accepted;
    count_service(m);
    if (metrics_) {
      metrics_->write(to_json(m, unit_names_));
    }
    if (progress_) {
      progress_->step(m.step, m.loss, m.lr, m.tokens_per_second, m.skipped);
    }
    if (m.breakdown && due(options_.log_interval)) {
      say(describe(*m.breakdown, unit_names_));
    }
  }

  /// Where the time of this step went, and what goes into the timeline.
  void look_at_times(step_metrics& m) {
    auto* const times = engine_.times();
    if (times == nullptr) {
      return;
    }
    auto seen = times->collect();
    if (options_.wall_clock_breakdown) {
      m.breakdown = break_down(seen, times->tracks(), unit_names_.size());
    }
    if (trace_) {
      trace_->add(state_.step, std::move(seen));
      if (static_cast<std::int64_t>(trace_->steps()) == options_.trace_steps) {
        write_trace();
        if (!options_.wall_clock_breakdown) {
          times->stop();
        }
      }
    }
  }
  void write_trace() {
    io::replace_file(options_.trace, trace_->json(engine_.times()->tracks()));
    say(concat("wrote a timeline of ", trace_->steps(), trace_->steps() == 1 ? " step" : " steps", " to ",
               options_.trace.string()));
    trace_.reset();
  }
  /// What became of the buckets whose state is off the device.
  void count_service(step_metrics& m) {
    if constexpr (Engine::arranges) {
      auto const& buckets = engine_.options().arrangement.buckets;
      if (std::any_of(buckets.begin(), buckets.end(),
                      [](auto const& b) { return b.where != offload::place::resident; })) {
        auto const counts = engine_.state().counts();
        m.buckets = counts - served_;
        m.acceptance = engine_.state().acceptance();
        served_ = counts;
      }
    }
  }

  /// Without the first steps, which find nothing on its way, where there are others.
  [[nodiscard]] std::optional<double> median_step_time() const {
    if (step_times_.empty()) {
      return std::nullopt;
    }
    constexpr std::ptrdiff_t warm_up = 2;
    std::vector<double> times{step_times_.begin() + std::min(warm_up, std::ssize(step_times_) - 1),
                              step_times_.end()};
    auto const middle = times.begin() + std::ssize(times) / 2;
    std::nth_element(times.begin(), middle, times.end());
    return *middle;
  }

  void judge(step_result const& result, std::int64_t label_tokens) {
    if (result.accepted) {
      state_.skips_in_a_row = 0;
      return;
    }
    if (label_tokens == 0) {
      return;
    }  // nothing to learn from is no fault of the model
    announce(checkpoints_->wait());
    auto const last = last_checkpoint();
    expect(options_.nonfinite == on_nonfinite::skip, exit_code::nonfinite, "step ", state_.step,
           ": the gradient is not finite; weights are unchanged, ", last,
           "; a lower --lr or --max_grad_norm may help");
    ++state_.skips_in_a_row;
    expect(state_.skips_in_a_row < options_.most_skips, exit_code::nonfinite, "step ", state_.step,
           ": the gradient was not finite in ", state_.skips_in_a_row,
           " steps in a row; weights are unchanged, ", last);
  }

  double evaluate() {
    data::loader held_out{data_->held_out, data_->evaluation_options(options_)};
    double sum = 0.0;
    std::int64_t targets = 0;
    for (std::int64_t i = held_out.steps_per_epoch(); i > 0; --i) {
      auto const batches = held_out.next();
      for (auto const& batch : batches.micro_batches) { sum += engine_.evaluate(batch); }
      targets += batches.label_tokens;
    }
    double const loss = sum / static_cast<double>(std::max<std::int64_t>(1, targets));
    if (metrics_) {
      metrics_->write(evaluation_json(state_.step, loss, targets));
    }
    char text[96];
    std::snprintf(text, sizeof text, "step %lld  held-out loss %.4f", static_cast<long long>(state_.step),
                  loss);
    say(text);
    if (options_.export_best && state_.step > 0 &&
        (state_.best_eval_loss < 0.0 || loss < state_.best_eval_loss)) {
      state_.best_eval_loss = loss;
      export_to("model-best");
    }
    return loss;
  }

  // Saving ------------------------------------------------------------------------------------------------

  void save() {
    save_checkpoint();
    if (options_.export_every_save) {
      export_to(concat("model-step-", state_.step));
    }
  }
  void save_checkpoint() {
    announce(checkpoints_->wait());
    engine_.synchronize();
    std::vector<io::blob> blobs;
    for (auto const& field : engine_.state_fields()) {
      auto const kept = engine_.kept_here(field);
      blobs.push_back(
          {field.name, kept.bytes, [this, field, kept](std::uint64_t offset, std::span<std::byte> to) {
             engine_.read_kept_state(field, kept.offset + offset, to);
           }});
    }
    if (speaks()) {
      add_tuning(blobs);
    }
    if constexpr (Engine::arranges) {
      state_.acceptance = engine_.state().acceptance();
    }
    checkpoints_->save(state_.step, to_json(state_), std::move(blobs));
    saved_step_ = state_.step;
  }

  /// For the message of an error that ends the run.
  [[nodiscard]] std::string last_checkpoint() const {
    return checkpoint_.empty() ? "there is no checkpoint"
                               : concat("the last checkpoint is ", checkpoint_.string());
  }

  void announce(std::optional<std::filesystem::path> const& saved) {
    if (saved) {
      checkpoint_ = *saved;
      say(concat("saved ", checkpoint_.string()));
    }
  }

  std::filesystem::path export_to(std::string const& name) {
    announce(checkpoints_->wait());  // one writer at a time in the output directory
    auto const to = options_.output / name;
    std::optional<error> failure;
    try {
      export_model(engine_, *files_, to, directory_ ? directory_->run() : "", speaks());
    } catch (error const& e) {
      if (e.code() != exit_code::io_failure && e.code() != exit_code::bad_input) {
        throw;  // the ranks cannot talk to each other any more
      }
      failure = e;
    }
    try {
      comm::together(ranks_, [&] {
        if (failure) {
          throw error{*failure};
        }
      });
    } catch (error const& e) { end_saved(e); }
    say(concat("exported ", to.string()));
    return to;
  }

  /// Ends a run whose export failed, which must not lose what was trained.
  [[noreturn]] void end_saved(error const& reason) {
    std::string outcome;
    try {
      if (saved_step_ != state_.step) {
        save_checkpoint();
        announce(checkpoints_->wait());
      }
      outcome =
          concat("nothing is lost: ", checkpoint_.string(), " has all, and --resume auto goes on from it");
    } catch (error const& e) {
      if (e.code() != exit_code::io_failure) {
        throw;
      }
      outcome = concat("a checkpoint could not be saved either (", e.what(), "), ", last_checkpoint());
    }
    throw comm::agreed_error{reason.code(), concat(reason.what(), "; ", outcome), ranks_.is_first()};
  }

  void say(std::string const& line) {
    if (progress_) {
      progress_->say(line);
    }
  }

  device_type* device_;
  comm::host_group ranks_;
  training_options options_;
  model::config config_;
  Engine engine_;
  offload::plan plan_;
  std::string machine_name_;
  std::optional<run_directory> directory_;  // of the rank that speaks
  std::optional<run_data> data_;
  std::optional<io::model_files> files_;
  std::optional<data::loader> loader_;
  std::int64_t rows_ = 0;  // where there are no examples
  std::int64_t total_steps_ = 0;
  run_state state_;
  std::int64_t saved_step_ = -1;
  std::int64_t resumed_at_ = 0;
  std::string changed_;             // since what was resumed was saved
  std::vector<double> step_times_;  // s
  std::filesystem::path checkpoint_;
  offload::service_counts served_;
  std::vector<std::string> unit_names_;
  std::optional<step_trace> trace_;
  std::optional<metrics_file> metrics_;
  std::optional<progress> progress_;
  std::optional<checkpoint_writer> checkpoints_;
};

}  // namespace superoffload::train
