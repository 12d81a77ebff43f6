// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Times training steps of a model shape on random weights and prints one line of JSON. The line also has the
// rate of a plain GEMM in the same run, and the time of the step's GEMMs and attention alone: bench_train
// --shape tiny --batch 8 --seq 256 --dtype bf16. With --gpus every GPU has a batch and a shard of everything;
// TFLOPS and bytes are those of one GPU.
#include <superoffload/comm/environment.hpp>
#include <superoffload/comm/launcher.hpp>
#include <superoffload/core/error.hpp>
#if defined(SUPEROFFLOAD_HAS_NCCL)
#include <superoffload/nccl/communicator.hpp>
#endif

#include <CLI/CLI.hpp>

#include "job.hpp"
#include "shapes.hpp"

#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace so = superoffload;

std::map<std::string, void (*)(so::bench::job const&, std::optional<so::comm::environment> const&)> const
    measures{{"llama", so::bench::measure_llama},       {"mistral", so::bench::measure_mistral},
             {"phi3", so::bench::measure_phi3},         {"qwen2", so::bench::measure_qwen2},
             {"qwen3", so::bench::measure_qwen3},       {"qwen3_moe", so::bench::measure_qwen3_moe},
             {"seed_oss", so::bench::measure_seed_oss}, {"gpt_oss", so::bench::measure_gpt_oss}};

}  // namespace

