// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/train/run/report.hpp>
#include <superoffload/train/run/run_data.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE std::string line(char const* name, std::string const& value) {
  char text[256];
  std::snprintf(text, sizeof text, "  %-18s %s\n", name, value.c_str());
  return text;
}

/// The smallest number from `least` to `most` that fits, where all larger ones fit, too; 0 if none fits.
template <class Fits>
std::int64_t smallest_fitting(std::int64_t least, std::int64_t most, Fits&& fits) {
  auto fitting = most + 1;
  for (auto below = least - 1; fitting - below > 1;) {
    auto const middle = below + (fitting - below) / 2;
    (fits(middle) ? fitting : below) = middle;
  }
  return fitting <= most ? fitting : 0;
}

/// What fits, and the flags that change `asked` to it.
SUPEROFFLOAD_INLINE std::string advice(training_options const& asked, training_options const& fitting) {
  auto const sequences = most_rows(fitting) / asked.max_length;
  bool const shares_more = fitting.sequence_ranks > asked.sequence_ranks;
  return concat("; the largest micro-batch that fits has ", sequences,
                sequences == 1 ? " sequence of " : " sequences of ", asked.max_length, " tokens",
                shares_more ? concat(", shared by ", fitting.sequence_ranks, " ranks") : "", ": use",
                shares_more ? concat(" --sequence_parallel ", fitting.sequence_ranks) : "",
                fitting.recompute != asked.recompute ? " --activation_checkpointing auto" : "",
                fitting.tiled_mlp != asked.tiled_mlp ? concat(" --tiled_mlp ", fitting.tiled_mlp) : "",
                fitting.accumulation > asked.accumulation
                    ? concat(" --gradient_accumulation_steps ", fitting.accumulation)
                    : "");
}

}  // namespace detail

SUPEROFFLOAD_INLINE std::string describe(offload::plan const& p, allocation const& of_engine,
                                         model::config const& config, engine_outline const& outline) {
  auto text = concat("plan for ", config.model_type, ", ", config.layers, " layers of ", config.hidden,
                     ", on ", outline.device, " in ", outline.element_type, "\n");
  text += detail::line("parameters", of_engine.trainable_parameters == of_engine.parameters
                                         ? concat(of_engine.parameters)
                                         : concat(of_engine.parameters, ", ", of_engine.trainable_parameters,
                                                  " of them trained"));
  text += offload::describe(p);
  if (p.pinned > outline.lockable) {
    text += concat(
        "  ", p.pinned, " bytes of host memory are to be page-locked, but this process may lock ",
        outline.lockable,
        ": copies of the rest will be several times slower, and block the thread that queues them; raise the "
        "limit (ulimit -l, a container's memlock)\n");
  }
  if (!outline.attention.empty()) {
    text += detail::line("attention", outline.attention);
  }
  return text;
}

SUPEROFFLOAD_INLINE std::string describe(training_options const& o, run_outline const& outline) {
  auto const rows = concat(o.batch_size, o.batch_size == 1 ? " sequence" : " sequences", " of up to ");
  auto text = detail::line(
      "batch",
      concat(o.tokens_per_batch > 0 ? concat("up to ", o.tokens_per_batch) : concat(rows, o.max_length),
             " tokens a step, in ", o.accumulation, o.accumulation == 1 ? " micro-batch" : " micro-batches",
             o.ranks == 1 ? std::string{}
             : o.sequence_ranks > 1
                 ? concat(" on each of ", o.groups(), o.groups() == 1 ? " group" : " groups", " of ",
                          o.sequence_ranks, " ranks that share them")
                 : concat(" on each of ", o.ranks, " ranks")));
  if (outline.sequences > 0) {
    text += detail::line("data", concat(outline.sequences, " examples",
                                        outline.format.empty() ? "" : " of format ", outline.format));
  }
  if (outline.tokens > 0) {
    text += detail::line("tokens", concat(outline.tokens, " an epoch"));
  }
  text += detail::line("steps", o.eval_only         ? "none: an evaluation alone"
                                : outline.steps > 0 ? concat(outline.steps)
                                                    : std::string{"known once there is a data set"});
  return text;
}

SUPEROFFLOAD_INLINE std::string refusal_of(offload::plan const& p, std::string const& device,
                                           training_options const& o, fits_with const& fits) {
  auto const otherwise = o.recompute == recompute::choice::none ? recompute::choice::automatic : o.recompute;
  std::optional<training_options> found;
  auto const try_with = [&](training_options other) {
    other.accumulation =
        detail::smallest_fitting(o.accumulation, o.most_accumulation(), [&](std::int64_t accumulation) {
          other.accumulation = accumulation;
          return detail::may_be_asked([&] { return fits(other); });
        });
    if (other.accumulation > 0) {
      found = std::move(other);
    }
  };
  for (int sharing = o.sequence_ranks; sharing > 0 && !found; sharing = o.next_sequence_ranks(sharing)) {
    auto other = o;
    other.sequence_ranks = sharing;
    try_with(other);
    if (!found && other.recompute != otherwise) {
      other.recompute = otherwise;
      try_with(other);
    }
    if (!found && other.may_tile()) {
      other.tiled_mlp = training_options::usual_tile;
      try_with(other);
    }
  }
  return found ? concat(p.refusal.substr(0, p.refusal.find(';')), " on ", device, detail::advice(o, *found))
               : p.refusal;
}

}  // namespace superoffload::train
