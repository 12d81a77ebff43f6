// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/cli/join.hpp>
#include <superoffload/comm/communicator.hpp>
#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/host_group.hpp>
#include <superoffload/core/numa.hpp>
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/instruction_set.hpp>
#include <superoffload/cpu/kernels.hpp>
#if defined(BENCH_TRAIN_CUDA)
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cuda/nvtx.hpp>
#include <superoffload/cudnn/choose.hpp>
#endif
#if defined(SUPEROFFLOAD_HAS_NCCL)
#include <superoffload/nccl/communicator.hpp>
#endif
#if defined(BENCH_TRAIN_CUPTI)
#include "gpu_activity.hpp"
#endif
#include <superoffload/io/directory.hpp>
#include <superoffload/model/llama.hpp>
#include <superoffload/offload/super.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/planned_engine.hpp>
#include <superoffload/train/planning/host_share.hpp>
#include <superoffload/train/planning/machine_file.hpp>
#include <superoffload/train/planning/plan_file.hpp>
#include <superoffload/train/run/breakdown.hpp>
#include <superoffload/train/run/metrics.hpp>
#include <superoffload/train/run/step_trace.hpp>
#include <superoffload/zero/offloaded.hpp>
#include <superoffload/zero/offloaded_or_sharded.hpp>
#include <superoffload/zero/sharded.hpp>

#include "bound.hpp"
#include "job.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace superoffload::bench {

using clock_type = std::chrono::steady_clock;
#if defined(BENCH_TRAIN_NVTX)
using profile = so::profile::nvtx;
#else
using profile = so::profile::none;
#endif

inline double seconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Deterministic weights, small enough to train: pieces of one million numbers, each from an offset of its
/// own, so that no rows of a matrix are equal. Biases of routers are zero, so that experts get about equally
/// many tokens.
inline void random_weights(std::string const& name, std::int64_t first, std::span<float> to) {
  if (name.ends_with("router.bias")) {
    std::fill(to.begin(), to.end(), 0.0F);
    return;
  }
  static std::vector<float> const numbers = [] {
    std::vector<float> made(std::size_t{1} << 20);
    for (std::size_t i = 0; i < made.size(); ++i) {
      auto bits = (i + 1) * 0x9E3779B97F4A7C15U;
      bits ^= bits >> 31;
      made[i] = 0.04F * (static_cast<float>(bits >> 40) * 0x1p-24F - 0.5F);
    }
    return made;
  }();
  constexpr std::size_t piece = 1024;
  auto const start = std::hash<std::string>{}(name);
  auto element = static_cast<std::size_t>(first);
  while (!to.empty()) {
    auto const inside = element % piece;
    auto const count = std::min(to.size(), piece - inside);
    auto offset = (start + element / piece) * 0x9E3779B97F4A7C15U;
    offset = (offset ^ (offset >> 29)) % (numbers.size() - piece);
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(offset + inside), count, to.begin());
    to = to.subspan(count);
    element += count;
  }
}

/// The settings of offloading in the flags.
inline so::offload::settings settings_of(job const& j) {
  so::offload::settings s;
  s.how = j.offload;
  s.ratio = j.ratio;
  s.device_updated_share = j.device_updated_share;
  auto const budget = [](std::optional<double> gib) {
    return gib ? std::optional{static_cast<std::size_t>(*gib * 0x1p30)} : std::nullopt;
  };
  s.device_memory = budget(j.device_memory);
  s.host_memory = budget(j.host_memory);
  s.offload_weights = j.offload_weights;
  s.state = j.state;
  if (j.weight_ranks > 0) {
    s.weight_ranks = j.weight_ranks;
    s.sums_in_copies = true;
  }
  s.speculation = j.speculation == "adaptive" ? so::offload::choice::automatic
                  : j.speculation == "on"     ? so::offload::choice::on
                                              : so::offload::choice::off;
  s.bucket_bytes = j.bucket_mib << 20;
  return s;
}

/// The planned configuration, with the overrides of the flags.
inline so::offload::configuration configured(job const& j, so::offload::configuration a) {
  a.pinned_buffers = j.pinned_buffers > 0 ? j.pinned_buffers : a.pinned_buffers;
  a.workers = j.workers > 0 ? j.workers : a.workers;
  a.buffers.weights = j.weight_buffers > 0 ? j.weight_buffers : a.buffers.weights;
  a.double_buffered = j.double_buffered.value_or(a.double_buffered);
  return a;
}

