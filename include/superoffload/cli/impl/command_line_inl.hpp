// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/command_line.hpp>
#include <superoffload/cli/impl/example_flags_inl.hpp>
#include <superoffload/cli/impl/flag_file_inl.hpp>
#include <superoffload/cli/impl/row_flags_inl.hpp>
#include <superoffload/cli/program.hpp>
#include <superoffload/cli/row_flags.hpp>
#include <superoffload/cli/unknown_flags.hpp>
#include <superoffload/comm/agreement.hpp>
#include <superoffload/comm/shared_segment.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/train/deepspeed/options.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace superoffload::cli {
namespace detail {

using train::training_options;

inline constexpr char const* exit_codes =
    "Exit codes: 0 done, 1 internal error, 2 bad input, 3 does not fit into memory, 4 reading or writing "
    "failed,\n"
    "5 no usable device, 6 gradient not finite, 7 stopped by a signal after saving a checkpoint, 8 no\n"
    "driver for the GPU or one too old, 9 the GPU was lost in mid-run, 10 another rank failed.\n"
    "Flags may be written with dashes or underscores. SUPEROFFLOAD_NUM_THREADS sets the number of CPU "
    "threads,\n"
    "SUPEROFFLOAD_ISA the instruction set (scalar, avx2, avx512, avx512_bf16, amx_bf16, neon).";

SUPEROFFLOAD_INLINE void add_model_and_data(CLI::App& app, training_options& o) {
  constexpr char const* group = "Model and data";
  app.add_option("--model", o.model, "Hugging Face directory: config.json, safetensors, tokenizer.json")
      ->type_name("DIR")
      ->group(group);
  app.add_option("--output_dir", o.output, "where checkpoints and the exported model go")
      ->type_name("DIR")
      ->group(group);
  add_follow_links(app, o)->group(group);
  app.add_option(
         "--rope_scaling", o.rope_scaling,
         "for sequences longer than the model's positions: yarn:FACTOR, linear:FACTOR, llama3:FACTOR, or a "
         "JSON object as config.json's rope_scaling; the exported model has it, too")
      ->type_name("SCALING")
      ->group(group);
  add_row_flags(app, o, group);
  app.add_option("--dataset_percentage", o.dataset_percentage, "how much of the data to use, from its start")
      ->capture_default_str()
      ->group(group);
  choice<data::pad_to>(app, "--padding", o.padding,
                       {{"none", data::pad_to::none},
                        {"longest", data::pad_to::longest},
                        {"max_length", data::pad_to::max_length}},
                       "how far the sequences of a micro-batch are padded")
      ->group(group);
  on_off(app, "--learn_padding", o.learn_padding,
         "the padding of --padding max_length has labels, as in DeepSpeed's example: for comparisons")
      ->group(group);
  on_off(app, "--packing", o.packing, "several rows in one sequence, which do not see each other")
      ->group(group);
  on_off(app, "--shuffle", o.shuffle, "a new order in every epoch")->group(group);
  app.add_option("--seed", o.seed, "of the order of the data")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 63U).description(""))  // CLI11 would wrap -1
      ->capture_default_str()
      ->group(group);
}

SUPEROFFLOAD_INLINE void add_schedule(CLI::App& app, training_options& o, char const* group) {
  using shape = optim::schedule::shape;
  app.add_option("--lr", o.lr, "peak learning rate")->capture_default_str()->group(group);
  choice<shape>(app, "--lr_scheduler", o.scheduler,
                {{"constant", shape::constant},
                 {"linear", shape::linear},
                 {"cosine", shape::cosine},
                 {"cosine_with_restarts", shape::cosine_with_restarts},
                 {"polynomial", shape::polynomial}},
                "how the rate falls after the warm-up")
      ->group(group);
  app.add_option("--lr_warmup_steps", o.warmup_steps, "steps in which the rate rises from 0")
      ->capture_default_str()
      ->group(group);
  app.add_option("--lr_warmup_ratio", o.warmup_ratio, "the same as a share of all steps, rounded up")
      ->capture_default_str()
      ->group(group);
  app.add_option("--min_lr", o.min_lr, "the rate at the end of linear, cosine and polynomial schedules")
      ->capture_default_str()
      ->group(group);
  app.add_option("--lr_num_cycles", o.lr_cycles, "how often cosine_with_restarts falls")
      ->capture_default_str()
      ->group(group);
  app.add_option("--lr_power", o.lr_power, "of polynomial: 1 is linear")->capture_default_str()->group(group);
}

