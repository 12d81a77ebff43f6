// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/io/model_directory.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace superoffload::model {

/// The fields of a config.json that give its model another rope scaling, as transformers reads them:
/// rope_scaling or rope_parameters, and max_position_embeddings, the positions that the new scaling allows.
///
/// `scaling` is the object of rope_scaling, with a rope_type; or yarn:FACTOR or linear:FACTOR for a model
/// without scaling; or yarn:FACTOR, linear:FACTOR or llama3:FACTOR for a model with such a scaling, which
/// keeps its other fields. yarn allows factor * original_max_position_embeddings positions, which are the
/// model's where nothing says otherwise; linear and another factor of llama3 as many times more as the factor
/// is larger; longrope, and llama3 for a model without it, as many as are `wanted`; default and dynamic those
/// that the model has.
/// \throws error(bad_input) for anything else; read_config checks the fields of the object
io::config_fields rope_fields(io::model_directory const& directory, std::string_view scaling,
                              std::int64_t wanted);

}  // namespace superoffload::model

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/model/impl/rope_override_inl.hpp>
#endif