inline so::data::batch random_batch(so::model::config const& config, job const& j, std::uint64_t step) {
  so::data::batch b;
  b.starts.push_back(0);
  std::uint64_t state = step + 1;
  for (std::int64_t s = 0; s < j.batch; ++s) {
    for (std::int64_t i = 0; i < j.seq; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      b.tokens.push_back(
          static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(config.vocabulary)));
      b.positions.push_back(static_cast<std::int32_t>(i));
    }
    b.starts.push_back(static_cast<std::int32_t>(b.tokens.size()));
  }
  for (std::size_t i = 0; i < b.tokens.size(); ++i) {
    bool const last = (static_cast<std::int64_t>(i) + 1) % j.seq == 0;
    b.targets.push_back(last ? -1 : b.tokens[i + 1]);
  }
  return b;
}

/// TFLOP/s of a square GEMM in T: an upper bound for training.
template <class T, class D>
double gemm_tflops(D& device, std::int64_t n) {
  typename D::stream stream{device};
  auto const elements = static_cast<std::size_t>(n * n);
  so::buffer<D> const a{device, elements * sizeof(T)}, b{device, elements * sizeof(T)},
      c{device, elements * sizeof(T)};
  std::vector<T> values(elements);
  for (auto const* operand : {&a, &b}) {
    for (std::size_t i = 0; i < elements; ++i) {
      values[i] = T(static_cast<float>((i * 2654435761U) % 1021U) * 0x1p-10F - 0.5F);
    }
    stream.copy(operand->data(), values.data(), operand->bytes());
    stream.synchronize();
  }
  std::vector<double> times;
  for (int i = 0; i < 7; ++i) {
    auto const begin = clock_type::now();
    launch(stream, so::kernel::gemm<T>{.a = a.template as<T>(),
                                       .b = b.template as<T>(),
                                       .c = c.template as<T>(),
                                       .m = n,
                                       .n = n,
                                       .k = n,
                                       .transpose_b = true});
    stream.synchronize();
    times.push_back(seconds_since(begin));
  }
  auto const size = static_cast<double>(n);
  return 2.0 * size * size * size / median(times) * 1e-12;
}