SUPEROFFLOAD_INLINE void add_optimization(CLI::App& app, training_options& o) {
  constexpr char const* group = "Optimization";
  auto* const sequences = app.add_option("--batch_size", o.batch_size,
                                         "sequences per optimizer step, over all ranks and micro-batches")
                              ->capture_default_str()
                              ->group(group);
  app.add_option("--tokens_per_batch", o.tokens_per_batch,
                 "instead of --batch_size: a step takes rows while they have at most so many tokens")
      ->type_name("N")
      ->excludes(sequences)
      ->group(group);
  app.add_option("--gradient_accumulation_steps", o.accumulation, "micro-batches that a step is split into")
      ->capture_default_str()
      ->group(group);
  app.add_option("--num_train_epochs", o.epochs, "how often the data are gone through")
      ->capture_default_str()
      ->group(group);
  app.add_option("--max_steps", o.max_steps, "optimizer steps, 0: as many as the epochs make")
      ->capture_default_str()
      ->group(group);
  add_schedule(app, o, group);
  app.add_option("--weight_decay", o.adamw.weight_decay, "of AdamW, decoupled")
      ->capture_default_str()
      ->group(group);
  app.add_option("--adam_beta1", o.adamw.beta1, "decay of the first moment")
      ->capture_default_str()
      ->group(group);
  app.add_option("--adam_beta2", o.adamw.beta2, "decay of the second moment")
      ->capture_default_str()
      ->group(group);
  app.add_option("--adam_eps", o.adamw.epsilon, "added to the root of the second moment")
      ->capture_default_str()
      ->group(group);
  choice<train::no_decay>(
      app, "--no_decay", o.undecayed,
      {{"none", train::no_decay::none}, {"norms_and_biases", train::no_decay::norms_and_biases}},
      "tensors without weight decay")
      ->group(group);
  app.add_option("--freeze", o.freeze,
                 "tensors that are not trained: shell patterns such as 'model.layers.0.*'")
      ->type_name("PATTERN")
      ->expected(1, -1)
      ->take_all()
      ->group(group);
  app.add_option("--max_grad_norm", o.max_grad_norm, "clip the gradient to this norm, 0: off")
      ->capture_default_str()
      ->group(group);
  choice<train::on_nonfinite>(app, "--on_nonfinite", o.nonfinite,
                              {{"skip", train::on_nonfinite::skip}, {"stop", train::on_nonfinite::stop}},
                              "what to do with a step whose gradient is not finite")
      ->group(group);
}

