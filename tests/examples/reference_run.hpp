// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/json.hpp>

#include <string>
#include <vector>

namespace superoffload::test {

/// The flags of a reference run, from its `args` in a checkpoint's expected.json.
inline std::vector<std::string> flags_of(io::json const& args) {
  auto const text = [&](char const* name) { return args[name].dump(); };
  auto const clip = args["clip"].get<double>();
  return {"--template",
          "deepspeed",
          "--shuffle",
          "off",
          "--lr",
          text("lr"),
          "--lr_scheduler",
          args["schedule"].get<std::string>(),
          "--lr_warmup_steps",
          text("warmup_steps"),
          "--weight_decay",
          text("weight_decay"),
          "--max_grad_norm",
          std::to_string(clip),
          "--label_mask",
          args["label_mask"].get<std::string>(),
          "--append_eos",
          args["eos"].get<bool>() ? "on" : "off",
          "--padding",
          "longest",  // the reference's batches are rectangles
          "--packing",
          args["packing"].get<bool>() ? "on" : "off",
          "--gradient_accumulation_steps",
          text("accumulation"),
          "--batch_size",
          text("batch"),
          "--max_length",
          text("max_length"),
          "--max_steps",
          text("steps")};
}

}  // namespace superoffload::test
