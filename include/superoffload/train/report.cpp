// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#include <superoffload/core/error.hpp>
#include <superoffload/train/progress.hpp>
#include <superoffload/train/report.hpp>

#include <algorithm>
#include <cstdio>
#include <string>

namespace superoffload::train {
namespace {

std::string line(char const* name, std::string const& value) {
  char text[256];
  std::snprintf(text, sizeof text, "  %-18s %s\n", name, value.c_str());
  return text;
}

/// The largest number up to `most` that fits, 0 if none does; what fits does so with less, too.
template <class Fits>
std::int64_t largest_fitting(std::int64_t most, Fits&& fits) {
  std::int64_t fitting = 0;
  for (auto beyond = most + 1; beyond - fitting > 1;) {
    auto const middle = fitting + (beyond - fitting) / 2;
    (fits(middle) ? fitting : beyond) = middle;
  }
  return fitting;
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
  if (!outline.places.empty()) {
    text += line("state off device", outline.places);
    text += line("host memory", bytes_text(p.host));
  }
  text += line("activations", p.results_recomputed == 0
                                  ? bytes_text(p.activations)
                                  : concat(bytes_text(p.activations), ", ", p.results_recomputed, " of ",
                                           p.results, " results computed again in backward"));
  if (!outline.attention.empty()) {
    text += line("attention", outline.attention);
  }
  text += line("batches, tables", bytes_text(p.batches));
  text += line("memory in all",
               concat(bytes_text(p.total()), " of ", bytes_text(outline.available), " available"));
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

void expect_fits(plan const& p, std::size_t available, std::string const& device, training_options const& o,
                 planned_bytes const& bytes_of) {
  if (p.total() <= available) {
    return;
  }
  auto const needs = concat("the plan needs ", bytes_text(p.total()), " of memory on ", device, ", but ",
                            bytes_text(available), " are available; ");
  auto const wanted = (o.batch_size + o.accumulation - 1) / o.accumulation;
  // Automatic recompute keeps nothing but the inputs of blocks if it has to.
  for (auto const recomputed : {recompute::choice::none, recompute::choice::every_block}) {
    if (recomputed == recompute::choice::none && o.recompute != recompute::choice::none) {
      continue;
    }
    auto const fitting = largest_fitting(
        wanted, [&](std::int64_t sequences) { return bytes_of(sequences, recomputed) <= available; });
    if (fitting > 0) {
      bool const recomputes_more = recomputed != o.recompute && o.recompute == recompute::choice::none;
      auto const flags = concat(
          recomputes_more ? " --activation_checkpointing auto" : "",
          fitting < wanted ? concat(" --gradient_accumulation_steps ", (o.batch_size + fitting - 1) / fitting)
                           : "");
      fail(exit_code::cannot_fit, needs, "the largest micro-batch that fits has ", fitting,
           fitting == 1 ? " sequence of " : " sequences of ", o.max_length, " tokens: use", flags);
    }
  }
  fail(exit_code::cannot_fit, needs, "one sequence of ", o.max_length, " tokens alone needs ",
       bytes_text(bytes_of(1, recompute::choice::every_block)),
       ": no batch fits; end what else uses its memory, or use a smaller --max_length, --dtype bf16, "
       "--freeze or "
       "a device with more");
}

}  // namespace superoffload::train