SUPEROFFLOAD_INLINE void add_execution(CLI::App& app, command_line& c) {
  constexpr char const* group = "Execution";
  choice<device_choice>(
      app, "--device", c.device,
      {{"auto", device_choice::automatic}, {"cpu", device_choice::cpu}, {"cuda", device_choice::cuda}},
      "where to compute; auto: on a GPU if one can be used (CUDA_VISIBLE_DEVICES says which), else on the "
      "cpu")
      ->group(group);
  choice<precision_choice>(app, "--dtype", c.precision,
                           {{"float32", precision_choice::float32},
                            {"bf16", precision_choice::bf16},
                            {"fp8", precision_choice::fp8}},
                           "of weights, activations and gradients; fp8: bf16, with FP8 GEMMs in linear "
                           "layers")
      ->group(group);
  using attention = kernel::attention_implementation;
  choice<attention>(
      app, "--attn_implementation", c.attention,
      {{"auto", attention::automatic}, {"flash", attention::flash}, {"cudnn", attention::cudnn}},
      "whose attention a GPU uses; auto: the faster of those that there are for the model",
      {{"eager", attention::automatic},
       {"sdpa", attention::automatic},
       {"flash_attention_2", attention::automatic}})
      ->group(group);
  using recompute = recompute::choice;
  choice<recompute>(
      app, "--activation_checkpointing", c.training.recompute,
      {{"none", recompute::none},
       {"every_block", recompute::every_block},
       {"auto", recompute::automatic},
       {"offload", recompute::offload}},
      "what backward needs of blocks: none keeps all of it, every_block computes it again, offload keeps "
      "some in host memory and computes the rest again; auto: what is fastest and fits")
      ->group(group);
  app.add_option("--tiled_mlp", c.training.tiled_mlp,
                 "dense MLPs compute so many tokens at a time, and their gates again in the backward: less "
                 "memory for long sequences, 16384 for example; 0: all tokens at once")
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
}

/// \returns the option for GPUs, which is the other one and --device cuda.
SUPEROFFLOAD_INLINE void add_ranks(CLI::App& app, command_line& c, std::optional<int>& ranks,
                                   std::optional<int>& gpus) {
  constexpr char const* group = "Ranks";
  app.add_option("--ranks", ranks,
                 "processes that train together, each with a shard of weights, gradients and state; on the "
                 "cpu unless "
                 "--device says cuda. Not with torchrun, srun, mpirun and the like, which start them")
      ->group(group);
  app.add_option("--gpus", gpus, "the same, one process for each GPU")->group(group);
  app.add_option(
         "--sequence_parallel", c.training.sequence_ranks,
         "so many ranks, neighbours, share each micro-batch, for long sequences: each has a part of the "
         "tokens, and in attention a part of the heads")
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_option_function<int>(
         "--hybrid_sharding",
         [&c](int number) {
           expect(number > 0, exit_code::bad_input, "--hybrid_sharding is ", number, ", expected 1 or more");
           c.training.offload.weight_ranks = number;
           c.training.offload.sums_in_copies = true;
         },
         "N neighbours, such as the ranks of a host, keep a copy of the weights: new weights and sums of "
         "gradients cross to the others once a step, for any number of micro-batches. By default the plan "
         "chooses the ranks that keep a copy, and every micro-batch is summed over all ranks")
      ->type_name("N")
      ->group(group);
  on_off(app, "--bind_cores_to_rank", c.bind_cores,
         "divide the cores of a host between its ranks, those near a GPU to that GPU's")
      ->group(group);
}

/// Which rank of how many this is, from the flags and from the launcher's environment.
SUPEROFFLOAD_INLINE void settle_ranks(command_line& c, std::optional<int> ranks, std::optional<int> gpus,
                                      std::optional<int> local_rank) {
  auto const in_range = [](char const* flag, std::optional<int> value) {
    expect(!value || (1 <= *value && *value <= comm::shared_segment::most_ranks), exit_code::bad_input, flag,
           " is ", value.value_or(0), ", expected 1 to ", comm::shared_segment::most_ranks);
  };
  in_range("--ranks", ranks);
  in_range("--gpus", gpus);
  expect(!ranks || !gpus || *ranks == *gpus, exit_code::bad_input, "--ranks is ", ranks.value_or(0),
         ", but --gpus is ", gpus.value_or(0), "; expected one of them");
  expect(!gpus || c.device != device_choice::cpu, exit_code::bad_input, "--gpus is ", gpus.value_or(0),
         ", but --device is cpu; expected --ranks for processes on the cpu");
  auto const told = gpus ? gpus : ranks;
  auto run = comm::read_environment();
  int const local = run ? run->local_rank : 0;
  expect(!local_rank || *local_rank == -1 || *local_rank == local, exit_code::bad_input, "--local_rank is ",
         local_rank.value_or(0), ", but this process is ",
         run ? concat("number ", local, " of ", run->launcher, " on its host")
             : std::string{"alone: the environment has no RANK"},
         "; leave the flag to the launcher");
  if (run && run->ranks == 1) {
    run.reset();  // a launcher of one process
  }
  expect(!run || !told || *told == run->ranks, exit_code::bad_input, gpus ? "--gpus" : "--ranks", " is ",
         told.value_or(0), ", but ", run ? run->launcher : "", " has started ", run ? run->ranks : 0,
         " ranks; leave the flag out");
  c.training.ranks = run ? run->ranks : told.value_or(1);
  c.training.rank = run ? run->rank : 0;
  if (gpus) {
    c.device = device_choice::cuda;
  } else if (ranks && c.training.ranks > 1 && c.device == device_choice::automatic) {
    c.device = device_choice::cpu;
  }
  c.run = std::move(run);
}

