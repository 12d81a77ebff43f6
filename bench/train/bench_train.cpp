// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Times training steps of a model shape on random weights and prints one line of JSON, beside the rate that a
// plain matrix product reaches in the same run: bench_train --shape tiny --batch 8 --seq 256 --dtype
// bf16.
#include <superoffload/cpu/device.hpp>
#include <superoffload/cpu/instruction_set.hpp>
#include <superoffload/cpu/kernels.hpp>
#if defined(BENCH_TRAIN_CUDA)
#include <superoffload/cuda/device.hpp>
#include <superoffload/cuda/kernels.hpp>
#endif
#include <superoffload/model/llama.hpp>
#include <superoffload/train/engine.hpp>
#include <superoffload/train/metrics.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

namespace so = superoffload;
using clock_type = std::chrono::steady_clock;

std::map<std::string, so::model::config> const shapes{
    {"tiny",  // examples/models/tiny_llama, which the quickstart trains
     {.model_type = "llama",
      .vocabulary = 2048,
      .hidden = 128,
      .intermediate = 384,
      .layers = 4,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 32,
      .max_positions = 1 << 20}},
    {"llama-160m",
     {.model_type = "llama",
      .vocabulary = 32000,
      .hidden = 768,
      .intermediate = 3072,
      .layers = 12,
      .heads = 12,
      .kv_heads = 12,
      .head_dim = 64,
      .max_positions = 1 << 20}},
    {"llama-8b",
     {.model_type = "llama",
      .vocabulary = 128256,
      .hidden = 4096,
      .intermediate = 14336,
      .layers = 32,
      .heads = 32,
      .kv_heads = 8,
      .head_dim = 128,
      .max_positions = 1 << 20,
      .rope_theta = 5e5}},
};

struct job {
  std::string shape = "tiny";
  std::string device = "cpu";
  std::string dtype = "bf16";
  std::int64_t layers = 0;  // 0: as the shape has
  std::int64_t batch = 8;
  std::int64_t seq = 256;
  std::int64_t steps = 20;
  bool recompute = false;
};

double seconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// A deterministic sequence in place of weights, small enough to train.
void random_weights(std::string const& name, std::int64_t first, std::span<float> to) {
  std::uint64_t const seed = std::hash<std::string>{}(name);
  for (auto& value : to) {
    auto bits = (seed ^ static_cast<std::uint64_t>(first++)) * 0x9E3779B97F4A7C15U;
    bits ^= bits >> 31;
    value = 0.04F * (static_cast<float>(bits >> 40) * 0x1p-24F - 0.5F);
  }
}

so::data::batch random_batch(so::model::config const& config, job const& j, std::uint64_t step) {
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

/// TFLOP/s of one square product in T: what training could reach at best.
template <class T, class D>
double product_tflops(D& device, std::int64_t n) {
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

template <class D, class Precision>
void measure(job const& j, D& device, std::int64_t product_size, std::string const& processor) {
  auto config = shapes.at(j.shape);
  if (j.layers > 0) {
    config.layers = j.layers;
  }
  double const bound = product_tflops<typename Precision::element>(device, product_size);
  so::train::engine<so::model::llama, D, Precision> engine{
      device, config, {.max_rows = j.batch * j.seq, .max_positions = j.seq, .recompute_blocks = j.recompute}};
  engine.initialize(random_weights);
  std::vector<double> times;
  double loss = 0.0;
  for (std::int64_t i = 0; i < j.steps + 2; ++i) {
    auto const batch = random_batch(config, j, static_cast<std::uint64_t>(i));
    auto const begin = clock_type::now();
    loss = engine.forward(batch);
    engine.backward();
    engine.step(1e-4);
    engine.synchronize();
    if (i >= 2) {
      times.push_back(seconds_since(begin));
    }
  }
  double const seconds = median(times);
  auto const tokens = j.batch * j.seq;
  auto const visible = j.batch * j.seq * (j.seq + 1) / 2;
  double const model = 3.0 * engine.model().forward_flops(tokens, visible);
  double const again = j.recompute ? engine.model().block_flops(tokens, visible) : 0.0;
  std::printf(
      "{\"shape\": \"%s\", \"device\": \"%s\", \"processor\": \"%s\", \"dtype\": \"%s\", \"layers\": %lld, "
      "\"batch\": %lld, \"seq\": %lld, \"recompute\": %s, \"parameters\": %lld, \"steps\": %lld, "
      "\"step_time_ms\": %.3f, \"tokens_per_second\": %.1f, \"model_tflops\": %.5f, \"hardware_tflops\": "
      "%.5f, "
      "\"product_tflops\": %.5f, \"share_of_product_rate\": %.3f, \"device_bytes\": %zu, \"plan_bytes\": "
      "%zu, "
      "\"host_bytes\": %zu, \"loss\": %.4f}\n",
      j.shape.c_str(), j.device.c_str(), processor.c_str(), j.dtype.c_str(),
      static_cast<long long>(config.layers), static_cast<long long>(j.batch), static_cast<long long>(j.seq),
      j.recompute ? "true" : "false", static_cast<long long>(engine.plan().parameters),
      static_cast<long long>(j.steps), seconds * 1e3, static_cast<double>(tokens) / seconds,
      model / seconds * 1e-12, (model + again) / seconds * 1e-12, bound,
      (model + again) / seconds * 1e-12 / bound, device.peak_bytes(), engine.plan().total(),
      so::train::peak_resident_bytes(), loss);
}

template <class D>
void measure_on(job const& j, D& device, std::int64_t product_size, std::string const& processor) {
  if (j.dtype == "bf16") {
    measure<D, so::precision::bf16>(j, device, product_size, processor);
  } else {
    measure<D, so::precision::fp32>(j, device, product_size, processor);
  }
}

void measure_on_cpu(job const& j) {
  so::cpu::device device;
  measure_on(
      j, device, 2048,
      so::concat(name_of(so::cpu::active_instruction_set()), ", ", device.threads().size(), " threads"));
}

#if defined(BENCH_TRAIN_CUDA)
void measure_on_cuda(job const& j) {
  so::cuda::device device;
  measure_on(j, device, 8192, so::cuda::device::name());
}
#else
void measure_on_cuda(job const&) {
  so::fail(so::exit_code::device, "--device cuda: this program was built without CUDA; use --device cpu");
}
#endif

}  // namespace

int main(int argc, char** argv) try {
  job j;
  CLI::App app{"Times training steps of a model shape on random weights."};
  std::vector<std::string> names;
  for (auto const& [name, config] : shapes) { names.push_back(name); }
  app.add_option("--shape", j.shape)->check(CLI::IsMember(names))->capture_default_str();
  app.add_option("--device", j.device)->check(CLI::IsMember({"cpu", "cuda"}))->capture_default_str();
  app.add_option("--dtype", j.dtype)->check(CLI::IsMember({"float32", "bf16"}))->capture_default_str();
  app.add_option("--layers", j.layers, "0: as the shape has")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_option("--batch", j.batch)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_option("--seq", j.seq)->check(CLI::Range(2, 1 << 20))->capture_default_str();
  app.add_option("--steps", j.steps)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_flag("--recompute", j.recompute);
  CLI11_PARSE(app, argc, argv);
  if (j.device == "cuda") {
    measure_on_cuda(j);
  } else {
    measure_on_cpu(j);
  }
  return 0;
} catch (so::error const& e) {
  std::fprintf(stderr, "bench_train: error: %s\n", e.what());
  return static_cast<int>(e.code());
}
