// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/autograd/unit.hpp>
#include <superoffload/core/dtype.hpp>
#include <superoffload/core/error.hpp>
#include <superoffload/io/hub.hpp>
#include <superoffload/io/hub_export.hpp>
#include <superoffload/model/config.hpp>
#include <superoffload/train/engine/tensor_reader.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::train {

/// Checks that the checkpoint has every tensor of the model in its shape. The only extra tensors allowed are
/// those of some hub layouts: a stored tied head, and rotary frequencies.
/// \throws error(bad_input) that names the first tensor that is missing, misshapen or unknown.
void expect_tensors(std::vector<autograd::unit_layout> const& units, io::hub_checkpoint const& checkpoint);

/// Checks that experts are in MXFP4 if, and only if, config.json says so.
/// \throws error(bad_input) that names the field and the files.
void expect_quantisation(model::config const& config, io::hub_checkpoint const& checkpoint);

/// Reads the tensors of a Hugging Face directory. The checkpoint must outlive the reader.
inline tensor_reader weights_of(io::hub_checkpoint const& checkpoint) {
  tensor_reader reader{[&checkpoint](std::string const& name, std::int64_t first, std::span<float> to) {
    checkpoint.read(name, static_cast<std::uint64_t>(first), to);
  }};
  reader.is_concurrent = !checkpoint.quantised();  // experts in MXFP4 are dequantised one after the other
  return reader;
}

/// Writes the engine's weights as a directory that transformers loads, in the engine's element type.
/// Configuration, tokenizer and the like are those of `source`. `to` is replaced at once or not at all. All
/// ranks gather one unit after the other, and the rank with `writes` writes. If it cannot write, it still
/// gathers the rest, so that all ranks can continue. \throws error as io::hub_export(), on the rank that
/// writes.
template <class Engine>
void export_model(Engine& engine, io::model_files const& source, std::filesystem::path const& to,
                  std::string const& run = {}, bool writes = true) {
  auto const& units = engine.model().units();
  std::optional<typename Engine::whole_weights> whole;
  std::size_t gathered = 0;
  auto const gather_up_to = [&](std::size_t end) {
    for (; gathered < end; ++gathered) {
      whole.reset();
      whole.emplace(engine, units[gathered]);
    }
  };
  if (!writes) {
    gather_up_to(units.size());
    engine.synchronize();
    return;
  }
  std::vector<io::export_tensor> tensors;
  std::vector<std::pair<std::size_t, std::int64_t>> positions;  // unit, offset
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    for (auto const& tensor : units[unit].tensors()) {
      tensors.push_back({tensor.name, tensor.shape});
      positions.emplace_back(unit, tensor.offset);
    }
  }
  try {
    io::hub_export(source, to, tensors,
                   [&](std::size_t index, std::uint64_t first, std::span<std::byte> out) {
                     auto const& [unit, offset] = positions[index];
                     gather_up_to(unit + 1);
                     whole->copy(offset + static_cast<std::int64_t>(first), out);
                   },
                   {.type = dtype_of<typename Engine::element_type>, .run = run});
  } catch (error const& e) {
    if (e.code() == exit_code::io_failure || e.code() == exit_code::bad_input) {
      gather_up_to(units.size());
    }
    throw;
  }
}
/// The same for an engine without ranks, with the files of a model's directory.
template <class Engine>
void export_model(Engine& engine, std::filesystem::path const& source, std::filesystem::path const& to) {
  export_model(engine, io::model_files::read(source), to);
}

}  // namespace superoffload::train

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/train/engine/impl/weights_inl.hpp>
#endif