/// GPUs that this program was built without are refused before it starts ranks; where somebody else has
/// started them, all find the same, and the first one says it.
SUPEROFFLOAD_INLINE void expect_built_for_gpus(command_line const& c, gpu_support const& built,
                                               bool by_gpus) {
  auto const expect = [&](bool has, auto const&... why) {
    if (!has) {
      throw comm::agreed_error{exit_code::device, concat(by_gpus ? "--gpus" : "--device cuda", ": ", why...),
                               c.training.rank == 0};
    }
  };
  expect(built.cuda,
         "this program was built without CUDA; expected a build where CMake finds a CUDA toolkit, or ",
         by_gpus ? "--ranks" : "--device cpu");
  expect(
      built.nccl || c.training.ranks == 1, c.training.ranks,
      " ranks, but this program was built without NCCL; expected a build where CMake finds it, or one rank");
}

SUPEROFFLOAD_INLINE void add_budgets(CLI::App& app, offload::settings& s) {
  auto const budget = [&](char const* flag, std::optional<std::size_t>& bytes, char const* help) {
    app.add_option_function<double>(
           flag,
           [flag, &bytes](double gib) {
             constexpr double most = 1 << 24;  // 16 PiB
             expect(gib > 0.0 && gib <= most, exit_code::bad_input, flag, " is ", gib,
                    ", expected 0 < GIB <= ", most);
             bytes = static_cast<std::size_t>(gib * 0x1p30);
           },
           help)
        ->type_name("GIB")
        ->group("Offloading");
  };
  budget("--device_memory", s.device_memory, "plan for so much memory of the device at most");
  budget("--host_memory", s.host_memory, "plan for so much memory of the host at most, for each rank");
}

