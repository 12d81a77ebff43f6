// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/optim/schedule.hpp>
#include <superoffload/train/checkpoint_writer.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/metrics.hpp>
#include <superoffload/train/options.hpp>
#include <superoffload/train/progress.hpp>
#include <superoffload/train/report.hpp>
#include <superoffload/train/run_data.hpp>
#include <superoffload/train/run_state.hpp>
#include <superoffload/train/stop_request.hpp>
#include <superoffload/train/weights.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace superoffload::train {

/// How a run ended.
struct run_summary {
  std::int64_t steps = 0;
  std::optional<double> eval_before, eval_after;  ///< mean loss per label token of the held-out data
  std::filesystem::path exported;                 ///< empty: nothing was exported
  std::filesystem::path checkpoint;               ///< the last one saved; empty: none
  int signal = 0;                                 ///< that ended the run early; 0: it went to its end
};

/// A whole fine-tuning run above an engine: data, schedule, evaluation, metrics, checkpoints, export.
template <class Engine>
class trainer {
public:
  using device_type = typename Engine::device_type;

  /// Reads configuration and data and makes the plan; allocates nothing large.
  trainer(device_type& device, training_options options)
      : device_{&device},
        options_{checked(std::move(options))},
        config_{model::read_config(options_.model)},
        engine_{device, config_, engine_options_of(options_)} {
    expect_length(options_, config_);
    expect_trainable();
    if (options_.recompute == recompute_choice::automatic &&
        engine_.plan().total() > available_host_bytes()) {
      engine_.recompute_blocks(true);
    }
    if (options_.dry_run && (options_.dataset.empty() || !has_tokenizer())) {
      outline_without_tokens();
    } else {
      data_.emplace(load_data(options_, config_));
      loader_.emplace(data_->training, data_->loader_options(options_));
      total_steps_ = options_.max_steps > 0 ? options_.max_steps : loader_->steps_in(options_.epochs);
    }
  }
  trainer(trainer const&) = delete;
  trainer& operator=(trainer const&) = delete;

  /// The plan as text.
  [[nodiscard]] std::string plan_text() const {
    return describe(engine_.plan(), config_, options_,
                    {.device = device_type::name(),
                     .element_type = element_name(),
                     .sequences = data_ ? data_->training.size() : rows_,
                     .tokens = data_ ? data_->training.tokens() : 0,
                     .steps = total_steps_});
  }
  [[nodiscard]] Engine& engine() noexcept { return engine_; }
  /// \throws error(cannot_fit) when the plan needs more memory than there is.
  void expect_fits() const { train::expect_fits(engine_.plan(), available_host_bytes(), options_); }