// one piece: the list of flags, and their effect on the job.
int main(int argc, char** argv) try {
  so::bench::job j;
  bool dropout = false;
  std::int64_t tiled_mlp = 0;
  CLI::App app{"Times training steps of a model shape on random weights."};
  std::vector<std::string> names;
  for (auto const& [name, config] : so::bench::shapes) { names.push_back(name); }
  app.add_option("--shape", j.shape)->check(CLI::IsMember(names))->capture_default_str();
  app.add_option("--device", j.device)->check(CLI::IsMember({"cpu", "cuda"}))->capture_default_str();
  app.add_option("--dtype", j.dtype)->check(CLI::IsMember({"float32", "bf16", "fp8"}))->capture_default_str();
  app.add_option("--gpus", j.gpus, "as many processes, with a shard of everything each")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--sequence_parallel", j.sequence_ranks, "so many GPUs share each micro-batch")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--hybrid_sharding", j.weight_ranks,
                 "so many GPUs keep a copy of the weights, and sum micro-batches first; 0: as planned")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--ctas", j.ctas, "most thread blocks of a collective; 0: NCCL decides")
      ->check(CLI::Range(0, 64));
  app.add_option("--layers", j.layers, "0: as the shape has")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--batch", j.batch)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--seq", j.seq)->check(CLI::Range(2, 1 << 20))->capture_default_str();
  app.add_option("--steps", j.steps)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--warm_up", j.warm_up, "steps before these")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--idle_steps", j.idle_steps,
                 "steps after these, in which the share is measured for which a GPU is idle")
      ->check(CLI::Range(0, 100))
      ->capture_default_str();
  app.add_option("--accumulation", j.accumulation, "micro-batches of a step")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  std::map<std::string, so::recompute::choice> const choices{
      {"none", so::recompute::choice::none},
      {"every_block", so::recompute::choice::every_block},
      {"auto", so::recompute::choice::automatic},
      {"offload", so::recompute::choice::offload}};
  app.add_option("--tiled_mlp", tiled_mlp, "tokens that a dense MLP computes at a time; 0: all")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 31))
      ->capture_default_str();
  app.add_option("--recompute", j.recompute, "what is recomputed; auto: as little as the memory allows")
      ->transform(CLI::CheckedTransformer(choices));
  std::map<std::string, so::offload::mode> const modes{{"auto", so::offload::mode::automatic},
                                                       {"none", so::offload::mode::none},
                                                       {"zero", so::offload::mode::zero},
                                                       {"super", so::offload::mode::super}};
  app.add_option("--offload", j.offload, "auto: as planned")->transform(CLI::CheckedTransformer(modes));
  app.add_option("--ratio", j.ratio, "share of the parameters whose state is off the device; else as planned")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--device_updated_share,--streamed_share", j.device_updated_share,
                 "of those, the share that the device updates; else as planned")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--device_memory", j.device_memory,
                 "GiB of the device that a plan may take; else what is there")
      ->check(CLI::PositiveNumber);
  app.add_option("--host_memory", j.host_memory, "GiB of the host that a plan may take; else what is there")
      ->check(CLI::PositiveNumber);
  std::map<std::string, so::offload::choice> const weight_choices{{"auto", so::offload::choice::automatic},
                                                                  {"on", so::offload::choice::on},
                                                                  {"off", so::offload::choice::off}};
  app.add_option("--offload_weights,--stream_weights", j.offload_weights,
                 "weights of blocks on the host; auto: as planned")
      ->transform(CLI::CheckedTransformer(weight_choices));
  std::map<std::string, so::state_format> formats;
  for (auto const format : so::state_formats) { formats.emplace(so::name_of(format), format); }
  app.add_option("--state", j.state, "how optimizer state is stored")
      ->transform(CLI::CheckedTransformer(formats));
  app.add_option("--hit_rate,--acceptance", j.hit_rate,
                 "share of steps that the plan expects not to be clipped")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--max_grad_norm", j.max_grad_norm,
                 "0: no clipping, buckets are updated as their gradients arrive")
      ->check(CLI::Range(0.0, 1e30))
      ->capture_default_str();
  app.add_option("--bucket_mib", j.bucket_mib)->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--pinned_buffers,--slots", j.pinned_buffers, "0: as planned")->check(CLI::Range(0, 100000));
  app.add_option("--workers", j.workers, "0: as planned")->check(CLI::Range(0, 1024));
  app.add_option("--weight_buffers,--weight_rooms", j.weight_buffers,
                 "units that a rank gathers at once; 0: as planned")
      ->check(CLI::Range(0, 100000));
  app.add_option("--double_buffered", j.double_buffered,
                 "keep state on the host twice; left out: as planned");
  app.add_option("--speculation", j.speculation)
      ->check(CLI::IsMember({"on", "off", "adaptive"}))
      ->capture_default_str();
  using attention = so::kernel::attention_implementation;
  std::map<std::string, attention> const implementations{
      {"auto", attention::automatic}, {"flash", attention::flash}, {"cudnn", attention::cudnn}};
  app.add_option("--attn_implementation", j.attention, "on a GPU; auto: the faster one")
      ->transform(CLI::CheckedTransformer(implementations));
  app.add_option(
      "--trace", j.trace,
      "a file for the activity of device, links and CPU Adam in two steps, as trace events; costs some time");
  app.add_option("--plan", j.plan, "a file for the plan, as JSON");
  app.add_option("--timeline", j.timeline, "a file for the GPU's activity in two steps, as trace events");
  app.add_flag("--dropout", dropout, "with the dropout that the model is trained with");
  CLI11_PARSE(app, argc, argv);
  j.config = so::bench::shapes.at(j.shape);
  j.config.tiled_mlp = tiled_mlp;
  if (j.dtype == "fp8") {
    j.config.gemms = so::gemm_format::float8;
  }
  if (j.layers > 0) {
    j.config.layers = j.layers;
    if (auto& windows = j.config.windows; !windows.empty()) {
      auto const published = std::exchange(windows, {});
      for (std::int64_t i = 0; i < j.layers; ++i) {
        windows.push_back(published[static_cast<std::size_t>(i) % published.size()]);
      }
    }
  }
  if (!dropout) {
    j.config.attention_dropout = j.config.residual_dropout = 0.0;
  }
  std::optional<so::comm::environment> run;
  if (j.gpus > 1) {
    so::expect(j.device == "cuda", so::exit_code::bad_input, "--gpus ", j.gpus, ": expected --device cuda");
#if !defined(SUPEROFFLOAD_HAS_NCCL)
    so::fail(so::exit_code::device, "--gpus ", j.gpus, ": this program was built without NCCL; use --gpus 1");
#endif
    run = so::comm::read_environment();
    if (!run) {
#if defined(SUPEROFFLOAD_HAS_NCCL)
      so::nccl::expect_gpus(j.gpus);
#endif
      return so::comm::launch({.shared = {.ranks = j.gpus}}, "/proc/self/exe", {argv, argv + argc});
    }
    so::expect(run->ranks == j.gpus, so::exit_code::bad_input, "--gpus ", j.gpus, " in a run of ", run->ranks,
               " ranks");
  }
  measures.at(j.config.model_type)(j, run);
  return 0;
} catch (so::error const& e) {
  std::fprintf(stderr, "bench_train: error: %s\n", e.what());
  return static_cast<int>(e.code());
}