SUPEROFFLOAD_INLINE void add_offloading(CLI::App& app, training_options& o,
                                        std::filesystem::path& deepspeed_file) {
  constexpr char const* group = "Offloading";
  using mode = offload::mode;
  using on_or_off = offload::choice;
  auto& s = o.offload;
  app.add_option("--deepspeed_config", deepspeed_file,
                 "a DeepSpeed configuration; flags that are given must not contradict it")
      ->type_name("FILE")
      ->group(group);
  choice<mode>(
      app, "--offload", s.how,
      {{"auto", mode::automatic}, {"none", mode::none}, {"zero", mode::zero}, {"super", mode::super}},
      "where the optimizer's state is and works: auto: as planned; none: on the device; zero: on the "
      "CPU, after backward; super: on the CPU, alongside the device")
      ->group(group);
  choice<state_format>(
      app, "--state", s.state,
      {{"float32", state_format::float32}, {"bf16", state_format::bf16}, {"int8", state_format::int8}},
      "how optimizer state is stored: float32: exactly; bf16: m and v in bfloat16; int8: m and v in 8 bits, "
      "masters of bf16 weights in 24")
      ->group(group);
  app.add_option("--ratio", s.ratio,
                 "share of the parameters whose state is off the device; without it, as planned")
      ->group(group);
  app.add_option("--resource_group", s.resource_group,
                 "resctrl group of the host for the threads of CPU Adam, made if it does not exist")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--device_updated_share", s.device_updated_share,
                 "of those, the share that the device updates and not the CPU; without it, as planned")
      ->group(group);
  choice<on_or_off>(app, "--offload_weights", s.offload_weights,
                    {{"auto", on_or_off::automatic}, {"on", on_or_off::on}, {"off", on_or_off::off}},
                    "keep weights on the host and fetch them when they are used")
      ->group(group);
  app.add_option("--cpuadam_cores_perc", s.cpuadam_cores_perc, "share of the CPU's cores that update state")
      ->capture_default_str()
      ->group(group);
  app.add_option_function<std::int64_t>(
         "--bucket_mib",
         [&s](std::int64_t mib) {
           expect(1 <= mib && mib <= 4096, exit_code::bad_input, "--bucket_mib is ", mib,
                  ", expected 1 to 4096");
           s.bucket_bytes = mib << 20;
         },
         "MiB of weights that move at once")
      ->default_str(std::to_string(s.bucket_bytes >> 20))
      ->group(group);
  add_budgets(app, s);
  app.add_option("--plan", s.plan, "write the plan to this file, as JSON")->type_name("FILE")->group(group);
  app.add_option("--timeline", s.timeline, "draw a step of the plan in this file, as SVG")
      ->type_name("FILE")
      ->group(group);
  app.add_option(
         "--hardware", s.hardware,
         "plan with the rates of the machine that this file describes, and with --dry_run with its memory")
      ->type_name("FILE")
      ->group(group);
}

SUPEROFFLOAD_INLINE void add_reporting(CLI::App& app, training_options& o) {
  constexpr char const* group = "Evaluation, metrics, checkpoints";
  app.add_option("--eval_dataset", o.eval_dataset, "held-out data, evaluated before and after")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--eval_steps", o.eval_steps, "evaluate every so many steps too, 0: off")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--eval_only", o.eval_only, "evaluate --model on --eval_dataset, print the loss and stop")
      ->group(group);
  app.add_option("--log_interval", o.log_interval, "steps between two lines of a log")
      ->capture_default_str()
      ->group(group);
  app.add_option("--metrics", o.metrics, "write one JSON object per step to this file")
      ->type_name("FILE")
      ->group(group);
  app.add_option_function<std::string>(
         "--report_to", [&o](std::string const& list) { o.report_to = train::parse_report_choice(list); },
         "reports in --output_dir, of: tensorboard, wandb, jsonl, html; several with commas")
      ->type_name("LIST")
      ->default_str("none")
      ->group(group);
  app.add_option("--wandb_project", o.wandb.project, "of the report for Weights & Biases")
      ->type_name("NAME")
      ->capture_default_str()
      ->group(group);
  app.add_option("--wandb_run_name", o.wandb.run, "the run's name there; default: after the model")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--wandb_tags", o.wandb.tags, "the run's tags there")
      ->type_name("TAG")
      ->expected(1, -1)
      ->take_all()
      ->group(group);
  app.add_flag("--wall_clock_breakdown", o.wall_clock_breakdown,
               "say where the time of each step went, in the log and in --metrics")
      ->group(group);
  app.add_option("--trace", o.trace,
                 "write a timeline of the first steps to this file, for chrome://tracing or ui.perfetto.dev")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--trace_steps", o.trace_steps, "how many")->capture_default_str()->group(group);
}

