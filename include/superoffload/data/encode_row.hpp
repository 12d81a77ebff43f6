// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/row_encoder.hpp>
#include <superoffload/data/row_format.hpp>
#include <superoffload/data/row_reader.hpp>

namespace superoffload::data {

/// The ids of a row, whose JSON may be nested `depth` levels. `format` is not automatic.
/// \throws error(bad_input) that names the row's origin and the field
encoded_row encode_row(row const& one, row_format format, column_names const& columns, int depth,
                       row_encoder const& encoder);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/encode_row_inl.hpp>
#endif
