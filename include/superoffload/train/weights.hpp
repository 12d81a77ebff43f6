// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/train/tensor_reader.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// Does the checkpoint hold every tensor of the model in its shape? Extra tensors are allowed only where the
/// hub's layouts have them (a tied head stored all the same, rotary frequencies).
/// \throws error(bad_input) naming the first tensor that is missing, misshapen or unknown.
void expect_tensors(std::vector<autograd::unit_layout> const& units, io::hub_checkpoint const& checkpoint);

/// Are experts in MXFP4 exactly where config.json says so?
/// \throws error(bad_input) that names the field and the files.
void expect_quantisation(model::config const& config, io::hub_checkpoint const& checkpoint);

/// Reads the tensors of a Hugging Face directory. The checkpoint must outlive the reader.
inline tensor_reader weights_of(io::hub_checkpoint const& checkpoint) {
  return [&checkpoint](std::string const& name, std::int64_t first, std::span<float> to) {
    checkpoint.read(name, static_cast<std::uint64_t>(first), to);
  };
}

/// Writes the engine's weights as a directory that transformers loads, in the engine's element type:
/// configuration, tokenizer and the like are taken over from `source`. What stands at `to` is replaced at
/// once or not at all. Of ranks the first one writes, and all gather one unit after the other.
template <class Engine>
void export_model(Engine& engine, std::filesystem::path const& source, std::filesystem::path const& to,
                  bool writes = true) {
  std::optional<typename Engine::whole_weights> whole;
  auto const gather = [&](autograd::unit_layout const& unit) {
    if (!whole || whole->unit() != unit.id()) {
      whole.reset();
      whole.emplace(engine, unit);
    }
  };
  if (!writes) {
    for (auto const& unit : engine.model().units()) { gather(unit); }
    engine.synchronize();
    return;
  }
  std::vector<io::export_tensor> tensors;
  std::vector<std::pair<autograd::unit_layout const*, std::int64_t>> places;
  for (auto const& unit : engine.model().units()) {
    for (auto const& tensor : unit.tensors()) {
      tensors.push_back({tensor.name, tensor.shape});
      places.emplace_back(&unit, tensor.offset);
    }
  }
  io::hub_export(source, to, tensors,
                 [&](std::size_t index, std::uint64_t first, std::span<float> values) {
                   auto const& [unit, offset] = places[index];
                   gather(*unit);
                   whole->read(offset + static_cast<std::int64_t>(first), values);
                 },
                 {.type = dtype_of<typename Engine::element_type>});
}

}  // namespace superoffload::train
