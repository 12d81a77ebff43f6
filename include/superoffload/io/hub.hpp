// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/dtype.hpp>
#include <superoffload/io/model_directory.hpp>
#include <superoffload/io/safetensors.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace superoffload::io {

/// Checked before memory of that size is allocated.
struct hub_limits {
  std::size_t index_bytes = std::size_t{64} << 20;  ///< of model.safetensors.index.json
  std::size_t shards = 10'000;                      ///< files that the index names
  safetensors_limits safetensors = {};              ///< `tensors` is for all shards together
};

/// The weights of a Hugging Face directory: model.safetensors, or the shards that
/// model.safetensors.index.json lists. Several threads may read at once.
///
/// Expert matrices in MXFP4, NAME_blocks [experts, out, in / 32, 16] with NAME_scales [experts, out, in /
/// 32], appear as one tensor: NAME [experts, in, out] in bfloat16, dequantised when it is read. The last
/// dequantised expert is cached for sequential reads.
class hub_checkpoint {
public:
  /// \throws error(bad_input) naming file, field and expectation; for pickled weights (.bin, .pt) with
  /// advice.
  static hub_checkpoint open(model_directory const& directory, hub_limits limits = {});

  /// As it was opened.
  [[nodiscard]] std::filesystem::path const& directory() const noexcept { return directory_; }

  /// The names of all tensors, sorted.
  [[nodiscard]] std::vector<std::string> names() const;

  /// Null when there is no such tensor. Valid as long as this object.
  [[nodiscard]] tensor_info const* find(std::string_view name) const;

  /// The file that the tensor is in. \throws error(bad_input) when there is no such tensor.
  [[nodiscard]] std::filesystem::path const& file_of(std::string_view name) const;

  /// Reads elements [first, first + out.size()) of the tensor `name`, widened to float.
  /// \throws error(bad_input) when there is no such tensor, or for a value whose magnitude is not below
  /// bfloat16::master_limit: NaN, infinity and the very largest floats.
  void read(std::string_view name, std::uint64_t first, std::span<float> out) const;

  /// The same, as working weights: bfloat16::of_master of each element.
  void read_bf16(std::string_view name, std::uint64_t first, std::span<bfloat16> out) const;

  /// Bytes of all tensors, as they are stored.
  [[nodiscard]] std::uint64_t bytes() const;

  /// Is any tensor in MXFP4?
  [[nodiscard]] bool quantised() const noexcept { return !quantised_.empty(); }

  /// Suspicious but harmless findings, one line each.
  [[nodiscard]] std::vector<std::string> const& warnings() const noexcept { return warnings_; }

private:
  struct location {
    std::size_t shard;
    tensor_info const* tensor;
  };

  struct quantised_matrix {
    tensor_info whole;  ///< the dequantised tensor
    location blocks, scales;
  };
  /// The matrix that was dequantised last.
  struct dequantised;

  hub_checkpoint();
  void find_quantised();
  /// Reads elements of a quantised tensor; does nothing and returns false for any other tensor.
  template <class Number>
  bool read_quantised(std::string_view name, std::uint64_t first, std::span<Number> to) const;
  void open_shards(model_directory const& directory, hub_limits limits);
  [[nodiscard]] location const& at(std::string_view name) const;

  std::filesystem::path directory_;
  std::vector<safetensors_file> shards_;
  std::map<std::string, location, std::less<>> locations_;
  std::map<std::string, quantised_matrix, std::less<>> quantised_;
  std::shared_ptr<dequantised> dequantised_;
  std::vector<std::string> warnings_;
};

}  // namespace superoffload::io

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/io/impl/hub_inl.hpp>
#endif
