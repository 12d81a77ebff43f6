// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/comm/environment.hpp>
#include <superoffload/kernel/attention.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/offload/settings.hpp>
#include <superoffload/train/engine/recompute.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace superoffload::bench {

namespace so = superoffload;

/// The options of a measurement.
struct job {
  model::config config;
  std::string shape = "tiny";
  std::string device = "cpu";
  std::string dtype = "bf16";
  int gpus = 1;
  int sequence_ranks = 1;   // that share a micro-batch
  int weight_ranks = 0;     // that keep a copy of the weights; 0: as planned
  std::optional<int> ctas;  // most thread blocks of a collective; none: the communicator's default
  std::int64_t layers = 0;  // 0: as the shape has
  std::int64_t batch = 8;
  std::int64_t seq = 256;
  std::int64_t accumulation = 1;
  std::int64_t steps = 20;
  std::int64_t warm_up = 2;  // steps before these
  int idle_steps = 2;        // steps after these, for the share of idle time
  std::string timeline, trace, plan;
  so::kernel::attention_implementation attention = so::kernel::attention_implementation::automatic;
  so::recompute::choice recompute = so::recompute::choice::automatic;
  so::offload::mode offload = so::offload::mode::none;
  std::optional<double> ratio, device_updated_share;  // none: as planned
  std::optional<double> device_memory, host_memory;   // GiB that a plan may take; none: what is there
  so::offload::choice offload_weights = so::offload::choice::automatic;
  so::state_format state = so::state_format::float32;
  double max_grad_norm = 1.0;
  double hit_rate = 1.0;
  std::int64_t bucket_mib = 32;
  int pinned_buffers = 0;  // 0: as planned
  int workers = 0;         // 0: as planned
  int weight_buffers = 0;  // of a rank; 0: as planned
  std::string speculation = "adaptive";
  std::optional<bool> double_buffered;  // none: as planned
};

/// Times training steps of one architecture and prints one line of JSON. `run`: of several ranks, this
/// process's; none: a single rank. Each architecture is instantiated in its own source.
void measure_llama(job const& j, std::optional<comm::environment> const& run);
void measure_mistral(job const& j, std::optional<comm::environment> const& run);
void measure_phi3(job const& j, std::optional<comm::environment> const& run);
void measure_qwen2(job const& j, std::optional<comm::environment> const& run);
void measure_qwen3(job const& j, std::optional<comm::environment> const& run);
void measure_qwen3_moe(job const& j, std::optional<comm::environment> const& run);
void measure_seed_oss(job const& j, std::optional<comm::environment> const& run);
void measure_gpt_oss(job const& j, std::optional<comm::environment> const& run);

}  // namespace superoffload::bench