SUPEROFFLOAD_INLINE void add_saving(CLI::App& app, training_options& o) {
  constexpr char const* group = "Evaluation, metrics, checkpoints";
  app.add_option("--save_steps", o.save_steps, "save a checkpoint every so many steps, 0: on a signal only")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--save_checkpoint", o.save_at_end, "save a checkpoint after the last step")->group(group);
  app.add_option("--save_total_limit", o.save_total_limit, "keep the newest checkpoints only, 0: all")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--save_on_each_node", o.save_on_each_node,
               "each host has an --output_dir of its own, for its part of checkpoints")
      ->group(group);
  app.add_option("--resume", o.resume,
                 "a checkpoint's directory, or auto: the newest valid one of --output_dir")
      ->type_name("DIR|auto")
      ->group(group);
  app.add_flag(
         "--overwrite_output_dir", o.overwrite_output,
         "remove what earlier runs have saved, exported and reported in --output_dir, and their --metrics")
      ->group(group);
  on_off(app, "--export", o.exports, "export the model after the last step")->group(group);
  on_off(app, "--export_every_save", o.export_every_save, "export a model beside every checkpoint")
      ->group(group);
  on_off(app, "--export_best", o.export_best,
         "export the model whenever the held-out loss is the lowest so far")
      ->group(group);
  app.add_flag("--dry_run", o.dry_run, "print the plan and stop; config.json is enough")->group(group);
}

SUPEROFFLOAD_INLINE void add_log(CLI::App& app, command_line& c) {
  constexpr char const* group = "Log";
  choice<log_level>(app, "--log_level", c.least,
                    {{"status", log_level::status},
                     {"info", log_level::info},
                     {"note", log_level::note},
                     {"warning", log_level::warning},
                     {"error", log_level::error}},
                    "the least important lines on standard error; status: the live line on a terminal",
                    {{"DEBUG", log_level::status},  // as DeepSpeed's example names them
                     {"INFO", log_level::info},
                     {"WARNING", log_level::warning},
                     {"ERROR", log_level::error},
                     {"CRITICAL", log_level::error}})
      ->group(group);
  app.add_flag("--quiet", c.quiet, "warnings and errors only, and nothing on standard output")->group(group);
}

/// --quiet is a level, too.
SUPEROFFLOAD_INLINE void settle_log(command_line& c) {
  if (c.quiet) {
    c.least = std::max(c.least, log_level::warning);
  }
}

/// An evaluation alone has no other data, and no state of an optimizer.
SUPEROFFLOAD_INLINE void settle_evaluation(command_line& c) {
  auto& o = c.training;
  if (o.eval_only && !o.eval_dataset.empty()) {
    o.dataset = {data::source{o.eval_dataset, std::nullopt}};
    o.dataset_percentage = 100.0;
    o.freeze = {"*"};
  }
}

/// What the file says joins the flags, after the ranks are settled, over which its batch is cut.
SUPEROFFLOAD_INLINE void apply_deepspeed(std::filesystem::path const& path, CLI::App const& app,
                                         command_line& c) {
  auto const file = train::read_deepspeed_config(path);
  auto const given = [&](std::string_view flag) { return app.get_option(std::string{flag})->count() > 0; };
  for (auto& note : train::apply(file, given, c.training.ranks, c.training)) {
    c.notes.push_back(std::move(note));
  }
  if (file.bf16) {
    auto const wanted = *file.bf16.value ? precision_choice::bf16 : precision_choice::float32;
    bool const told = given("--dtype");
    bool const same = (c.precision == precision_choice::float32) == (wanted == precision_choice::float32);
    expect(!told || same, exit_code::bad_input, file.bf16.where, ": ", *file.bf16.value, ", but --dtype is ",
           c.precision == precision_choice::float32 ? "float32"
           : c.precision == precision_choice::bf16  ? "bf16"
                                                    : "fp8",
           "; expected the same in both, or one of them left out");
    c.precision = told ? c.precision : wanted;
  }
  if (!file.note.empty()) {
    c.notes.push_back(file.note);
  }
}

