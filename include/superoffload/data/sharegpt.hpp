// SPDX-FileCopyrightText: 2026 The superoffload authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <superoffload/data/row_format.hpp>
#include <superoffload/data/row_reader.hpp>

#include <string>

namespace superoffload::data {

/// A row of ShareGPT, `conversations` with `from` and `value`, as a JSON row of `messages`. human and user
/// are the user; gpt, assistant and model the assistant; system; tool, observation and function_response a
/// tool; function_call is a call of the assistant, whose value is JSON text: an object with name and
/// arguments, or a list of them. `system` becomes the first message. `tools`, which may be JSON text, and
/// `chat_template_kwargs` are kept.
/// \throws error(bad_input) that names the row's origin and the field, also for another `from`
std::string messages_of_sharegpt(row const& one, column_names const& columns, int depth);

}  // namespace superoffload::data

#ifndef SUPEROFFLOAD_COMPILED
#include <superoffload/data/impl/sharegpt_inl.hpp>
#endif