/// Measures an engine and prints the line. `group` is null for a single rank.
// one piece: the order of plan, measurements and line, whose results each later step needs.
template <class Engine, class D = typename Engine::device_type>
void measure(job const& j, D& device, typename Engine::group_type* group, std::int64_t gemm_size,
             std::string const& processor) {
  using element = typename Engine::element_type;
  auto const& config = j.config;
  auto const ranks = so::comm::host_group_of(group);
  auto const kernels = so::train::attention_of(device);
  auto const attention = kernels.empty() ? std::string{D::name()} : kernels;
  double const bound = gemm_tflops<element>(device, gemm_size);
  so::train::engine_options options{.max_grad_norm = j.max_grad_norm,
                                    .max_rows = j.batch * j.seq,
                                    .max_positions = j.seq,
                                    .sequence_ranks = j.sequence_ranks,
                                    .accumulates = j.accumulation > 1,
                                    .recompute = j.recompute,
                                    .records = !j.trace.empty()};
  Engine engine{device, group, config, options};
  so::comm::abort_on_exception const guard{ranks};
  auto const made = so::train::plan_engine(engine, {.offload = settings_of(j),
                                                    .micro_batches = static_cast<int>(j.accumulation),
                                                    .checks_gradient = j.max_grad_norm > 0.0,
                                                    .hit_rate = j.hit_rate});
  auto const& machine = made.machine;
  auto const& planned = made.plan;
  if (ranks.is_first()) {
    std::fputs(so::offload::describe(planned).c_str(), stderr);
    if (!j.plan.empty()) {
      so::io::replace_file(j.plan, so::train::to_json(planned, machine.name));
    }
  }
  so::offload::expect_fits(planned);
  engine.configure(configured(j, planned.state), planned.on_device.total());
  auto const& allocated = engine.allocation();
  auto const rows = options.largest_batch().rows;
  // It frees its memory, which is not in the plan.
  auto const least =
      so::bench::bound_measurement<element, D>{device, config, j.batch, j.seq, j.sequence_ranks}.measure(
          j.accumulation, allocated.recomputed_flops_per_token * static_cast<double>(rows),
          planned.resident * static_cast<double>(allocated.trainable_parameters) / ranks.ranks(), j.state);
  engine.initialize(random_weights);
  double loss = 0.0;
  std::int64_t done = 0;
  int const groups = ranks.ranks() / j.sequence_ranks, own_group = ranks.rank() / j.sequence_ranks;
  auto const forward_and_backward = [&](std::optional<double> rate) {
    std::vector<so::data::batch> batches;
    std::int64_t targets = 0;
    for (std::int64_t k = 0; k < j.accumulation; ++k) {
      auto const number = (done * j.accumulation + k) * groups + own_group;
      batches.push_back(random_batch(config, j, static_cast<std::uint64_t>(number)));
      targets += batches.back().label_tokens() * groups;
    }
    ++done;
    engine.begin_step(targets, j.accumulation, rate);
    loss = 0.0;
    for (auto const& batch : batches) {
      loss += engine.forward(batch);
      engine.backward();
    }
  };
  auto const one_step = [&] {
    forward_and_backward(1e-4);
    engine.step(1e-4);
  };
  for (std::int64_t i = 0; i < j.warm_up; ++i) { one_step(); }
  engine.synchronize();
  auto const times_of = [&](auto&& work) {
    std::vector<double> times;
    for (std::int64_t i = 0; i < j.steps; ++i) {
      auto const begin = clock_type::now();
      work();
      times.push_back(seconds_since(begin));
    }
    engine.synchronize();
    return times;
  };
  // From check to check: a step's update overlaps the making of the next batch.
  auto const each = times_of(one_step);
  double const seconds = median(each);
  std::string each_ms;
  for (auto const time : each) {
    each_ms += so::concat(each_ms.empty() ? "" : ", ", std::round(1e4 * time) / 10.0);
  }
  auto const device_bytes = device.bytes_in_use();  // an engine frees nothing while it lives
  if (auto* const times = engine.times(); times != nullptr) {
    std::vector<std::string> units;
    for (auto const& unit : engine.model().units()) { units.push_back(unit.name()); }
    so::train::step_trace trace{units};
    for (int i = 0; i < 3; ++i) {
      one_step();
      auto seen = times->collect();
      if (i > 0 && ranks.is_first()) {  // the first recording has all earlier steps
        std::fprintf(stderr, "%s\n",
                     describe(so::train::break_down(seen, times->tracks(), units.size()), units).c_str());
        trace.add(i, std::move(seen));
      }
    }
    if (ranks.is_first()) {
      so::io::replace_file(j.trace, trace.json(times->tracks()));
    }
  }
  [[maybe_unused]] std::string idle = "null";
#if defined(BENCH_TRAIN_CUPTI)
  if (j.device == "cuda" && j.idle_steps > 0) {
    so::bench::gpu_activity activity;
    for (int i = 0; i < j.idle_steps; ++i) { one_step(); }
    engine.synchronize();
    activity.finish();
    idle = std::to_string(activity.idle_share());
    if (!j.timeline.empty() && ranks.is_first()) {
      activity.write_trace(j.timeline);
    }
  }
#endif
  auto offloading =
      so::concat("\"state\": \"", so::name_of(j.state), "\", ",
                 j.device_memory ? so::concat("\"device_memory_gib\": ", *j.device_memory, ", ") : "",
                 "\"planned_step_time_ms\": ", 1e3 * planned.step_time,
                 ", \"bound_ms\": ", 1e3 * planned.bound, ", \"measuring_ms\": ", 1e3 * made.measuring, ", ");
  if (ranks.ranks() > 1) {
    auto const& p = machine.peers;
    offloading += so::concat(
        j.ctas ? so::concat("\"max_ctas\": ", *j.ctas, ", ") : "", "\"gather_buffers\": ",
        std::min(engine.options().configuration.buffers.weights, planned.gathered_units),
        ", \"collective_bytes\": ", planned.exchanged, ", \"collective_ms\": ", 1e3 * planned.collective_time,
        ", \"collective_waited_ms\": ", 1e3 * planned.step.waited_for_ranks,
        ", \"all_gather_gb_per_s\": ", 1e-9 * p.all_gather,
        ", \"reduce_scatter_gb_per_s\": ", 1e-9 * p.reduce_scatter,
        ", \"collective_latency_us\": ", 1e6 * p.latency, ", \"share_beside_compute\": ", p.beside_compute,
        ", \"compute_share_beside\": ", p.compute_beside, ", ");
  }
  if constexpr (Engine::configures) {
    auto const counts = engine.state().counts();
    auto const& a = engine.options().configuration;
    offloading += so::concat(
        "\"resident\": ", planned.resident, ", \"host\": ", planned.host,
        ", \"device_updated\": ", planned.device_updated,
        ", \"weight_bytes_on_host\": ", planned.on_host.weights,
        ", \"gradient_bytes_on_host\": ", planned.on_host.gradients,
        ", \"activation_bytes_on_host\": ", allocated.activations_on_host,
        ", \"activation_buffers\": ", a.activations.buffers, ", \"max_grad_norm\": ", j.max_grad_norm,
        ", \"buckets\": ", a.buckets.size(), ", \"pinned_buffers\": ", a.pinned_buffers,
        ", \"staging_buffers\": ", a.staging_buffers,
        ", \"double_buffered\": ", a.double_buffered ? "true" : "false", ", \"workers\": ", a.workers,
        ", \"speculation\": \"", j.speculation, "\", \"hit_rate\": ", engine.state().hit_rate(),
        ", \"speculated\": ", counts.speculated, ", \"committed\": ", counts.committed,
        ", \"updated\": ", counts.updated, ", \"resent\": ", counts.resent,
        ", \"machine\": ", so::train::to_json(machine, "measured when this run began"), ", ");
  } else {
    // The time without the optimizer, whose time depends on the number of ranks.
    auto const without = median(times_of([&] {
      forward_and_backward(std::nullopt);
      engine.synchronize();
    }));
    offloading += so::concat("\"forward_backward_ms\": ", 1e3 * without, ", ");
  }
  if (!ranks.is_first()) {
    return;
  }
  auto const shared = j.accumulation * j.batch * j.seq;  // by the ranks of a group
  auto const tokens = j.accumulation * rows;             // of one rank
  double const model =
      3.0 / j.sequence_ranks * engine.model().forward_flops(shared, [&](std::int32_t window) {
        return j.accumulation * j.batch * so::kernel::visible_pairs(j.seq, window);
      });
  double const recomputed = allocated.recomputed_flops_per_token * static_cast<double>(tokens);
  std::printf(
      "{\"shape\": \"%s\", \"device\": \"%s\", \"processor\": \"%s\", \"dtype\": \"%s\", \"attention\": "
      "\"%s\", \"gpus\": %d, \"sequence_parallel\": %d, \"weight_ranks\": %d, \"tiled_mlp\": %lld, "
      "\"layers\": %lld, "
      "\"batch\": %lld, \"seq\": %lld, \"accumulation\": %lld, \"results\": %lld, \"results_recomputed\": "
      "%lld, "
      "\"parameters\": %lld, \"steps\": %lld, "
      "\"step_time_ms\": %.3f, \"every_step_ms\": [%s], \"tokens_per_second\": %.1f, "
      "\"tokens_per_second_of_each\": %.1f, \"model_tflops\": %.5f, \"hardware_tflops\": "
      "%.5f, "
      "\"gemm_tflops\": %.5f, \"share_of_gemm_rate\": %.3f, \"measured_bound_ms\": %.3f, "
      "\"measured_gemms_ms\": %.3f, \"measured_attention_ms\": %.3f, \"measured_recomputed_ms\": %.3f, "
      "\"measured_update_ms\": %.3f, \"share_of_measured_bound\": %.3f, \"device_bytes\": %zu, "
      "\"plan_bytes\": "
      "%zu, "
      "\"host_bytes\": %zu, \"gpu_idle_share\": %s, %s\"loss\": %.4f}\n",
      j.shape.c_str(), j.device.c_str(), processor.c_str(), j.dtype.c_str(), attention.c_str(), ranks.ranks(),
      j.sequence_ranks, engine.options().configuration.weight_ranks, static_cast<long long>(config.tiled_mlp),
      static_cast<long long>(config.layers), static_cast<long long>(j.batch), static_cast<long long>(j.seq),
      static_cast<long long>(j.accumulation), static_cast<long long>(allocated.results),
      static_cast<long long>(allocated.results_recomputed), static_cast<long long>(allocated.parameters),
      static_cast<long long>(j.steps), seconds * 1e3, each_ms.c_str(),
      static_cast<double>(shared * groups) / seconds, static_cast<double>(tokens) / seconds,
      model / seconds * 1e-12, (model + recomputed) / seconds * 1e-12, bound,
      (model + recomputed) / seconds * 1e-12 / bound, 1e3 * least.total(), 1e3 * least.gemms,
      1e3 * least.attention, 1e3 * least.recompute, 1e3 * least.update, least.total() / seconds, device_bytes,
      allocated.total(), so::train::peak_resident_bytes(), idle.c_str(), offloading.c_str(), loss);
}

