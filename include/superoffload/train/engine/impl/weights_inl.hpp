// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/core/error.hpp>
#include <superoffload/core/inline.hpp>
#include <superoffload/io/file.hpp>
#include <superoffload/train/engine/weights.hpp>

#include <algorithm>
#include <string_view>
#include <unordered_set>

namespace superoffload::train {
namespace detail {

SUPEROFFLOAD_INLINE std::string text_of(std::vector<std::int64_t> const& sizes) {
  std::string text = "[";
  for (auto const extent : sizes) { text += concat(text.size() > 1 ? ", " : "", extent); }
  return text + "]";
}

SUPEROFFLOAD_INLINE bool may_be_extra(std::string_view name) {
  return name == "lm_head.weight" || name.ends_with("rotary_emb.inv_freq");
}

}  // namespace detail

SUPEROFFLOAD_INLINE void expect_tensors(std::vector<autograd::unit_layout> const& units,
                                        io::hub_checkpoint const& checkpoint) {
  std::unordered_set<std::string> known;
  auto const where = checkpoint.directory().string();
  for (auto const& unit : units) {
    for (auto const& tensor : unit.tensors()) {
      known.insert(tensor.name);
      auto const* const found = checkpoint.find(tensor.name);
      expect(found != nullptr, exit_code::bad_input, where, ": tensor '", tensor.name, "' ",
             detail::text_of(tensor.shape), " is missing; expected the tensors that config.json describes");
      expect(std::equal(found->shape.begin(), found->shape.end(), tensor.shape.begin(), tensor.shape.end()),
             exit_code::bad_input, io::shown(checkpoint.file_of(tensor.name)), ": tensor '", tensor.name,
             "' has shape ", detail::text_of(found->shape), ", expected ", detail::text_of(tensor.shape),
             " from ", io::shown(checkpoint.directory() / "config.json"));
      expect(found->type != dtype::u8, exit_code::bad_input, io::shown(checkpoint.file_of(tensor.name)),
             ": tensor '", tensor.name, "' has dtype U8, expected F64, F32, BF16 or F16");
    }
  }
  for (auto const& name : checkpoint.names()) {
    expect(known.contains(name) || detail::may_be_extra(name), exit_code::bad_input,
           io::shown(checkpoint.file_of(name)), ": tensor '", printable(name),
           "' does not belong to the model that config.json describes");
  }
}

SUPEROFFLOAD_INLINE void expect_quantisation(model::config const& config,
                                             io::hub_checkpoint const& checkpoint) {
  auto const where = checkpoint.directory().string();
  expect(
      !config.mxfp4_experts || checkpoint.quantised(), exit_code::bad_input, where,
      "/config.json: field 'quantization_config' says mxfp4, but the files have no MXFP4 tensors; expected "
      "them, or no such field");
  expect(
      config.mxfp4_experts || !checkpoint.quantised(), exit_code::bad_input, where,
      ": the files have MXFP4 tensors, but config.json has no field 'quantization_config'; expected one that "
      "says mxfp4");
}

}  // namespace superoffload::train
