// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/inline.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/io/json.hpp>
#include <superoffload/train/deepspeed/config.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>
#include <vector>

namespace superoffload::train {
namespace detail {

using io::json_field;
template <class T>
using said = deepspeed_config::said<T>;

inline constexpr io::json_limits limits{.bytes = std::size_t{1} << 20, .depth = 16, .commas = 100'000};
inline constexpr std::int64_t most_sequences = 1'000'000;
inline constexpr std::int64_t most_steps = 1'000'000'000;
inline constexpr double largest = std::numeric_limits<double>::max();

enum class strings { no, as_numbers };

SUPEROFFLOAD_INLINE bool is_auto(io::json const& value) {
  return value.is_string() && value.get_ref<std::string const&>() == "auto";
}

/// NaN if it is no number.
SUPEROFFLOAD_INLINE double numeric(io::json const& raw, strings allowed) {
  double value = std::nan("");
  if (raw.is_number()) {
    value = raw.get<double>();
  } else if (raw.is_string() && allowed == strings::as_numbers) {
    auto const& text = raw.get_ref<std::string const&>();
    auto const* const last = text.data() + text.size();
    auto const [end, failure] = std::from_chars(text.data(), last, value);
    return failure == std::errc{} && end == last ? value : std::nan("");
  }
  return value;
}

SUPEROFFLOAD_INLINE double number(json_field const& field, double least, double most, strings allowed) {
  double const value = numeric(field.raw(), allowed);
  expect(least <= value && value <= most, exit_code::bad_input, field.where(), ": ", field.shown(),
         ", expected a number ",
         most < largest ? concat("in [", least, ", ", most, "]") : concat("of at least ", least));
  return value;
}

SUPEROFFLOAD_INLINE std::int64_t integer(json_field const& field, std::int64_t least, std::int64_t most,
                                         strings allowed) {
  double const value = numeric(field.raw(), allowed);
  expect(
      static_cast<double>(least) <= value && value <= static_cast<double>(most) && value == std::floor(value),
      exit_code::bad_input, field.where(), ": ", field.shown(), ", expected an integer from ", least, " to ",
      most);
  return static_cast<std::int64_t>(value);
}

/// The keys without effect here, for the note.
class inert_keys {
public:
  void add(std::string what) { keys_.push_back(std::move(what)); }
  [[nodiscard]] std::string note(std::string const& origin) const {
    std::string list;
    for (auto const& key : keys_) { list += (list.empty() ? "" : ", ") + key; }
    return list.empty() ? list : concat(origin, ": without effect here: ", list);
  }

private:
  std::vector<std::string> keys_;
};

/// An object whose members are read one by one; expect_no_more() refuses others. A null member counts as
/// missing.
class section {
public:
  section(json_field field, std::string path, inert_keys& inert, strings allowed)
      : field_{std::move(field)}, path_{std::move(path)}, inert_{&inert}, strings_{allowed} {
    expect(field_.raw().is_object(), exit_code::bad_input, field_.where(), ": ", field_.shown(),
           ", expected an object");
  }

  [[nodiscard]] json_field const& field() const noexcept { return field_; }

  std::optional<json_field> member(char const* key) {
    known_.emplace_back(key);
    return field_.has(key) ? std::optional{field_[key]} : std::nullopt;
  }
  /// A member that may be "auto", which counts as missing.
  std::optional<json_field> open_member(char const* key) {
    auto found = member(key);
    return found && is_auto(found->raw()) ? std::nullopt : found;
  }
  std::optional<section> object(char const* key, strings allowed) {
    auto found = member(key);
    return found ? std::optional{section{*found, path_of(key), *inert_, allowed}} : std::nullopt;
  }

  said<double> real(char const* key, double least, double most) {
    auto const found = open_member(key);
    return found ? said<double>{number(*found, least, most, strings_), found->where()} : said<double>{};
  }
  said<double> rate(char const* key) { return real(key, 0.0, largest); }
  said<std::int64_t> count(char const* key, std::int64_t least, std::int64_t most) {
    auto const found = open_member(key);
    return found ? said<std::int64_t>{integer(*found, least, most, strings_), found->where()}
                 : said<std::int64_t>{};
  }
  said<bool> boolean(char const* key) {
    auto const found = open_member(key);
    if (!found) {
      return {};
    }
    expect(found->raw().is_boolean(), exit_code::bad_input, found->where(), ": ", found->shown(),
           ", expected true or false");
    return {found->raw().get<bool>(), found->where()};
  }
  /// The index of a text in `names`; `any_case`: in upper or lower case.
  said<std::size_t> one_of(char const* key, std::vector<std::string> const& names, bool any_case = false) {
    auto const found = member(key);
    if (!found) {
      return {};
    }
    std::string text = found->raw().is_string() ? found->raw().get<std::string>() : std::string{};
    if (any_case) {
      std::ranges::transform(text, text.begin(), [](char c) { return 'A' <= c && c <= 'Z' ? c | 0x20 : c; });
    }
    auto const at = std::ranges::find(names, text);
    std::string listed;
    for (auto const& name : names) { listed += (listed.empty() ? "" : ", ") + name; }
    expect(at != names.end(), exit_code::bad_input, found->where(), ": ", found->shown(),
           ", expected one of: ", listed);
    return {static_cast<std::size_t>(at - names.begin()), found->where()};
  }

  /// Members of any value without effect here.
  void without_effect(std::initializer_list<char const*> keys) {
    for (char const* const key : keys) {
      if (member(key)) {
        inert_->add(path_of(key));
      }
    }
  }
  /// Members of a feature that is off: known, and not noted.
  void ignore(std::initializer_list<char const*> keys) {
    known_.insert(known_.end(), keys.begin(), keys.end());
  }
  void say_without_effect(std::string const& what) { inert_->add(path_of(what)); }

  /// A member that must be `value` if it is there.
  void only(char const* key, bool value, char const* reason) {
    auto const found = boolean(key);
    expect(!found || *found.value == value, exit_code::bad_input, found.where, ": ", !value,
           " is not supported: ", reason);
  }
  /// Objects that would change the training: each must be empty or have `enabled` false.
  void not_enabled(std::initializer_list<char const*> keys) {
    for (char const* const key : keys) {
      if (auto const found = member(key)) {
        auto const& raw = found->raw();
        bool const off = raw == false || (raw.is_object() && raw.empty()) ||
                         (raw.is_object() && raw.contains("enabled") && raw["enabled"] == false);
        expect(off, exit_code::bad_input, found->where(),
               ": not supported, expected to be left out or to have \"enabled\": false");
        inert_->add(path_of(key));
      }
    }
  }

  /// \throws error(bad_input) for a member that was not read.
  void expect_no_more() const {
    for (auto const& [name, value] : field_.raw().items()) {
      expect(std::ranges::find(known_, name) != known_.end(), exit_code::bad_input, field_[name].where(),
             ": unknown, expected a key of DeepSpeed's configuration");
    }
  }

private:
  [[nodiscard]] std::string path_of(std::string const& key) const {
    return path_.empty() ? key : path_ + "." + key;
  }

  json_field field_;
  std::string path_;
  inert_keys* inert_;
  strings strings_;
  std::vector<std::string> known_;
};

SUPEROFFLOAD_INLINE void read_bf16(section bf16, deepspeed_config& c) {
  c.bf16 = bf16.boolean("enabled");
  auto const states = bf16.boolean("bf16_optimizer_states");
  if (states) {
    c.state = {*states.value ? state_format::bf16 : state_format::float32, states.where};
  }
  bf16.without_effect({"bf16_master_weights_and_grads", "check_grad_overflow", "immediate_grad_update"});
  bf16.expect_no_more();
}

SUPEROFFLOAD_INLINE void read_precision(section& root, deepspeed_config& c) {
  if (auto const bf16 = root.object("bf16", strings::as_numbers)) {
    read_bf16(*bf16, c);
  }
  if (auto const bf16 = root.object("bfloat16", strings::as_numbers)) {  // its older name
    expect(!root.field().has("bf16"), exit_code::bad_input, bf16->field().where(),
           ": bf16 is given as well; expected one of them");
    read_bf16(*bf16, c);
  }
  if (auto fp16 = root.object("fp16", strings::as_numbers)) {
    auto const enabled = fp16->boolean("enabled");
    expect(!enabled || !*enabled.value, exit_code::bad_input, enabled.where,
           c.bf16.value.value_or(false)
               ? ": true, but bf16.enabled is true as well; expected bf16 alone"
               : ": true, but fp16 is not supported; expected bf16.enabled true instead");
    fp16->ignore({"auto_cast", "loss_scale", "initial_scale_power", "loss_scale_window", "hysteresis",
                  "consecutive_hysteresis", "min_loss_scale", "fp16_master_weights_and_grads"});
    fp16->expect_no_more();
  }
}

SUPEROFFLOAD_INLINE void read_betas(section& params, deepspeed_config& c) {
  auto const betas = params.open_member("betas");
  if (!betas) {
    return;
  }
  expect(betas->raw().is_array() && betas->raw().size() == 2, exit_code::bad_input, betas->where(), ": ",
         betas->shown(), ", expected two numbers");
  for (std::size_t i = 0; i < 2; ++i) {
    auto const beta = (*betas)[i];
    double const value = number(beta, 0.0, 1.0, strings::no);
    expect(value < 1.0, exit_code::bad_input, beta.where(), ": 1, expected a number below 1");
    (i == 0 ? c.beta1 : c.beta2) = deepspeed_config::said<double>{value, beta.where()};  // for g++ 13
  }
}

SUPEROFFLOAD_INLINE void read_optimizer(section& root, deepspeed_config& c) {
  auto optimizer = root.object("optimizer", strings::no);
  if (!optimizer) {
    return;
  }
  auto const type = optimizer->one_of("type", {"adamw", "adam"}, true);
  expect(static_cast<bool>(type), exit_code::bad_input, optimizer->field().where(),
         ".type is missing, expected AdamW");
  optimizer->without_effect({"legacy_fusion"});
  if (auto params = optimizer->object("params", strings::no)) {
    c.lr = params->rate("lr");
    read_betas(*params, c);
    c.epsilon = params->rate("eps");
    expect(!c.epsilon || static_cast<float>(*c.epsilon.value) > 0.0F, exit_code::bad_input, c.epsilon.where,
           ": ", c.epsilon.value.value_or(0.0), ", expected a number above 0 in float32");
    c.weight_decay = params->rate("weight_decay");
    // DeepSpeed's Adam is AdamW unless told otherwise; without decay the two are the same.
    bool const decays = c.weight_decay.value.value_or(1.0) != 0.0;
    for (char const* const key : {"adam_w_mode", "adamw_mode"}) {
      auto const decoupled = params->boolean(key);
      expect(!decoupled || *decoupled.value || !decays || *type.value == 0, exit_code::bad_input,
             decoupled.where, ": false, but decay is AdamW's here; expected weight_decay 0 with it");
    }
    params->only("bias_correction", true, "AdamW corrects its moments");
    params->only("amsgrad", false, "neither does DeepSpeed's Adam");
    params->only("fp32_optimizer_states", true, "the optimizer's state is float32");
    params->without_effect({"torch_adam", "fused", "foreach", "set_grad_none"});
    params->expect_no_more();
  }
  optimizer->expect_no_more();
}

/// The peak may be in the scheduler and in the optimizer.
SUPEROFFLOAD_INLINE void settle_peak(deepspeed_config& c, said<double> const& peak) {
  if (!peak) {
    return;
  }
  expect(!c.lr || *c.lr.value == *peak.value, exit_code::bad_input, peak.where, ": ", *peak.value,
         ", but optimizer.params.lr is ", c.lr.value.value_or(0.0),
         "; DeepSpeed takes the scheduler's: expected the same in both");
  c.lr = peak;
}

SUPEROFFLOAD_INLINE void read_scheduler(section& root, deepspeed_config& c) {
  using schedule = optim::deepspeed_schedule;
  auto scheduler = root.object("scheduler", strings::no);
  if (!scheduler) {
    return;
  }
  auto const type = scheduler->one_of("type", {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR"});
  expect(static_cast<bool>(type), exit_code::bad_input, scheduler->field().where(),
         ".type is missing, expected WarmupLR, WarmupDecayLR or WarmupCosineLR");
  schedule rule;
  rule.kind = static_cast<schedule::rule>(*type.value);
  bool const cosine = rule.kind == schedule::rule::warmup_cosine;
  said<double> peak;
  bool peak_is_said = false;
  if (auto params = scheduler->object("params", strings::no)) {
    c.warmup_steps = params->count("warmup_num_steps", 1, most_steps);
    if (params->field().has("warmup_num_steps")) {
      rule.warmup_steps = 0;  // from c.warmup_steps, or "auto"
    }
    auto const begin = cosine ? params->real("warmup_min_ratio", 0.0, 1.0) : params->rate("warmup_min_lr");
    rule.begin = begin.value.value_or(rule.begin);
    auto const rise = params->one_of("warmup_type", {"log", "linear"});
    rule.warmup = static_cast<schedule::rise>(rise.value.value_or(0));
    if (cosine) {
      rule.end = params->real("cos_min_ratio", 0.0, 1.0).value.value_or(rule.end);
    } else {
      peak = params->rate("warmup_max_lr");
      peak_is_said = params->field().has("warmup_max_lr");
    }
    if (rule.kind != schedule::rule::warmup) {
      c.total_steps = params->count("total_num_steps", 1, most_steps);
    }
    auto const last = params->count("last_batch_iteration", -1, most_steps);
    expect(!last || *last.value == -1, exit_code::bad_input, last.where, ": ", last.value.value_or(-1),
           ", expected -1: a resumed run knows its step");
    params->expect_no_more();
  }
  if (rule.kind == schedule::rule::warmup_decay &&
      !peak_is_said) {  // the other rules take the optimizer's lr
    peak = {rule.peak, concat(scheduler->field().where(), ".params.warmup_max_lr")};
  }
  c.schedule = {rule, type.where};
  settle_peak(c, peak);
  scheduler->expect_no_more();
}

SUPEROFFLOAD_INLINE void read_offload_optimizer(section& zero, std::int64_t stage, deepspeed_config& c) {
  auto offload = zero.object("offload_optimizer", strings::as_numbers);
  if (!offload) {
    return;
  }
  auto const where = offload->field().where();
  auto const device = offload->one_of("device", {"none", "cpu", "auto"});
  bool const on_cpu = device.value.value_or(0) == 1;
  bool const open = device.value.value_or(0) == 2 || (on_cpu && offload->field().has("super_offload") &&
                                                      is_auto(offload->field()["super_offload"].raw()));
  auto const super = offload->boolean("super_offload");
  bool const is_super = super.value.value_or(false);
  expect(!is_super || on_cpu, exit_code::bad_input, super.where,
         ": true, but offload_optimizer.device is not cpu; expected \"device\": \"cpu\"");
  expect(!on_cpu || stage > 0, exit_code::bad_input, where,
         ".device: cpu, but zero_optimization.stage is 0; expected a stage from 1 to 3");
  expect(!is_super || stage == 3, exit_code::bad_input, super.where,
         ": true, but zero_optimization.stage is ", stage, "; expected stage 3");
  auto const ratio = offload->real("ratio", 0.0, 1.0);
  expect(!on_cpu || !ratio || *ratio.value == 1.0 || stage == 3, exit_code::bad_input, ratio.where, ": ",
         ratio.value.value_or(1.0), ", but zero_optimization.stage is ", stage,
         "; expected stage 3, or a ratio of 1");
  auto const cores = offload->real("cpuadam_cores_perc", 0.0, 1.0);
  expect(!cores || *cores.value > 0.0, exit_code::bad_input, cores.where, ": 0, expected a number above 0");
  c.offload_is_open = open;
  if (device && !open) {
    c.offload = {on_cpu ? is_super ? offload::mode::super : offload::mode::zero : offload::mode::none,
                 concat(where, on_cpu && super ? ".super_offload" : ".device")};
  }
  if (on_cpu || open) {
    c.ratio = ratio;
    c.cpuadam_cores_perc = cores;
  } else {
    offload->without_effect({"ratio", "cpuadam_cores_perc", "super_offload"});
  }
  static_cast<void>(offload->boolean("pin_memory"));
  offload->without_effect(
      {"pin_memory", "nvme_path", "buffer_count", "pipeline_read", "pipeline_write", "fast_init"});
  offload->expect_no_more();
}

SUPEROFFLOAD_INLINE void read_offload_param(section& zero, std::int64_t stage, deepspeed_config& c) {
  auto offload = zero.object("offload_param", strings::as_numbers);
  if (!offload) {
    return;
  }
  auto const device = offload->one_of("device", {"none", "cpu", "auto"});
  bool const on_cpu = device.value.value_or(0) == 1;
  expect(!on_cpu || stage == 3, exit_code::bad_input, device.where, ": cpu, but zero_optimization.stage is ",
         stage, "; expected stage 3");
  if (device && *device.value < 2) {
    c.offload_weights = {on_cpu ? offload::choice::on : offload::choice::off, device.where};
  }
  static_cast<void>(offload->boolean("pin_memory"));
  offload->without_effect({"pin_memory", "nvme_path", "buffer_count", "buffer_size", "max_in_cpu"});
  offload->expect_no_more();
}

/// Keys of zero_optimization without effect here.
inline constexpr std::initializer_list<char const*> inert_zero_keys{
    "overlap_comm",
    "reduce_bucket_size",
    "sub_group_size",
    "contiguous_gradients",
    "reduce_scatter",
    "use_multi_rank_bucket_allreduce",
    "allgather_partitions",
    "allgather_bucket_size",
    "load_from_fp32_weights",
    "elastic_checkpoint",
    "cpu_offload_use_pin_memory",
    "prefetch_bucket_size",
    "stage3_prefetch_bucket_size",
    "param_persistence_threshold",
    "stage3_param_persistence_threshold",
    "model_persistence_threshold",
    "stage3_model_persistence_threshold",
    "max_live_parameters",
    "stage3_max_live_parameters",
    "max_reuse_distance",
    "stage3_max_reuse_distance",
    "gather_16bit_weights_on_model_save",
    "stage3_gather_16bit_weights_on_model_save",
    "stage3_gather_fp16_weights_on_model_save",
    "module_granularity_threshold",
    "stage3_module_granularity_threshold",
    "use_all_reduce_for_fetch_params",
    "stage3_use_all_reduce_for_fetch_params",
    "allgather_sequential",
    "stage3_allgather_sequential",
    "ignore_unused_parameters",
    "legacy_stage1",
    "round_robin_gradients",
    "zeropp_loco_param",
    "mics_shard_size",
    "mics_hierarchical_params_gather",
    "memory_efficient_linear",
    "pipeline_loading_checkpoint",
    "override_module_apply",
    "log_trace_cache_warnings",
    "enable_sanity_checks",
    "save_muon_momentum_buffer_in_memory",
    "leaf_module"};

SUPEROFFLOAD_INLINE void read_zero(section& root, deepspeed_config& c) {
  auto zero = root.object("zero_optimization", strings::as_numbers);
  if (!zero) {
    return;
  }
  auto const stage = zero->count("stage", 0, 3).value.value_or(0);
  if (stage < 3 && zero->field().has("stage")) {
    zero->say_without_effect(concat("stage ", stage, " (one rank holds everything at every stage)"));
  }
  read_offload_optimizer(*zero, stage, c);
  static_cast<void>(zero->boolean("overlap_comm"));
  static_cast<void>(zero->count("reduce_bucket_size", 0, std::int64_t{1} << 53));
  static_cast<void>(zero->count("sub_group_size", 0, std::int64_t{1} << 53));
  read_offload_param(*zero, stage, c);
  if (auto const ranks = zero->count("zero_hpz_partition_size", 1, 1 << 20); ranks.value.value_or(1) > 1) {
    c.weight_ranks = ranks;  // 1 turns it off
  }
  zero->only("cpu_offload", false, "use offload_optimizer.device");
  zero->only("cpu_offload_param", false, "use offload_param.device");
  for (char const* const key :
       {"zero_quantized_weights", "zero_quantized_nontrainable_weights", "zero_quantized_gradients"}) {
    zero->only(key, false, "it would change the training");
  }
  zero->not_enabled({"zenflow"});
  zero->without_effect(inert_zero_keys);
  zero->expect_no_more();
}

SUPEROFFLOAD_INLINE void read_checkpoint(section& root, deepspeed_config& c) {
  if (auto checkpoint = root.object("checkpoint", strings::no)) {
    c.save_on_each_node = checkpoint->boolean("use_node_local_storage");
    checkpoint->without_effect({"tag_validation", "load_universal", "parallel_write", "writer"});
    checkpoint->expect_no_more();
  }
}

SUPEROFFLOAD_INLINE void read_others(section& root, deepspeed_config& c) {
  root.only("dataloader_drop_last", false, "the last step of an epoch takes the rows that are left");
  c.sequence_parallel = root.count("sequence_parallel_size", 1, 1 << 20);
  root.not_enabled({"amp", "torch_autocast", "progressive_layer_drop", "curriculum_learning",
                    "data_efficiency", "elasticity", "hybrid_engine", "quantize_training",
                    "compression_training", "weight_quantization", "sparse_attention", "tensor_parallel",
                    "expert_parallel"});
  root.without_effect({"steps_per_print",
                       "dump_state",
                       "memory_breakdown",
                       "disable_allgather",
                       "communication_data_type",
                       "seq_parallel_communication_data_type",
                       "prescale_gradients",
                       "gradient_predivide_factor",
                       "gradient_allreduce_op",
                       "sparse_gradients",
                       "managed_gradient_accumulation",
                       "zero_allow_untested_optimizer",
                       "zero_force_ds_cpu_optimizer",
                       "activation_checkpointing",
                       "use_data_before_expert_parallelism",
                       "comms_logger",
                       "tensorboard",
                       "wandb",
                       "csv_monitor",
                       "comet",
                       "flops_profiler",
                       "autotuning",
                       "eigenvalue",
                       "pipeline",
                       "aio",
                       "nebula",
                       "datastates",
                       "data_types",
                       "timers",
                       "compile",
                       "graph_harvesting",
                       "vocabulary_size",
                       "log_level"});
  root.expect_no_more();
}

}  // namespace detail

SUPEROFFLOAD_INLINE deepspeed_config parse_deepspeed_config(std::string_view text,
                                                            std::string const& origin) {
  auto const document = io::parse_json(text, origin, detail::limits);
  detail::inert_keys inert;
  detail::section root{{document, origin}, "", inert, detail::strings::no};
  deepspeed_config c;
  c.train_batch_size = root.count("train_batch_size", 1, detail::most_sequences);
  c.micro_batch_size = root.count("train_micro_batch_size_per_gpu", 1, detail::most_sequences);
  c.accumulation = root.count("gradient_accumulation_steps", 1, detail::most_sequences);
  c.gradient_clipping = root.rate("gradient_clipping");
  detail::read_precision(root, c);
  detail::read_optimizer(root, c);
  detail::read_scheduler(root, c);
  detail::read_zero(root, c);
  c.wall_clock_breakdown = root.boolean("wall_clock_breakdown");
  detail::read_checkpoint(root, c);
  detail::read_others(root, c);
  c.note = inert.note(origin);
  c.origin = origin;
  return c;
}

SUPEROFFLOAD_INLINE deepspeed_config read_deepspeed_config(std::filesystem::path const& file) {
  return parse_deepspeed_config(io::read_file(file, detail::limits.bytes), io::shown(file));
}

}  // namespace superoffload::train