/// Llama without offloading is measured with an engine without offload policy.
template <class Architecture, class Precision, class D>
void measure_alone(job const& j, D& device, std::int64_t gemm_size, std::string const& processor) {
  using so::train::engine;
  if constexpr (std::is_same_v<Architecture, so::model::llama>) {
    if (j.offload == so::offload::mode::none) {
      measure<engine<Architecture, D, Precision, so::zero::resident, so::offload::none, profile>>(
          j, device, nullptr, gemm_size, processor);
      return;
    }
  }
  measure<engine<Architecture, D, Precision, so::zero::offloaded, so::offload::super, profile>>(
      j, device, nullptr, gemm_size, processor);
}

/// Calls with(precision) with the precision of the flags. float32 is for Llama only.
template <class Architecture, class With>
void with_precision(job const& j, With&& with) {
  if (j.dtype != "float32") {
    with(so::precision::bf16{});
  } else if constexpr (std::is_same_v<Architecture, so::model::llama>) {
    with(so::precision::fp32{});
  } else {
    so::fail(so::exit_code::bad_input, "--dtype ", j.dtype, " is for shapes of Llama, '", j.shape,
             "' is measured in bf16");
  }
}

template <class Architecture>
void measure_on_cpu(job const& j) {
  so::cpu::device device;
  auto const processor =
      so::concat(name_of(so::cpu::active_instruction_set()), ", ", device.threads().size(), " threads");
  with_precision<Architecture>(
      j, [&]<class P>(P) { measure_alone<Architecture, P>(j, device, 2048, processor); });
}

