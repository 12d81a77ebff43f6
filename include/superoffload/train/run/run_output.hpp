// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/agreement.hpp>
#include <superoffload/core/bytes_text.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/log.hpp>
#include <superoffload/data/loader.hpp>
#include <superoffload/io/directory.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/io/train_checkpoint.hpp>
#include <superoffload/train/engine/checkpoint_state.hpp>
#include <superoffload/train/engine/weights.hpp>
#include <superoffload/train/reports/report_choice.hpp>
#include <superoffload/train/reports/run_description.hpp>
#include <superoffload/train/run/activity.hpp>
#include <superoffload/train/run/checkpoint_writer.hpp>
#include <superoffload/train/run/common_checkpoint.hpp>
#include <superoffload/train/run/output_place.hpp>
#include <superoffload/train/run/progress.hpp>
#include <superoffload/train/run/run_directory.hpp>
#include <superoffload/train/run/run_report.hpp>
#include <superoffload/train/run/run_setup.hpp>
#include <superoffload/train/run/run_state.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// The checkpoints and exported models of a run, and how a run resumes from a checkpoint. `Core` is an
/// engine_core. All ranks are one run, whose output directory one rank manages, or one on each host; the
/// first rank alone exports.
template <class Core>
class run_output {
public:
  using device_type = typename Core::device_type;  ///< of the engine

  /// `state`: the run's part of a checkpoint. All arguments must outlive this.
  run_output(device_type& device, Core& engine, run_setup const& setup, run_state& state, run_report& report)
      : device_{&device},
        engine_{&engine},
        setup_{&setup},
        state_{&state},
        report_{&report},
        place_{place_of_output(setup.ranks, setup.options.save_on_each_node)} {}

  /// Call before anything is read that takes long.
  void look_at_directory() {
    comm::together(setup_->ranks, [this] {
      if (setup_->ranks.rank() == place_.keeper && !setup_->options.dry_run && !setup_->options.eval_only) {
        directory_.emplace(setup_->options);
        directory_->expect_own();
      }
    });
  }
  /// Reads the files that exports copy from the model's directory.
  void read_model_files() { files_ = io::model_files::read(setup_->options.model_source()); }
  /// As read_model_files() read them.
  [[nodiscard]] io::model_files const& model_files() const { return *files_; }

  /// Claims the directory and checks that checkpoints and exports can be written, before weights are read.
  void claim_directory(std::int64_t total_steps) {
    total_steps_ = total_steps;
    if (!place_.host.empty() && !setup_->options.eval_only) {
      expect_apart(setup_->ranks, place_, setup_->options.output);
    }
    // The first rank's run is that of all.
    auto const claim_for = [&](bool first, std::string const& run) {
      comm::together(setup_->ranks, [&] {
        if (directory_ && setup_->is_rank_zero() == first) {
          directory_->claim(*state_, run);
          expect_writable();
        }
      });
    };
    claim_for(true, {});
    claim_for(false, comm::gather_texts(setup_->ranks, run()).front());
  }
  /// Changes to the directory that wait until the run is sure to begin.
  void settle_directory(run_description run) {
    if (!directory_) {
      return;
    }
    report_->open_metrics(saved_step_, directory_->run());
    if (directory_->has_others()) {
      directory_->remove_others();
      expect_disk_space();
    }
    if (saved_step_ < 0 || !directory_->has_own_reports()) {
      report_files{setup_->options.output}.remove();
    }
    run.identity = directory_->run();
    report_->open_reports(saved_step_, run);
    directory_->record(*state_);
  }

  /// Checks that all ranks see the output directory of their keeper. \throws agreed_error(bad_input).
  void expect_shared() const {
    auto const identity = comm::gather_texts(setup_->ranks, run()).front();
    comm::together(setup_->ranks, [&] {
      if (!identity.empty() && !directory_) {
        train::expect_shared(setup_->options.output, identity, std::chrono::seconds{20});
      }
    });
  }

