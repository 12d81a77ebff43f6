// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/progress.hpp>
#include <superoffload/train/report.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>

namespace superoffload::train {
namespace {

std::string line(char const* name, std::string const& value) {
  char text[256];
  std::snprintf(text, sizeof text, "  %-18s %s\n", name, value.c_str());
  return text;
}

/// The first number of a file, or the largest value for "max", a missing file or anything else.
std::size_t number_in(char const* path) {
  std::ifstream file{path};
  std::size_t value = 0;
  return file >> value ? value : std::numeric_limits<std::size_t>::max();
}

std::size_t limit_less_use(char const* limit_path, char const* use_path) {
  auto const limit = number_in(limit_path);
  auto const use = number_in(use_path);
  if (limit == std::numeric_limits<std::size_t>::max() || use == std::numeric_limits<std::size_t>::max()) {
    return std::numeric_limits<std::size_t>::max();
  }
  return limit > use ? limit - use : 0;
}

}  // namespace

std::string describe(plan const& p, model::config const& config, training_options const& o,
                     run_outline const& outline) {
  auto text = concat("plan for ", config.model_type, ", ", config.layers, " layers of ", config.hidden,
                     ", on ", outline.device, " in ", outline.element_type, "\n");
  text += line("parameters", p.trainable_parameters == p.parameters
                                 ? concat(p.parameters)
                                 : concat(p.parameters, ", ", p.trainable_parameters, " of them trained"));
  text += line("weights", bytes_text(p.weights));
  text += line("gradients", bytes_text(p.gradients));
  text += line("optimizer state", bytes_text(p.optimizer_state));
  text += line("activations",
               concat(bytes_text(p.activations), p.recompute_blocks ? ", every block recomputed" : ""));
  text += line("batches, tables", bytes_text(p.batches));
  text += line("memory in all", bytes_text(p.total()));
  text += line("batch", concat(o.batch_size, " sequences of up to ", o.max_length, " tokens a step, in ",
                               o.accumulation, o.accumulation == 1 ? " micro-batch" : " micro-batches"));
  if (outline.sequences > 0) {
    text += line("data", concat(outline.sequences, " examples"));
  }
  if (outline.tokens > 0) {
    text += line("tokens", concat(outline.tokens, " an epoch"));
  }
  text += line("steps",
               outline.steps > 0 ? concat(outline.steps) : std::string{"known once there is a data set"});
  return text;
}

void expect_fits(plan const& p, std::size_t available, training_options const& o) {
  if (p.total() <= available) {
    return;
  }
  auto const fixed = p.total() - p.activations - p.batches;
  auto const sequences = (o.batch_size + o.accumulation - 1) / o.accumulation;
  auto const each = (p.activations + p.batches) / static_cast<std::size_t>(sequences);
  auto const fitting =
      available > fixed ? static_cast<std::int64_t>((available - fixed) / std::max<std::size_t>(1, each)) : 0;
  auto const advice =
      fitting > 0
          ? concat("use more --gradient_accumulation_steps, so that a micro-batch has ", fitting,
                   " sequences", p.recompute_blocks ? "" : ", or --activation_checkpointing every_block")
          : std::string{"no batch fits: use --dtype bf16, freeze tensors or a machine with more memory"};
  fail(exit_code::cannot_fit, "the plan needs ", bytes_text(p.total()), " of memory, but ",
       bytes_text(available), " are available; ", advice);
}

std::size_t available_host_bytes() {
  std::size_t available = std::numeric_limits<std::size_t>::max();
  std::ifstream meminfo{"/proc/meminfo"};
  for (std::string name; meminfo >> name;) {
    std::size_t kibibytes = 0;
    if (name == "MemAvailable:" && meminfo >> kibibytes) {
      available = kibibytes * 1024;
    }
  }
  available =
      std::min(available, limit_less_use("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"));
  return std::min(available, limit_less_use("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                            "/sys/fs/cgroup/memory/memory.usage_in_bytes"));
}

}  // namespace superoffload::train