  /// Trains to the end or to a signal. \throws error as the exit codes say; what was saved before stays
  /// valid.
  run_summary run() {
    stop_request const stop;
    start();
    run_summary summary;
    metrics_.reset();
    if (!options_.metrics.empty()) {
      metrics_.emplace(options_.metrics, state_.step);
    }
    progress_.emplace(state_.step, total_steps_, options_.log_interval);
    checkpoints_.emplace(options_.output, options_.save_total_limit);
    if (!data_->held_out.empty()) {
      summary.eval_before = evaluate();
    }
    while (state_.step < total_steps_ && stop.signal() == 0) {
      train_one_step();
      announce(checkpoints_->completed());
      if (due(options_.eval_steps) && state_.step < total_steps_) {
        evaluate();
      }
      if (due(options_.save_steps)) {
        save();
      }
    }
    summary.steps = state_.step;
    summary.signal = stop.signal();
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

private:
  static training_options checked(training_options options) {
    check(options);
    return options;
  }

  static engine_options engine_options_of(training_options const& o) {
    engine_options e;
    e.adamw = o.adamw;
    e.max_grad_norm = o.max_grad_norm;
    e.max_rows = most_rows(o);
    e.max_positions = o.max_length;
    e.accumulates = o.accumulation > 1;
    e.recompute_blocks = o.recompute == recompute_choice::every_block;
    if (!o.freeze.empty()) {
      e.trainable = [patterns = o.freeze](autograd::tensor_entry const& tensor) {
        return std::none_of(patterns.begin(), patterns.end(),
                            [&](auto const& pattern) { return matches(pattern, tensor.name); });
      };
    }
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
  static std::string element_name() {
    return std::is_same_v<typename Engine::element_type, bfloat16> ? "bf16" : "float32";
  }
  [[nodiscard]] bool due(std::int64_t interval) const { return interval > 0 && state_.step % interval == 0; }

  // Start -------------------------------------------------------------------------------------------------

  void start() {
    io::hub_checkpoint const weights = io::hub_checkpoint::open(options_.model);
    expect_tensors(engine_.model().units(), weights);
    expect_fits();  // sizes that the tensors have, too
    state_.identity = identity_of(options_, config_, *data_, element_name());
    auto checkpoint = checkpoint_to_resume();
    io::expect_exportable(options_.model, options_.output / "model");
    engine_.initialize(weights_of(weights));
    if (checkpoint) {
      resume(*checkpoint);
    }
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

  std::optional<io::checkpoint_reader> checkpoint_to_resume() const {
    if (options_.resume.empty()) {
      return std::nullopt;
    }
    if (options_.resume != "auto") {
      return io::checkpoint_reader::open(options_.resume);
    }
    std::vector<std::string> rejected;  // newest first
    auto found = io::newest_checkpoint(options_.output,
                                       [&](std::string const& reason) { rejected.push_back(reason); });
    expect(found || rejected.empty(), exit_code::bad_input, options_.output.string(),
           ": no checkpoint is valid: ", rejected.empty() ? "" : rejected.front(),
           "; start without --resume to begin anew");
    for (auto const& reason : rejected) { std::fprintf(stderr, "passed over: %s\n", reason.c_str()); }
    if (!found) {
      std::fprintf(stderr, "no checkpoint in %s: starting at step 0\n", options_.output.c_str());
    }
    return found;
  }

  void resume(io::checkpoint_reader& checkpoint) {
    auto const origin = checkpoint.directory().string();
    auto saved = parse_run_state(checkpoint.state_json(), origin);
    expect_same_identity(saved, state_, origin);
    std::vector<std::byte> chunk(std::size_t{4} << 20);
    for (auto const& blob : engine_.state_blobs()) {
      expect(checkpoint.blob_bytes(blob.name) == blob.bytes, exit_code::bad_input, origin, ": '", blob.name,
             "' has ", checkpoint.blob_bytes(blob.name), " bytes, expected ", blob.bytes);
      for (std::size_t done = 0; done < blob.bytes; done += chunk.size()) {
        std::span<std::byte> const part{chunk.data(), std::min(chunk.size(), blob.bytes - done)};
        checkpoint.read(blob.name, done, part);
        engine_.write_state(blob, done, part);
      }
    }
    engine_.state_written();
    engine_.set_accepted_steps(saved.accepted_steps);
    loader_->seek(saved.where);
    saved.identity = state_.identity;
    state_ = std::move(saved);
    saved_step_ = state_.step;
    std::fprintf(stderr, "resumed at step %lld from %s\n", static_cast<long long>(state_.step),
                 origin.c_str());
  }

  // Steps -------------------------------------------------------------------------------------------------

  void train_one_step() {
    using clock = std::chrono::steady_clock;
    auto const begin = clock::now();
    auto const data = loader_->next();
    step_metrics m;
    engine_.begin_step(data.label_tokens, static_cast<std::int64_t>(data.micro_batches.size()));
    for (auto const& micro_batch : data.micro_batches) {
      m.loss += engine_.forward(micro_batch);
      engine_.backward();
    }
    m.lr = optim::schedule{.kind = options_.scheduler,
                           .peak = options_.lr,
                           .warmup_steps = options_.warmup_steps,
                           .total_steps = total_steps_}(state_.step);
    auto const result = engine_.step(m.lr);
    ++state_.step;
    state_.accepted_steps = engine_.accepted_steps();
    state_.where = loader_->where();
    judge(result, data.label_tokens);

    double const seconds = std::chrono::duration<double>(clock::now() - begin).count();
    auto const& model = engine_.model();
    double const forward = model.forward_flops(data.tokens, data.visible_pairs);
    double const again =
        engine_.plan().recompute_blocks ? model.block_flops(data.tokens, data.visible_pairs) : 0.0;
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
    if (metrics_) {
      metrics_->write(to_json(m));
    }
    progress_->step(m.step, m.loss, m.lr, m.tokens_per_second, m.skipped);
  }

  void judge(step_result const& result, std::int64_t label_tokens) {
    if (result.accepted) {
      state_.skips_in_a_row = 0;
      return;
    }
    if (label_tokens == 0) {
      return;
    }  // nothing to learn from is no fault of the model
    announce(checkpoints_->wait());  // the messages name it
    auto const last = checkpoint_.empty() ? std::string{"there is no checkpoint"}
                                          : concat("the last checkpoint is ", checkpoint_.string());
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
    progress_->say(text);
    if (options_.export_best && state_.step > 0 &&
        (state_.best_eval_loss < 0.0 || loss < state_.best_eval_loss)) {
      state_.best_eval_loss = loss;
      export_to("model-best");
    }
    return loss;
  }

  // Saving ------------------------------------------------------------------------------------------------

  void save() {
    announce(checkpoints_->wait());
    engine_.synchronize();
    std::vector<io::blob> blobs;
    for (auto const& blob : engine_.state_blobs()) {
      blobs.push_back({blob.name, blob.bytes, [this, blob](std::uint64_t offset, std::span<std::byte> to) {
                         engine_.read_state(blob, offset, to);
                       }});
    }
    checkpoints_->save(state_.step, to_json(state_), std::move(blobs));
    saved_step_ = state_.step;
    if (options_.export_every_save) {
      export_to(concat("model-step-", state_.step));
    }
  }

  void announce(std::optional<std::filesystem::path> const& saved) {
    if (saved) {
      checkpoint_ = *saved;
      progress_->say(concat("saved ", checkpoint_.string()));
    }
  }

  std::filesystem::path export_to(std::string const& name) {
    announce(checkpoints_->wait());  // one writer at a time in the output directory
    auto const to = options_.output / name;
    export_model(engine_, options_.model, to);
    progress_->say(concat("exported ", to.string()));
    return to;
  }

  device_type* device_;
  training_options options_;
  model::config config_;
  Engine engine_;
  std::optional<run_data> data_;
  std::optional<data::loader> loader_;
  std::int64_t rows_ = 0;  // where there are no examples
  std::int64_t total_steps_ = 0;
  run_state state_;
  std::int64_t saved_step_ = -1;
  std::filesystem::path checkpoint_;
  std::optional<metrics_file> metrics_;
  std::optional<progress> progress_;
  std::optional<checkpoint_writer> checkpoints_;
};

}  // namespace superoffload::train