  /// The hit rate of the resumed run; 1 if it is unknown or its checkpoint is not valid: resume() reports
  /// that.
  /// \throws error(io_failure) on all ranks if one cannot read it: their plans would differ.
  [[nodiscard]] double hit_rate_before() const {
    try {
      if (auto const found = checkpoint_to_resume()) {
        return parse_run_state(found->state_json(), found->directory().string()).hit_rate;
      }
    } catch (error const& e) {
      if (e.code() == exit_code::io_failure) {
        throw;
      }
    }
    return 1.0;
  }
  /// Checks the checkpoint's manifest before weights are read.
  void expect_resumable() {
    if (auto const found = checkpoint_to_resume()) {
      resumed_at_ = saved_state(*found).step;
    }
  }
  /// Restores state and data position from the checkpoint that the options name, if any.
  void resume(data::loader& loader) {
    auto const& options = setup_->options;
    if (options.resume.empty()) {
      return;
    }
    std::vector<std::string> rejected;  // newest first
    bool found = true;
    if (options.resume == "auto") {
      found =
          newest_on_all_ranks(
              setup_->ranks, options.output, [&](std::string const& reason) { rejected.push_back(reason); },
              [&](io::checkpoint_reader const& checkpoint) { take(checkpoint, loader); })
              .has_value();
    } else {
      take(open_on_all_ranks(setup_->ranks, options.resume), loader);
    }
    expect(found || rejected.empty(), exit_code::bad_input, options.output.string(),
           ": no checkpoint is valid: ", rejected.empty() ? "" : rejected.front(),
           "; start without --resume to begin anew");
    if (!setup_->is_rank_zero()) {
      return;
    }
    for (auto const& reason : rejected) { log(log_level::info, "passed over: ", reason); }
    if (!changed_.empty()) {
      log(log_level::note, "goes on otherwise than it began: ", changed_);
    }
    if (found) {
      log(log_level::info, "resumed at step ", state_->step, " from ", checkpoint_.string());
    } else {
      log(log_level::info, "no checkpoint in ", options.output.string(), ": starting at step 0");
    }
  }

  /// Call before the first step.
  void begin() {
    writer_.emplace(setup_->options.output, setup_->options.save_total_limit, setup_->ranks, run(), place_);
  }
  /// Saves a checkpoint, and exports the model if the options ask for an export with each.
  void save() {
    save_checkpoint();
    if (setup_->options.export_every_save) {
      export_to(concat("model-step-", state_->step));
    }
  }
  /// Is the current state saved?
  [[nodiscard]] bool saved() const noexcept { return saved_step_ == state_->step; }
  /// Exports the model. If that fails, saves a checkpoint and throws.
  std::filesystem::path export_to(std::string const& name) {
    wait();  // one writer at a time in the output directory
    auto const to = setup_->options.output / name;
    std::optional<error> failure;
    try {
      activity const shown{"exporting", setup_->is_rank_zero(), exported_bytes()};
      export_model(*engine_, *files_, to, run(), setup_->is_rank_zero());
    } catch (error const& e) {
      if (e.code() != exit_code::io_failure && e.code() != exit_code::bad_input) {
        throw;  // the ranks can no longer communicate
      }
      failure = e;
    }
    try {
      comm::together(setup_->ranks, [&] {
        if (failure) {
          throw error{*failure};
        }
      });
    } catch (error const& e) { end_saved(e); }
    report_->say(concat("exported ", to.string()));
    return to;
  }

  /// Reports a checkpoint that has been completed meanwhile, if any. \throws the failure of its write.
  void look() { announce(writer_->completed()); }
  /// The same, after a wait for the running write.
  void wait() {
    std::optional<saved_checkpoint> saved;
    if (writer_) {
      activity const shown{"waiting for the checkpoint", setup_->is_rank_zero()};
      saved = writer_->wait();
    }
    announce(saved);
  }
  /// The last checkpoint, saved or resumed from; empty: none.
  [[nodiscard]] std::filesystem::path const& checkpoint() const noexcept { return checkpoint_; }
  /// For the message of an error that ends the run.
  [[nodiscard]] std::string last_checkpoint() const {
    return checkpoint_.empty() ? "there is no checkpoint"
                               : concat("the last checkpoint is ", checkpoint_.string());
  }

private:
  /// The run's identity on keepers; empty on others.
  [[nodiscard]] std::string run() const { return directory_ ? directory_->run() : std::string{}; }

  /// For a keeper, which has claimed its directory.
  void expect_writable() const {
    if (!directory_->weakness().empty()) {
      log(log_level::note, directory_->weakness(), ": take care that no other run writes there");
    }
    auto const& options = setup_->options;
    auto const expect_exportable = [&](std::string const& name) {
      io::expect_exportable(options.model_source(), options.output / name);
    };
    if (setup_->is_rank_zero()) {
      if (options.exports) {
        expect_exportable("model");
      }
      if (options.export_best) {
        expect_exportable("model-best");
      }
      if (options.export_every_save) {
        for (auto const& name : io::list_directory(options.output)) {
          if (name.starts_with("model-step-")) {
            expect_exportable(name);
          }
        }
      }
    }
    if (!directory_->has_others()) {
      expect_disk_space();
    }
  }
  /// Checks the free bytes: for the final export beside the one that it replaces, and for one checkpoint if
  /// any will be saved.
  void expect_disk_space() const {
    auto const& options = setup_->options;
    std::uint64_t exported = 0, saved = 0;
    if (setup_->is_rank_zero() && (options.exports || options.export_best || options.export_every_save)) {
      exported = files_->bytes() + exported_bytes();
    }
    if ((options.save_steps > 0 || options.save_at_end) && resumed_at_ < total_steps_) {
      for (auto const& field : engine_->state_fields()) {
        saved += saved_bytes<Core>(field, options.offload.state);
      }
      saved = static_cast<std::uint64_t>(static_cast<double>(saved) * place_.share);
    }
    auto const& output = options.output;
    auto const free = io::free_bytes(output);
    expect(exported + saved <= free, exit_code::io_failure, io::shown(output), ": has ", bytes_text(free),
           " free, but the export takes ", bytes_text(exported),
           saved == 0 ? std::string{} : concat(" and a checkpoint ", bytes_text(saved)),
           "; free some space, or choose another --output_dir");
  }