/// \throws error(bad_input) for a flag that is given several times with different values, and is no list.
SUPEROFFLOAD_INLINE void expect_given_once(CLI::App const& app) {
  for (auto const* option : app.get_options()) {
    auto const& values = option->results();
    bool const is_list = option->get_items_expected_max() > 1;
    if (!is_list && option->get_expected_max() > 0) {
      auto const other =
          std::ranges::find_if(values, [&](auto const& value) { return value != values.front(); });
      expect(other == values.end(), exit_code::bad_input, option->get_name(), " is given ", values.size(),
             " times: ", values.empty() ? "" : printable(values.front(), 80), " and ",
             other == values.end() ? "" : printable(*other, 80), "; expected one value");
    }
  }
}

/// CLI11 takes the largest number for one that is larger.
SUPEROFFLOAD_INLINE void expect_representable(CLI::App const& app) {
  for (auto const* option : app.get_options()) {
    auto const kind = option->get_type_name();
    for (auto const& value : option->results()) {
      std::int64_t number = 0;
      auto const [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
      expect((kind != "INT" && kind != "N") || failure != std::errc::result_out_of_range,
             exit_code::bad_input, option->get_name(), " is ", printable(value, 80),
             ", expected a whole number below 2^63");
    }
  }
}

/// A flag that would do nothing without another one.
SUPEROFFLOAD_INLINE void expect_companions(CLI::App const& app, training_options const& o) {
  expect(app.count("--trace_steps") == 0 || !o.trace.empty() || o.report_to.html, exit_code::bad_input,
         "--trace_steps is given, but neither --trace FILE nor --report_to html, which show these steps");
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::optional<command_line> read_command_line(int argc, char** argv, char const* summary,
                                                                  gpu_support const& built) {
  command_line c;
  c.arguments.assign(argv, argv + argc);
  std::string const name = std::filesystem::path{argc > 0 ? argv[0] : ""}.filename();
  CLI::App app{summary, name};
  app.set_version_flag("--version", version_line(name), "Print the version and exit");
  app.footer(detail::exit_codes);
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);  // if all are the same
  app.set_config("--config", "",
                 "flags from a TOML or INI file, without their dashes; those given here count")
      ->type_name("FILE");
  app.allow_config_extras(CLI::config_extras_mode::error);
  app.config_formatter(std::make_shared<detail::flag_file>());
  detail::add_model_and_data(app, c.training);
  detail::add_optimization(app, c.training);
  detail::add_execution(app, c);
  std::optional<int> ranks, gpus;
  detail::add_ranks(app, c, ranks, gpus);
  std::filesystem::path deepspeed_file;
  detail::add_offloading(app, c.training, deepspeed_file);
  detail::add_reporting(app, c.training);
  detail::add_saving(app, c.training);
  detail::add_log(app, c);
  detail::example_flags example;
  detail::add_example_flags(app, example);
  try {
    app.parse(normalized(argc, argv));
  } catch (CLI::CallForHelp const&) {
    std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (CLI::CallForVersion const& version) {
    std::puts(version.what());
    return std::nullopt;
  } catch (CLI::ParseError const& e) { fail(exit_code::bad_input, refusal_of(app, e)); }
  detail::expect_given_once(app);
  detail::expect_representable(app);
  detail::settle_log(c);
  detail::settle_ranks(c, ranks, gpus, example.local_rank);
  detail::settle_example_flags(app, example, c);
  c.training.deepspeed_config = deepspeed_file;
  if (!deepspeed_file.empty()) {
    detail::apply_deepspeed(deepspeed_file, app, c);
  }
  if (c.precision == precision_choice::fp8) {
    c.training.gemms = gemm_format::float8;
  }
  detail::settle_evaluation(c);
  train::check(c.training);
  detail::expect_companions(app, c.training);
  if (c.device == device_choice::cuda && !plans_only(c)) {
    detail::expect_built_for_gpus(c, built, gpus.has_value());
  }
  return c;
}

}  // namespace superoffload::cli
