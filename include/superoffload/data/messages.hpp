// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/row_encoder.hpp>
#include <superoffload/data/row_format.hpp>

#include <string>
#include <string_view>

namespace superoffload::data {

/// Renders a row of chat messages and turns it into ids. The entry point for all rows of messages: those of
/// format messages and those that another format is converted to, without `columns`. `json` is the row's
/// text, not yet checked; `origin` is its file and line.
encoded_row encode_messages(std::string_view json, std::string const& origin, column_names const& columns,
                            row_encoder const& encoder);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/messages_inl.hpp>
#endif