  [[nodiscard]] std::optional<io::checkpoint_reader> checkpoint_to_resume() const {
    auto const& options = setup_->options;
    if (options.resume.empty()) {
      return std::nullopt;
    }
    return options.resume == "auto"
               ? newest_on_all_ranks(
                     setup_->ranks, options.output, [](std::string const&) {}, [](auto const&) {})
               : open_on_all_ranks(setup_->ranks, options.resume);
  }
  /// \throws error(bad_input) if the checkpoint is of a run that this one cannot continue.
  run_state saved_state(io::checkpoint_reader const& checkpoint) const {
    auto const origin = checkpoint.directory().string();
    auto saved = parse_run_state(checkpoint.state_json(), origin);
    expect_same_identity(saved, *state_, origin);
    auto const other = differences(saved.settings, state_->settings);
    expect(other.empty() || setup_->options.resume != "auto", exit_code::bad_input, origin,
           ": is of a run that differs: ", other, "; use the same, or --resume ", origin,
           " to go on with what is new");
    return saved;
  }
  /// Overwrites the whole state, so another checkpoint can be tried after a failure.
  void take(io::checkpoint_reader const& checkpoint, data::loader& loader) {
    auto saved = saved_state(checkpoint);
    // If one rank cannot read the checkpoint, no rank resumes from it.
    comm::together(setup_->ranks, [&] { take_state(*engine_, *device_, checkpoint, setup_->ranks.rank()); });
    engine_->set_accepted_steps(saved.accepted_steps);
    loader.seek(saved.where);
    changed_ = saved.settings.empty() ? std::string{"the checkpoint does not say with which settings"}
                                      : differences(saved.settings, state_->settings);
    if (!have_same(saved.settings, state_->settings, "--eval_dataset")) {
      saved.first_eval_loss = -1.0;
    }
    saved.identity = state_->identity;
    saved.settings = state_->settings;
    *state_ = std::move(saved);
    saved_step_ = state_->step;
    checkpoint_ = checkpoint.directory();
  }

  [[nodiscard]] std::size_t exported_bytes() const {
    std::size_t bytes = 0;
    for (auto const& unit : engine_->model().units()) {
      bytes += static_cast<std::size_t>(unit.elements()) * sizeof(typename Core::element_type);
    }
    return bytes;
  }

  void save_checkpoint() {
    wait();
    activity const shown{"saving", setup_->is_rank_zero()};
    engine_->synchronize();
    auto blobs = blobs_of(*engine_, *device_);
    if constexpr (Core::configures) {
      state_->hit_rate = engine_->state().hit_rate();
    }
    writer_->save(state_->step, to_json(*state_), std::move(blobs));
    saved_step_ = state_->step;
  }
  /// Ends a run whose export failed, after saving a checkpoint.
  [[noreturn]] void end_saved(error const& reason) {
    std::string outcome;
    try {
      if (!saved()) {
        save_checkpoint();
        announce(writer_->wait());
      }
      outcome =
          concat("nothing is lost: ", checkpoint_.string(), " has all, and --resume auto goes on from it");
    } catch (error const& e) {
      if (e.code() != exit_code::io_failure) {
        throw;
      }
      outcome = concat("a checkpoint could not be saved either (", e.what(), "), ", last_checkpoint());
    }
    throw comm::agreed_error{reason.code(), concat(reason.what(), "; ", outcome), setup_->ranks.is_first()};
  }
  void announce(std::optional<saved_checkpoint> const& saved) {
    if (saved) {
      checkpoint_ = saved->directory;
      if (setup_->is_rank_zero()) {
        log_time("writing the checkpoint", saved->bytes, saved->seconds);
      }
      report_->say(concat("saved ", checkpoint_.string()));
    }
  }

  device_type* device_;
  Core* engine_;
  run_setup const* setup_;
  run_state* state_;
  run_report* report_;
  output_place place_;
  std::optional<run_directory> directory_;  // of a keeper
  std::optional<io::model_files> files_;
  std::int64_t total_steps_ = 0;
  std::int64_t saved_step_ = -1;
  std::int64_t resumed_at_ = 0;
  std::string changed_;  // settings that differ from the resumed checkpoint's
  std::filesystem::path checkpoint_;
  std::optional<checkpoint_writer> writer_;
};

}  // namespace superoffload::train