#if defined(BENCH_TRAIN_CUDA)
inline constexpr std::int64_t gemm_size_on_cuda = 8192;

inline void choose_attention(job const& j, so::cuda::device& device) {
  auto const& config = j.config;
  auto const note = so::cudnn::choose_attention(device, j.attention,
                                                {.starts = nullptr,
                                                 .documents = j.batch,
                                                 .rows = j.batch * j.seq,
                                                 .heads = static_cast<std::int32_t>(config.heads),
                                                 .kv_heads = static_cast<std::int32_t>(config.kv_heads),
                                                 .head_dim = static_cast<std::int32_t>(config.head_dim),
                                                 .longest = static_cast<std::int32_t>(j.seq),
                                                 .window = config.longest_window(),
                                                 .scale = 1},
                                                config.has_sinks, j.dtype != "float32");
  if (!note.empty()) {
    std::fprintf(stderr, "bench_train: attention by flash: %s\n", note.c_str());
  }
}

template <class Architecture>
void measure_on_cuda(job const& j) {
  so::cuda::device device;
  choose_attention(j, device);
  with_precision<Architecture>(j, [&]<class P>(P) {
    measure_alone<Architecture, P>(j, device, gemm_size_on_cuda, so::cuda::device::name());
  });
}
#else
template <class Architecture>
void measure_on_cuda(job const&) {
  so::fail(so::exit_code::device, "--device cuda: this program was built without CUDA; use --device cpu");
}
#endif

#if defined(SUPEROFFLOAD_HAS_NCCL)
/// Measures as one of several ranks.
template <class Architecture>
void measure_as_rank(job const& j, so::comm::environment const& run) {
  using so::train::engine;
  using sharded = so::zero::sharded<so::nccl::gpus>;
  using offloads_gradients = so::zero::offloaded_or_sharded<so::nccl::gpus>;
  auto member = so::cli::join(run);
  so::cuda::device device{so::nccl::gpu_of(run)};
  choose_attention(j, device);
  so::nccl::options o;
  o.max_ctas = j.ctas.value_or(o.max_ctas);
  o.ranks_of_host = so::cli::ranks_of_host(run, *member);
  so::nccl::communicator group{std::move(member), device, o};
  so::train::bind_cores(so::comm::host_group{group}, so::node_of_pci(device.pci_address()));
  with_precision<Architecture>(j, [&]<class P>(P) {
    if constexpr (std::is_same_v<Architecture, so::model::llama>) {
      if (j.offload == so::offload::mode::none) {
        measure<engine<Architecture, so::cuda::device, P, sharded, so::offload::none, profile>>(
            j, device, &group, gemm_size_on_cuda, so::cuda::device::name());
        return;
      }
    }
    measure<engine<Architecture, so::cuda::device, P, offloads_gradients, so::offload::super, profile>>(
        j, device, &group, gemm_size_on_cuda, so::cuda::device::name());
  });
}
#endif

template <class Architecture>
void measure_architecture(job const& j, [[maybe_unused]] std::optional<comm::environment> const& run) {
#if defined(SUPEROFFLOAD_HAS_NCCL)
  if (run) {
    measure_as_rank<Architecture>(j, *run);
    return;
  }
#endif
  if (j.device == "cuda") {
    measure_on_cuda<Architecture>(j);
  } else {
    measure_on_cpu<Architecture>(j);
  }
}

}  // namespace superoffload::bench
