// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/row_encoder.hpp>
#include <superoffload/data/row_reader.hpp>
#include <superoffload/text/tokenizer.hpp>

#include <string>

/// A row as text, with what is learnt in colour, or else between [[ and ]]. Control characters are escaped; a
/// line end also ends the line.
std::string shown_row(superoffload::data::row const& read, superoffload::data::encoded_row const& encoded,
                      superoffload::text::tokenizer const& tokenizer, bool colours);

/// Is standard output a terminal that is to have colours? NO_COLOR says that it is not.
bool output_has_colours();
