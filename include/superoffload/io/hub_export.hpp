// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/io/model_directory.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace superoffload::io {

/// A tensor of an export, with the name and shape that transformers expects.
struct export_tensor {
  std::string name;                 ///< unique in the export
  std::vector<std::int64_t> shape;  ///< row-major
};

/// Fills `out` with the elements of tensors[tensor] from `first` on, in the type of the export. Called for
/// all elements, each once and in order. `out` is aligned for the type.
using export_source = std::function<void(std::size_t tensor, std::uint64_t first, std::span<std::byte> out)>;

/// The files that an export copies from a model's directory: configuration, tokenizer and the like. They are
/// held in memory, so later changes of the directory do not matter.
struct model_files {
  std::filesystem::path directory;                          ///< from which they were read
  std::string config;                                       ///< config.json
  std::vector<std::pair<std::string, std::string>> others;  ///< name and content

  /// \throws error(bad_input) for a file that is missing, too large or a link out of the directory,
  /// error(io_failure).
  static model_files read(model_directory const& directory);
  [[nodiscard]] std::uint64_t bytes() const noexcept;  ///< of all contents
};

/// How an export is written.
struct export_options {
  dtype type = dtype::f32;  ///< f32 or bf16
  std::uint64_t max_shard_bytes =
      5'000'000'000;     ///< of tensors in one file; a larger tensor has a file of its own
  std::string run = {};  ///< the identity of the exporting run, UTF-8; empty: none
};

/// Writes the Hugging Face directory `destination`, which transformers loads unchanged: the weights as one
/// model.safetensors or as shards with an index, the config.json of `model` with its element type set, its
/// tokenizer and generation files, and superoffload_export.json, which marks it as an export and names the
/// run. Memory is bounded. On return everything is on stable storage.
///
/// An earlier export at `destination` is replaced when the new one is complete: if the process fails or is
/// killed, one of the two is there. \throws error(bad_input) when `destination` is `model`, contains files
/// that no export writes or is not marked as an export, error(io_failure) when writing fails.
void hub_export(model_files const& model, std::filesystem::path const& destination,
                std::span<export_tensor const> tensors, export_source const& source,
                export_options options = {});

/// Checks before hours of training whether hub_export() can write `destination`; creates its parent
/// directory. \throws error as hub_export().
void expect_exportable(model_directory const& model, std::filesystem::path const& destination);

/// The run whose export is at `directory`, empty if it names none; nothing when there is no export.
/// \throws error(io_failure).
std::optional<std::string> exported_run(std::filesystem::path const& directory);

/// Removes an export. If the process is killed, the export is complete or gone, after the next export at the
/// latest.
/// \throws error(bad_input) for what hub_export() would not replace, error(io_failure).
void remove_export(std::filesystem::path const& directory);

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/hub_export_inl.hpp>
#endif
