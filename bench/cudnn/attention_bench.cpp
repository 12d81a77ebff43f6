// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0

// Times attention in bfloat16, forward and backward, by the device's own kernels (flash) and by cuDNN, and
// prints one line of JSON for each. TFLOPS count 2 GEMMs forward and 5 backward on the visible scores.
#include <superoffload/core/error.hpp>
#include <superoffload/cuda/kernels.hpp>
#include <superoffload/cudnn/attention.hpp>

#include <CLI/CLI.hpp>

#include "cuda/stage.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

namespace so = superoffload;

struct attention_case {
  std::string name;
  std::vector<std::int32_t> lengths;
  std::int32_t heads, kv_heads, head_dim;
  std::int32_t window = 0;
};

std::vector<std::int32_t> packed(std::int32_t rows, std::int32_t longest) {
  std::mt19937 random{20240229};
  std::vector<std::int32_t> lengths;
  for (std::int32_t left = rows; left > 0; left -= lengths.back()) {
    lengths.push_back(
        std::min(left, std::uniform_int_distribution<std::int32_t>{longest / 8, longest}(random)));
  }
  return lengths;
}

std::vector<attention_case> const cases{
    {"4x2048", {2048, 2048, 2048, 2048}, 32, 8, 128},
    {"1x8192", {8192}, 32, 8, 128},
    {"1x32768", {32768}, 32, 8, 128},
    {"4x4096", {4096, 4096, 4096, 4096}, 64, 8, 64},
    {"4x2048, 96 wide", {2048, 2048, 2048, 2048}, 32, 8, 96},
    {"4x2048, 256 wide", {2048, 2048, 2048, 2048}, 16, 8, 256},
    {"4x4096, window 128", {4096, 4096, 4096, 4096}, 64, 8, 64, 128},
    {"8192 packed, up to 2048", packed(8192, 2048), 32, 8, 128},
    {"8192 packed, up to 512", packed(8192, 512), 32, 8, 128},
};

void measure(attention_case const& c, bool with_cudnn, so::cudnn::attention::settings const& settings) {
  so::bench::stage on;
  auto& device = on.device;
  if (with_cudnn) {
    device.attend_with(std::make_unique<so::cudnn::attention>(device, settings));
  }
  std::vector<std::int32_t> starts{0};
  double squares = 0;
  for (auto const length : c.lengths) {
    starts.push_back(starts.back() + length);
    double const whole = length;
    double const window = c.window > 0 ? std::min<double>(c.window, whole) : whole;
    squares += 2 * window * whole - window * window;  // twice the visible scores
  }
  auto const device_starts = on.integers(starts);
  so::kernel::attention_shape const shape{.starts = device_starts.as<std::int32_t>(),
                                          .documents = std::ssize(c.lengths),
                                          .rows = starts.back(),
                                          .heads = c.heads,
                                          .kv_heads = c.kv_heads,
                                          .head_dim = c.head_dim,
                                          .longest = *std::max_element(c.lengths.begin(), c.lengths.end()),
                                          .window = c.window,
                                          .scale = 1 / std::sqrt(static_cast<double>(c.head_dim))};
  auto const in = shape.rows * shape.qkv_columns();
  auto const width = shape.rows * c.heads * c.head_dim;
  auto const qkv = on.numbers<so::bfloat16>(in);
  auto const d_out = on.numbers<so::bfloat16>(width);
  auto const out = on.allocate(static_cast<std::size_t>(width) * 2);
  auto const d_qkv = on.allocate(static_cast<std::size_t>(in) * 2);
  auto const log_sum_exp = on.allocate(static_cast<std::size_t>(shape.rows * c.heads) * 4);
  auto const delta = on.allocate(static_cast<std::size_t>(shape.rows * c.heads) * 4);
  so::kernel::attention_forward<so::bfloat16> forward{.shape = shape,
                                                      .qkv = qkv.as<so::bfloat16>(),
                                                      .out = out.as<so::bfloat16>(),
                                                      .log_sum_exp = log_sum_exp.as<float>()};
  so::kernel::attention_backward<so::bfloat16> backward{.shape = shape,
                                                        .qkv = qkv.as<so::bfloat16>(),
                                                        .out = out.as<so::bfloat16>(),
                                                        .d_out = d_out.as<so::bfloat16>(),
                                                        .log_sum_exp = log_sum_exp.as<float>(),
                                                        .delta = delta.as<float>(),
                                                        .d_qkv = d_qkv.as<so::bfloat16>()};
  auto const scratch = on.allocate(std::max(scratch_bytes(device, forward), scratch_bytes(device, backward)));
  forward.scratch = backward.scratch = {scratch.data(), scratch.bytes()};
  auto const forward_ms = 1e3 * on.seconds([&](int) { launch(on.stream, forward); });
  auto const backward_ms = 1e3 * on.seconds([&](int) { launch(on.stream, backward); });
  auto const gemm = squares / 2 * 2 * c.heads * c.head_dim;
  bool const supported = with_cudnn && device.attention()->supports(shape);
  std::printf(
      R"({"case": "%s", "implementation": "%s", "documents": %zu, "rows": %lld, "heads": %d, "kv_heads": %d, )"
      R"("head_dim": %d, "window": %d, "forward_ms": %.4f, "forward_tflops": %.1f, "backward_ms": %.4f, )"
      R"("backward_tflops": %.1f, "scratch_bytes": %zu})"
      "\n",
      c.name.c_str(), supported ? device.attention()->name().c_str() : "flash", c.lengths.size(),
      static_cast<long long>(shape.rows), c.heads, c.kv_heads, c.head_dim, c.window, forward_ms,
      2 * gemm / forward_ms * 1e-9, backward_ms, 5 * gemm / backward_ms * 1e-9, scratch.bytes());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  std::string implementation, name;
  so::cudnn::attention::settings settings;
  std::size_t workspace_mib = settings.workspace_bytes >> 20;
  CLI::App app{"Times attention in bfloat16, forward and backward."};
  app.add_option("--implementation", implementation, "default: both")
      ->check(CLI::IsMember({"flash", "cudnn"}));
  std::vector<std::string> names;
  for (auto const& c : cases) { names.push_back(c.name); }
  app.add_option("--case", name, "default: all")->check(CLI::IsMember(names));
  app.add_option("--workspace_mib", workspace_mib, "for cuDNN's backward")->capture_default_str();
  app.add_option("--streams", settings.streams, "that cuDNN's backward uses")
      ->check(CLI::Range(1, 16))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  settings.workspace_bytes = workspace_mib << 20;
  for (auto const& c : cases) {
    if (!name.empty() && c.name != name) {
      continue;
    }
    for (bool const with_cudnn : {false, true}) {
      if (implementation.empty() || (implementation == "cudnn") == with_cudnn) {
        measure(c, with_cudnn, settings);
      }
    }
  }
  return 0;
} catch (so::error const& e) {
  std::fprintf(stderr, "attention_bench: error: %s\n", e.what());
  return static_cast<int>(e.code());
}
